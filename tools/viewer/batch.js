// The batch over time: which sentence has which slot in which step, which wait, which come in.

class BatchView {
  constructor(trace, choose) {
    this.trace = trace;
    this.choose = choose;
    this.step = this.slot = 0;
    this.canvas = h('canvas', { 'aria-hidden': 'true' });
    this.frame = h('div', {
      class: 'frame', id: 'batch-frame', tabindex: 0, role: 'application', 'aria-label': 'Slots by step',
      'aria-describedby': 'batch-now batch-help', onkeydown: (event) => this.key(event),
    }, this.canvas);
    this.now = h('p', { id: 'batch-now', 'aria-live': 'polite' });
    this.element = h('div', {},
      this.frame, this.now,
      h('div', { class: 'bar legend' }, 'A colour is a sentence: ', h('span', { class: 'swatch run' }), 'a row', h('span', { class: 'swatch idle' }), 'alive, not in this step',
        h('span', { class: 'swatch spare' }), 'its slot is free', h('span', { class: 'swatch refill' }), 'comes in'),
      h('p', { id: 'batch-help', class: 'muted' }, 'Arrows: step and slot. Enter: that sentence. + − 0: zoom. Above the slots: rows of every step.'));
    this.intervals = [];
    for (const one of trace.list) {
      for (const admission of one.admissions) this.intervals.push({ one, ...admission, until: admission.until ?? trace.steps.length });
    }
    this.intervals.sort((a, b) => a.step - b.step);
    this.widest = Math.max(1, ...trace.steps.map((step) => step.rows.length));
    this.width = null;
    this.draw = throttled(() => this.paint());
    this.frame.addEventListener('wheel', (event) => {
      event.preventDefault();
      if (event.ctrlKey || event.metaKey) return this.zoom(Math.exp(-event.deltaY / 200), event.offsetX);
      this.left -= event.shiftKey ? event.deltaY : event.deltaX;
      this.top -= event.shiftKey ? 0 : event.deltaY;
      this.draw();
    }, { passive: false });
    const point = (event) => {
      const box = this.frame.getBoundingClientRect();
      this.look(Math.floor((event.clientX - box.left - this.left) / this.width),
        Math.floor((event.clientY - box.top - this.top) / this.height), false);
    };
    this.frame.addEventListener('click', point);
    this.frame.addEventListener('dblclick', () => this.enter());
    new ResizeObserver(() => this.draw()).observe(this.frame);
  }
  show(sentence) {
    this.sentence = sentence;
    this.look(this.step, this.slot, false);
  }
  fit() {
    const width = this.frame.clientWidth, height = this.frame.clientHeight;
    if (width === 0) return;
    this.width = Math.min(26, Math.max(0.05, (width - 48) / Math.max(1, this.trace.steps.length)));
    this.height = Math.min(22, Math.max(2, (height - 62) / Math.max(1, this.trace.slots)));
    this.left = 40;
    this.top = 54;
  }
  zoom(factor, x = this.frame.clientWidth / 2) {
    const width = Math.min(60, Math.max(0.05, this.width * factor));
    this.left = x - ((x - this.left) * width) / this.width;
    this.width = width;
    this.height = Math.min(30, Math.max(2, this.height * Math.sqrt(factor)));
    this.draw();
  }
  look(step, slot, reveal = true) {
    this.step = Math.max(0, Math.min(step, this.trace.steps.length - 1));
    this.slot = Math.max(0, Math.min(slot, this.trace.slots - 1));
    if (reveal && this.width !== null) {
      const x = this.left + this.step * this.width, y = this.top + this.slot * this.height;
      if (x < 40 || x > this.frame.clientWidth - 20) this.left += this.frame.clientWidth / 2 - x;
      if (y < 54 || y > this.frame.clientHeight - 20) this.top += this.frame.clientHeight / 2 - y;
    }
    this.tell();
    this.draw();
  }
  holder() {
    return this.intervals.find((i) => i.step <= this.step && this.step < i.until && i.base <= this.slot && this.slot < i.base + i.slots);
  }
  tell() {
    const step = this.trace.steps[this.step];
    if (!step) return (this.now.textContent = 'Nothing was run.');
    const alive = this.intervals.filter((i) => i.step <= this.step && this.step < i.until);
    const takes = new Set(step.rows.map((row) => row[0])), holder = this.holder();
    const names = (list) => list.map((i) => i.one.id).join(', ');
    const idle = alive.filter((i) => !takes.has(i.one.id)), came = alive.filter((i) => i.step === this.step);
    const later = this.trace.list.filter((one) => one.admissions.length > 0 && one.admissions[0].step > this.step).length;
    const row = step.rows.find((one) => one[2] === this.slot);
    const part = row ? `feeds ${row[4].map((token) => label(this.trace, token)).join(' ')}${row[1] === row[2] ? '' : `, forked from slot ${row[1]}`}`
      : holder && takes.has(holder.one.id) ? 'slot free' : 'waits';
    this.now.replaceChildren(
      h('strong', {}, `Step ${this.step}: `), `${count(step.rows.length, 'row')} of ${count(takes.size, 'sentence')}`,
      step.answered || step.rows.length === 0 ? '' : ', which was not answered', came.length ? `; comes in: ${names(came)}` : '',
      idle.length ? `; waits alive: ${names(idle)}` : '', later ? `; comes later: ${later}` : '', '. ',
      h('strong', {}, `Slot ${this.slot}: `), holder ? `sentence ${holder.one.id}, ${part}.` : 'free.');
  }
  enter() {
    const holder = this.holder();
    if (holder) this.choose(holder.one, 'tree');
  }
  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const acts = {
      ArrowRight: () => this.look(this.step + 1, this.slot), ArrowLeft: () => this.look(this.step - 1, this.slot),
      ArrowDown: () => this.look(this.step, this.slot + 1), ArrowUp: () => this.look(this.step, this.slot - 1),
      Home: () => this.look(0, this.slot), End: () => this.look(this.trace.steps.length - 1, this.slot),
      Enter: () => this.enter(), '+': () => this.zoom(1.4), '=': () => this.zoom(1.4), '-': () => this.zoom(1 / 1.4),
      0: () => { this.fit(); this.draw(); },
    };
    if (!acts[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    acts[event.key]();
  }

  paint() {
    const width = this.frame.clientWidth, height = this.frame.clientHeight, { trace } = this;
    if (width === 0) return;
    if (this.width === null) this.fit();
    const context = fitCanvas(this.canvas, width, height);
    const first = Math.max(0, Math.floor((40 - this.left) / this.width));
    const last = Math.min(trace.steps.length - 1, Math.ceil((width - this.left) / this.width));
    const stride = Math.max(1, Math.floor(1 / this.width)), gap = this.width > 6 ? 1 : 0;
    const x = (step) => this.left + step * this.width, y = (slot) => this.top + slot * this.height;
    const dark = document.documentElement.dataset.dark === 'true';
    const shade = (id, light) => `hsl(${(id * 137.5 + 190) % 360} ${light ? 30 : 42}% ${dark ? (light ? 24 : 60) : light ? 88 : 46}%)`;
    context.save();
    context.beginPath();
    context.rect(40, 50, width, height);
    context.clip();
    for (const i of this.intervals) {
      const from = Math.max(i.step, first), to = Math.min(i.until, last + 1);
      if (from >= to || y(i.base) > height || y(i.base + i.slots) < 0) continue;
      const tall = i.slots * this.height - (this.height > 4 ? 1 : 0);
      context.fillStyle = shade(i.one.id, true);
      context.fillRect(x(from), y(i.base), (to - from) * this.width, tall);
      context.fillStyle = colour('--idle');
      for (let step = from; step < to; step += stride)
        if (!i.one.took.has(step)) context.fillRect(x(step), y(i.base) + tall * 0.4, Math.max(1, this.width - gap), tall * 0.2);
    }
    for (let step = first; step <= last; step += stride)
      for (const [id, , to] of trace.steps[step].rows) {
        context.fillStyle = shade(id, false);
        context.fillRect(x(step), y(to), Math.max(1, this.width - gap), Math.max(1, this.height - (this.height > 4 ? 2 : 0)));
      }
    for (const i of this.intervals)
      if (i.step >= first && i.step <= last) {
        context.fillStyle = i.one === this.sentence ? colour('--winner') : colour('--ink');
        context.fillRect(x(i.step) - 1, y(i.base), 2, i.slots * this.height - 1);
      }
    context.strokeStyle = colour('--winner');
    context.lineWidth = 2;
    context.strokeRect(x(this.step) - 1, y(this.slot) - 1, Math.max(3, this.width), Math.max(3, this.height));
    context.restore();
    this.axes(context, width, height, first, last, stride, x, y);
  }
  axes(context, width, height, first, last, stride, x, y) {
    context.fillStyle = colour('--bar');
    for (let step = first; step <= last; step += stride) {
      const tall = (34 * this.trace.steps[step].rows.length) / this.widest;
      if (x(step) >= 40) context.fillRect(x(step), 38 - tall, Math.max(1, this.width - (this.width > 6 ? 1 : 0)), tall);
    }
    context.fillStyle = colour('--muted');
    context.font = '11px system-ui, sans-serif';
    const every = 10 ** Math.ceil(Math.log10(Math.max(1, 34 / this.width)));
    for (let step = Math.ceil(first / every) * every; step <= last; step += every) if (x(step) >= 40) context.fillText(String(step), x(step), 49);
    const each = Math.max(1, Math.ceil(14 / this.height));
    context.textAlign = 'right';
    for (let slot = 0; slot < this.trace.slots; slot += each) {
      const at = y(slot) + Math.min(this.height, 14) * 0.75;
      if (at > 56 && at < height) context.fillText(String(slot), 34, at);
    }
    context.fillText(`${this.widest} rows`, 37, 12, 36);
    context.textAlign = 'left';
  }
}

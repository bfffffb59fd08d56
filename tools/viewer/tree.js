// The tree of hypotheses. What is seen is drawn: as SVG where it can be read, as a canvas from afar.

const readable = 0.55, most = 900; // below this zoom, or with more nodes in sight: the canvas

// What is written of a node, and what its colours mean.
function treeLegend() {
  const kinds = { winner: 'the best', on: 'went on', stuck: 'went on, but nothing may follow (∅)', lost: 'pruned', guess: 'rejected guess', end: 'unused end' };
  return h('div', { id: 'tree-legend', class: 'legend', role: 'note', 'aria-label': 'Legend' },
    h('div', {}, h('b', {}, '␣word'), ' token, ␣ a blank; ', h('b', {}, '−0.44'), ' its log-probability; ', h('b', {}, '+3'), ' candidates after it that are not shown; boxed: ends a result'),
    h('div', {}, Object.entries(kinds).map(([kind, words]) => h('span', { class: 'kind' }, h('span', { class: `mark ${kind}` }), words))));
}

class TreeView {
  constructor(trace, choose) {
    this.trace = trace;
    this.choose = choose;
    this.pruned = false;
    this.selected = null;
    this.canvas = h('canvas', { 'aria-hidden': 'true' });
    this.svg = svg('svg', {});
    this.frame = h('div', {
      class: 'frame', id: 'tree-frame', tabindex: 0, role: 'application', 'aria-label': 'Tree of hypotheses',
      'aria-describedby': 'tree-help', onkeydown: (event) => this.key(event),
    }, this.canvas, this.svg);
    this.details = h('dl', { id: 'details', 'aria-live': 'polite' });
    this.check = h('input', { type: 'checkbox', id: 'show-pruned', onchange: () => this.showPruned(this.check.checked) });
    const button = (text, name, act) => h('button', { type: 'button', 'aria-label': name, onclick: act }, text);
    this.extent = h('span', { id: 'tree-extent', class: 'muted' });
    this.element = h('div', { class: 'tree' },
      h('div', { class: 'bar' },
        button('−', 'Zoom out', () => this.zoom(1 / 1.4)), button('+', 'Zoom in', () => this.zoom(1.4)),
        button('Fit', 'Show all of the tree', () => this.fit()),
        button('Result', 'Go to the end of the best hypothesis', () => this.toWinner()),
        h('label', {}, this.check, ' pruned', h('span', { class: 'roomy' }, ' candidates'))), treeLegend(),
      h('div', { class: 'split' }, this.frame, h('aside', { 'aria-label': 'The selected token' }, this.details)),
      h('p', { id: 'tree-help', class: 'muted' }, this.extent,
        '. Arrows: parent, child, above, below. Enter: fold. + − 0: zoom. w: the result, w again: its end. p: pruned candidates.'));
    this.draw = throttled(() => this.paint());
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.frame);
  }

  listen() {
    let drag = null;
    this.frame.addEventListener('wheel', (event) => {
      event.preventDefault();
      const box = this.frame.getBoundingClientRect();
      if (event.ctrlKey || event.metaKey)
        return this.zoom(Math.exp(-event.deltaY / 200), event.clientX - box.left, event.clientY - box.top);
      this.pan(-(event.shiftKey ? event.deltaY : event.deltaX), -(event.shiftKey ? 0 : event.deltaY));
    }, { passive: false });
    this.frame.addEventListener('pointerdown', (event) => {
      if (event.target.closest('text')) return; // which can be selected and copied
      drag = [event.clientX, event.clientY];
    });
    window.addEventListener('pointermove', (event) => {
      if (drag === null) return;
      this.pan(event.clientX - drag[0], event.clientY - drag[1]);
      drag = [event.clientX, event.clientY];
    });
    window.addEventListener('pointerup', () => (drag = null));
    const nodeOf = (event) => {
      const group = event.target.closest('[data-node]');
      return group ? this.sentence.nodes[Number(group.dataset.node)] : this.nearest(event);
    };
    this.frame.addEventListener('click', (event) => this.select(nodeOf(event) ?? this.selected, false));
    this.frame.addEventListener('dblclick', (event) => this.fold(nodeOf(event)));
    this.frame.addEventListener('mousemove', (event) => {
      if (drag === null) this.describe(nodeOf(event) ?? this.selected);
    });
    this.frame.addEventListener('mouseleave', () => this.describe(this.selected));
  }

  show(sentence) {
    if (this.sentence === sentence) return this.draw();
    this.sentence = sentence;
    this.selected = sentence.start;
    this.arrange();
    this.describe(this.selected);
    this.scale = null;
    this.draw();
  }
  arrange() {
    this.layout = layOut(this.sentence, this.pruned, (node) => widthOf(wordOf(this, node), node.winner) +
      (node.logProb === null ? 0 : 5 + 0.8 * widthOf(node.boost ? valueOf(node) : node.logProb <= -10 ? '−00.00' : '−0.00')) + (node.hidden ? 5 + 0.8 * widthOf(`+${node.hidden}`) : 0));
    this.described = null;
    const { nodes, columns } = this.layout;
    this.extent.textContent =
      `${count(nodes, 'node')} shown of ${this.sentence.nodes.length.toLocaleString('en')}, ${columns.length} deep`;
  }
  showPruned(on) {
    this.pruned = this.check.checked = on;
    const { x, y } = this.place(this.selected);
    this.arrange();
    if (this.selected.y === undefined) this.selected = this.sentence.start;
    const now = this.place(this.selected);
    this.pan(x - now.x, y - now.y);
    this.describe(this.selected);
  }

  place(node) {
    return { x: this.left + this.layout.lefts[node.depth - this.layout.root.depth] * this.scale, y: this.top + node.y * down * this.tall };
  }
  pan(x, y) {
    this.left += x;
    this.top += y;
    this.draw();
  }
  // Around the selected token, where it is in sight.
  zoom(factor, x, y) {
    if (x === undefined) {
      const one = this.place(this.selected), width = this.frame.clientWidth, height = this.frame.clientHeight;
      const sight = one.x >= 0 && one.x < width && one.y >= 0 && one.y < height;
      [x, y] = sight ? [one.x, one.y] : [width / 2, height / 2];
    }
    const tall = Math.min(2, Math.max(0.00002, this.tall * factor));
    const scale = Math.max(tall, factor > 1 ? Math.min(0.9, this.scale * factor) : Math.min(this.scale, Math.max(this.fitting(), this.scale * factor)));
    this.left = x - ((x - this.left) * scale) / this.scale;
    this.top = y - ((y - this.top) * tall) / this.tall;
    this.scale = scale;
    this.tall = tall;
    this.draw();
  }
  fitting() { return Math.min(1.1, (this.frame.clientWidth - 24) / this.layout.lefts[this.layout.columns.length]); }
  // What is too tall to be read is made low, not narrow.
  fit() {
    const { rows } = this.layout, height = this.frame.clientHeight;
    if (height === 0) return;
    this.scale = this.fitting();
    this.tall = Math.min(this.scale, (height - 30) / (down * rows));
    if (this.tall > readable) this.scale = this.tall;
    this.left = 14;
    this.top = Math.max(20, (height - down * this.tall * (rows - 1)) / 2);
    this.draw();
  }
  // All of it where that can be read, else its beginning.
  open() {
    this.fit();
    if (this.tall >= 0.7) return;
    this.scale = this.tall = 0.82;
    this.left = 14;
    this.top = this.frame.clientHeight / 2 - this.layout.root.y * down * this.tall;
    this.draw();
  }
  reveal(node) {
    const { x, y } = this.place(node), width = this.frame.clientWidth, height = this.frame.clientHeight;
    if (x < 20 || x > width - narrowest * this.scale) this.left += width / 2 - x;
    if (y < 20 || y > height - 20) this.top += height / 2 - y;
    this.draw();
  }

  select(node, reveal = true) {
    this.selected = node;
    this.describe(node);
    if (reveal) this.reveal(node);
    else this.draw();
  }
  // The result from its beginning, where all of it is too long to be seen; once more: its end.
  toWinner() {
    const again = this.selected.winner && this.selected.results?.[0] === 0;
    let node = this.sentence.start;
    for (let next = node; next; next = node.children?.find((child) => child.winner)) {
      node = next;
      node.folded = false;
    }
    this.arrange();
    if (this.tall < readable) this.zoom(0.9 / this.tall);
    if (again) return this.select(node);
    this.select(node, false);
    this.left = 14;
    this.top = this.frame.clientHeight / 2 - node.y * down * this.tall;
    this.draw();
  }
  fold(node) {
    if (!node || !node.children) return;
    const before = this.place(node);
    node.folded = !node.folded;
    this.arrange();
    const now = this.place(node);
    this.pan(before.x - now.x, before.y - now.y);
    this.describe(node);
  }
  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const one = this.selected, column = this.layout.columns[one.depth - this.layout.root.depth] ?? [];
    const beside = (by) => column[lowerBound(column, one.y) + by] ?? one;
    const acts = {
      ArrowRight: () => this.select(one.first ?? one), ArrowLeft: () => this.select(one === this.layout.root ? one : one.parent),
      ArrowDown: () => this.select(beside(1)), ArrowUp: () => this.select(beside(-1)),
      Home: () => this.select(this.layout.root), End: () => this.toWinner(), w: () => this.toWinner(),
      Enter: () => this.fold(one), ' ': () => this.fold(one), p: () => this.showPruned(!this.pruned),
      '+': () => this.zoom(1.4), '=': () => this.zoom(1.4), '-': () => this.zoom(1 / 1.4), 0: () => this.fit(),
    };
    if (!acts[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    acts[event.key]();
  }

  columnAt(x) { return lowerBound(this.layout.lefts, (x - this.left) / this.scale, (left) => left) - 1; }

  // On the canvas there is nothing to point at but a place.
  nearest(event) {
    if (!this.far || !this.layout) return null;
    const box = this.frame.getBoundingClientRect();
    const column = this.layout.columns[this.columnAt(event.clientX - box.left)];
    if (!column) return null;
    const y = (event.clientY - box.top - this.top) / (down * this.tall), i = lowerBound(column, y);
    const [above, below] = [column[i - 1], column[i]];
    const found = !above || (below && below.y - y < y - above.y) ? below : above;
    return found && Math.abs(found.y - y) * down * this.tall < 12 ? found : null;
  }

  describe(node) {
    if (!node || node === this.described) return;
    this.described = node;
    const { trace } = this, s = node.sentence, root = node === s.start;
    const rows = [
      ['Token', root ? 'start of the output' : label(trace, node.token)], ['Number', root ? '–' : String(node.token)],
      [node.parent?.line?.plain ? 'Score' : 'Log-probability', number(node.logProb, 5)],
      ['Probability', node.logProb === null || node.parent?.line?.plain ? '–' : percent(node.logProb - node.boost)],
      [node.boost > 0 ? 'Of it a boost' : 'Of it taken back', node.boost ? number(node.boost, 5) : null],
      ['Sum', number(node.sum, 5)], ['Rank in its list', node.listed ? `${node.listed} of ${node.parent.line.count}` : '–'],
      ['Listed in step', node.at < 0 ? '–' : String(node.at)], ['Fate', root ? 'the output begins here' : fate(trace, node)[1]],
      ['What follows', stuck(node) ? stuckWords : null],
      ['What follows: entropy', stuck(node) ? null : number(node.line?.entropy, 3)],
      ['Bank', node.line && node.line.bank >= 0 ? String(node.line.bank) : null],
      ['Not shown', node.hidden ? count(node.hidden, 'candidate') + (node.folded ? ' (folded)' : '') : null],
      ['Output so far', textOf(trace, pathOf(node)) || '–'],
    ];
    this.details.replaceChildren(...rows.filter(([, value]) => value !== null && value !== '–').flatMap(([name, value]) =>
      [h('dt', { title: name === 'Bank' ? bankWords : null }, name), h('dd', { 'data-of': name }, value)]));
  }

  paint() {
    const { frame, layout } = this, width = frame.clientWidth, height = frame.clientHeight;
    if (width === 0 || !layout) return;
    if (this.scale === null) this.open();
    const stepY = down * this.tall;
    const firstColumn = Math.max(0, this.columnAt(0)), lastColumn = Math.min(layout.columns.length - 1, this.columnAt(width));
    const low = (-this.top - 20) / stepY, high = (height - this.top + 20) / stepY;
    let seen = 0;
    const ranges = [];
    for (let depth = firstColumn; depth <= lastColumn; ++depth) {
      const column = layout.columns[depth];
      const range = { column, from: lowerBound(column, low), to: lowerBound(column, high) };
      range.wide = (layout.lefts[depth + 1] - layout.lefts[depth]) * this.scale;
      ranges.push(range);
      seen += range.to - range.from;
    }
    this.far = this.tall < readable || seen > most;
    this.canvas.hidden = !this.far;
    this.svg.toggleAttribute('hidden', this.far);
    this.frame.classList.toggle('far', this.far);
    if (this.far) paintFar(this, ranges, width, height, stepY, low, high);
    else paintNear(this, ranges, width, height, stepY, low, high);
  }
}

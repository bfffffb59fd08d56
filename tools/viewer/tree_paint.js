// The two ways in which the tree is drawn.

const wordOf = (view, node) => label(view.trace, node === node.sentence.start ? -1 : node.token) + (stuck(node) ? ' ∅' : '');

// What of a word, its value and the number of its hidden candidates has room: of the word as much as there is, but three letters
// before any number.
function fitting(word, bold, value, more, room, size) {
  const wide = (text) => (widthOf(text, bold) * size) / letters, small = (text) => (text === null ? 0 : 5 + (0.8 * widthOf(text) * size) / letters);
  const beside = () => small(value) + small(more);
  const least = [...word].slice(0, 3).join('') + '…', all = wide(word);
  if (more !== null && Math.min(all, wide(least)) + beside() > room) more = null;
  if (value !== null && Math.min(all, wide(least)) + beside() > room) value = null;
  if (all + beside() <= room) return [word, value, more];
  const left = room - beside(), text = [...word];
  let count = Math.min(text.length - 1, Math.floor((text.length * left) / all));
  while (count > 1 && wide(text.slice(0, count).join('') + '…') > left) --count;
  return [text.slice(0, Math.max(1, count)).join('') + '…', value, more];
}

const kindOf = (view, node) => (node.winner ? 'winner' : fate(view.trace, node)[0]);

function paintNear(view, ranges, width, height, stepY, low, high) {
  const edges = [], nodes = [], size = Math.round(letters * Math.min(1.15, Math.max(0.72, view.tall)));
  const edge = (parent, child) => {
    const a = view.place(parent), b = view.place(child), wide = parent.wide || 50 * view.scale, bend = 18 * view.scale, from = b.x - bend * 1.4;
    const line = parent.first === parent.last && Math.abs(a.y - b.y) < 0.5
      ? `M${a.x + wide} ${a.y}H${b.x - 4}`
      : `M${Math.min(a.x + wide, from)} ${a.y}H${from}C${from + bend} ${a.y} ${from} ${b.y} ${b.x - 4} ${b.y}`;
    edges.push(svg('path', { d: line, class: `edge ${kindOf(view, child)}` }));
  };
  for (const { column, from, to } of ranges)
    for (let i = from; i < to; ++i) column[i].wide = 0;
  for (const { column, from, to, wide } of ranges)
    for (let i = from; i < to; ++i) {
      const node = column[i], { x, y } = view.place(node);
      const kind = kindOf(view, node), small = { dx: 5, 'font-size': size * 0.8 };
      const [word, value, more] = fitting(wordOf(view, node), node.winner, node.logProb === null ? null : valueOf(node), node.hidden ? `+${node.hidden}` : null, wide - 14, size);
      const text = svg('text', { x, y: y + size * 0.35, 'font-size': size }, svg('tspan', { class: 'word' }, word),
        value === null ? null : svg('tspan', { class: 'value', ...small }, value), more === null ? null : svg('tspan', { class: 'more', ...small }, more));
      nodes.push([node, svg('g', {
        'data-node': node.number, class: `node ${kind}${node === view.selected ? ' selected' : ''}${node.results ? ' ends' : ''}`,
      }, svg('rect', { x: x - 4, y: y - stepY * 0.42, height: stepY * 0.84, rx: 3 }), text)]);
    }
  view.svg.setAttribute('width', width);
  view.svg.setAttribute('height', height);
  const group = svg('g', {}, nodes.map(([, one]) => one));
  view.svg.replaceChildren(group);
  for (const [node, one] of nodes) { // as wide as what was written
    node.wide = one.lastChild.getBBox().width + 4;
    one.firstChild.setAttribute('width', node.wide + 4);
  }
  for (const { column, from, to } of ranges) {
    for (let i = from; i < to; ++i) if (column[i] !== view.layout.root) edge(column[i].parent, column[i]);
    // Parents whose children lie above and below what is seen.
    for (let i = lowerBound(column, low, (one) => one.last?.y ?? one.y); i < column.length; ++i) {
      const node = column[i];
      if ((node.first?.y ?? node.y) >= high) break;
      if (!node.first) continue;
      for (const child of node.first === node.last ? [node.first] : [node.first, node.last])
        if (child.y < low || child.y >= high) edge(node, child);
    }
  }
  view.svg.prepend(svg('g', {}, edges));
}

function paintFar(view, ranges, width, height, stepY, low, high) {
  const context = fitCanvas(view.canvas, width, height), thick = Math.max(1, Math.min(8, stepY * 0.6));
  const colours = Object.fromEntries(['winner', 'result', 'on', 'stuck', 'end', 'guess', 'lost', 'edge'].map((k) => [k, colour(`--${k}`)]));
  context.lineWidth = 1;
  context.strokeStyle = colours.edge;
  context.beginPath();
  for (const { column, wide } of ranges) // parents and children, wherever they are
    for (let i = lowerBound(column, low, (one) => one.last?.y ?? one.y), n = 0; i < column.length && n < 2000; ++n) {
      const node = column[i];
      if ((node.first?.y ?? node.y) >= high) break;
      if (node.first && node.first !== node.last) {
        const x = view.place(node).x + wide * 0.85;
        context.moveTo(x, view.top + Math.max(low, node.first.y) * stepY);
        context.lineTo(x, view.top + Math.min(high, node.last.y) * stepY);
      }
      i = stepY < 1 ? Math.max(i + 1, lowerBound(column, (node.last?.y ?? node.y) + 1 / stepY, (one) => one.last?.y ?? one.y)) : i + 1;
    }
  context.stroke();
  for (const { column, from, to, wide: room } of ranges)
    for (let i = from, wide = Math.max(1, room * 0.7); i < to;) {
      const node = column[i], { x, y } = view.place(node);
      context.fillStyle = colours[kindOf(view, node)];
      context.fillRect(x, y - thick / 2, wide, thick);
      // The next one that falls on other dots.
      i = stepY < 1 ? Math.max(i + 1, lowerBound(column, node.y + 1 / stepY)) : i + 1;
    }
  context.strokeStyle = context.fillStyle = colours.winner;
  context.lineWidth = Math.max(2, thick / 2);
  context.beginPath();
  for (let node = view.sentence.start, last = null; node; last = node, node = node.children?.find((c) => c.winner)) {
    if (last && last.folded) break;
    const { x, y } = view.place(node);
    if (last) context.lineTo(x, y);
    else context.moveTo(x, y);
  }
  context.stroke();
  const one = view.place(view.selected);
  context.strokeStyle = colour('--ink');
  context.strokeRect(one.x - 2, one.y - thick / 2 - 2, Math.max(4, 50 * view.scale) + 4, thick + 4);
}

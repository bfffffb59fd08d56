// Where the nodes of a tree lie: a row for every leaf, a column for every token. O(nodes).

const down = 26; // of a row, before zoom
const narrowest = 64, widest = 220, between = 26; // of a column; between what is written in two of them
const letters = 13; // how tall, before zoom

// \param pruned  whether candidates that did not go on are shown
// \param wide  how wide what is written of a node is, before zoom
function layOut(sentence, pruned, wide) {
  const shown = (node) => pruned || node.kept || node.results !== null || (node.state & went) !== 0;
  const columns = [], root = sentence.start;
  const stack = [root];
  let row = 0, nodes = 0;
  while (stack.length > 0) { // from left to right and from top to bottom
    const node = stack.pop();
    const depth = node.depth - root.depth;
    node.first = node.last = null;
    node.hidden = 0;
    (columns[depth] ??= []).push(node);
    ++nodes;
    const children = node.folded || !node.children ? [] : node.children.filter(shown);
    node.hidden = node.children ? node.children.length - children.length : 0;
    if (children.length > 0) {
      node.beside = children.find((child) => child.winner) ?? children[0]; // on one line with it
      node.first = children[0];
      node.last = children[children.length - 1];
      for (let i = children.length; i-- > 0;) stack.push(children[i]);
    } else {
      node.y = row++;
    }
  }
  for (let depth = columns.length; depth-- > 0;)
    for (const node of columns[depth]) if (node.first) node.y = node.beside.y;
  const lefts = [0]; // of the columns, and where the last one ends
  for (const column of columns) {
    let most = 0;
    for (const node of column) most = Math.max(most, wide(node));
    lefts.push(lefts[lefts.length - 1] + Math.min(widest, Math.max(narrowest, most + between)));
  }
  return { columns, lefts, rows: row, nodes, root };
}

// The first index from which on `of(nodes[i])` is at least `y`.
function lowerBound(nodes, y, of = (node) => node.y) {
  let low = 0, high = nodes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (of(nodes[middle]) < y) low = middle + 1;
    else high = middle;
  }
  return low;
}

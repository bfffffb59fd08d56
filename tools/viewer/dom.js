// The little that is needed of a framework.

const byId = (id) => document.getElementById(id);

function build(parent, tag, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) tag.addEventListener(name.slice(2), value);
    else tag.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat(Infinity))
    if (child !== null && child !== undefined) tag.append(child);
  parent?.append(tag);
  return tag;
}
const h = (tag, attributes, ...children) => build(null, document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  build(null, document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

// A cell that holds a number in full, and shows it short.
const cell = (x, digits = 3) =>
  h('td', { class: 'number', 'data-value': x === null || x === undefined ? '' : String(x) }, number(x, digits));

const numeric = new Set(['', 'Rank', 'Slot', 'Sum', 'Entropy', 'Bank', 'After slot', 'In its list', 'Log-probability', 'Score', 'Tokens']);

function table(headings, rows, caption) {
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption },
    h('table', {}, h('caption', {}, caption),
      h('thead', {}, h('tr', {}, headings.map((text) => h('th', { scope: 'col', class: numeric.has(text) ? 'number' : null }, text)))), h('tbody', {}, rows)));
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// How wide a text is at a height of 13 in the fonts that this screen has; each is measured once.
const widths = [new Map(), new Map()], rulers = [400, 650].map((weight) => {
  const ruler = document.createElement('canvas').getContext('2d');
  ruler.font = `${weight} 13px ${getComputedStyle(document.body).fontFamily}`;
  return ruler;
});
function widthOf(text, bold = false) {
  const known = widths[Number(bold)];
  let width = known.get(text);
  if (width === undefined) known.set(text, width = rulers[Number(bold)].measureText(text).width);
  return width;
}

// Draws once a frame, however often it is asked.
function throttled(draw) {
  let due = false;
  return () => {
    if (due) return;
    due = true;
    requestAnimationFrame(() => {
      due = false;
      draw();
    });
  };
}

// A canvas of as many dots as the screen has.
function fitCanvas(canvas, width, height) {
  const dots = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * dots) || canvas.height !== Math.round(height * dots)) {
    canvas.width = Math.round(width * dots);
    canvas.height = Math.round(height * dots);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext('2d');
  context.setTransform(dots, 0, 0, dots, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

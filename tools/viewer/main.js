// Puts the page together.

const trace = new Trace(byId('trace').textContent);
const goTo = (sentence, view, step) => {
  select(sentence);
  open(view);
  if (step !== undefined) views.beam.view.go(step);
};
const views = {
  tree: { title: 'Tree', view: new TreeView(trace) },
  beam: { title: 'Beam', view: new BeamView(trace) },
  blocks: { title: 'Blocks', view: new BlocksView(trace), only: (sentence) => sentence.blocks },
  banks: { title: 'Banks', view: new BanksView(trace, (step) => goTo(current, 'beam', step)), only: (sentence) => sentence.banks },
  attention: { title: 'Attention', view: new AttentionView(trace), only: (sentence) => sentence.end?.hypotheses.some((one) => one.attached) },
  results: { title: 'Results', view: new ResultsView(trace) },
  batch: { title: 'Batch', view: new BatchView(trace, goTo) },
};
let current = trace.list[0], opened = 'tree';

const chooser = byId('sentence');
for (const one of trace.list) {
  const about = one.about || (one.end?.hypotheses[0] ? textOf(trace, one.end.hypotheses[0].tokens) : '');
  const short = about.length > 90 ? about.slice(0, 89) + '…' : about;
  chooser.append(h('option', { value: one.id }, `${one.id}${one.end?.failure ? ' (failed)' : ''}${short ? ': ' + short : ''}`));
}
chooser.addEventListener('change', () => select(trace.sentences.get(Number(chooser.value))));

for (const [name, { title, view }] of Object.entries(views)) {
  byId('tabs').append(h('button', {
    type: 'button', role: 'tab', id: `tab-${name}`, 'aria-controls': `panel-${name}`, 'aria-selected': 'false', tabindex: -1, onclick: () => current && open(name),
  }, title));
  byId('panels').append(h('section', { id: `panel-${name}`, role: 'tabpanel', 'aria-labelledby': `tab-${name}`, hidden: true }, view.element));
}

const has = (name) => !views[name].only || views[name].only(current);
function open(name) {
  opened = has(name) ? name : 'tree';
  for (const other of Object.keys(views)) {
    const tab = byId(`tab-${other}`), on = other === opened;
    tab.setAttribute('aria-selected', String(on));
    tab.tabIndex = on ? 0 : -1;
    tab.hidden = !has(other);
    byId(`panel-${other}`).hidden = !on;
    if (on) byId('tabs').scrollLeft = tab.offsetLeft - byId('tabs').offsetLeft - 40; // where they are wider than the screen
  }
  views[opened].view.show(current);
  remember();
}
function select(sentence) {
  if (!sentence) return;
  current = sentence;
  chooser.value = String(sentence.id);
  byId('about').textContent = sentence.about;
  const times = sentence.admissions.length, nodes = sentence.nodes.length - 1;
  byId('summary').textContent = [
    times === 0 ? 'never admitted' : count(sentence.steps.length, 'step'), times > 1 ? `started again ${times === 2 ? 'once' : `${times - 1} times`}` : null,
    sentence.slots ? count(sentence.slots, 'slot') : null, count(nodes, 'token') + ' in the tree',
    sentence.end?.failure ? `failed: ${sentence.end.failure}` : null,
  ].filter(Boolean).join(', ');
  open(opened);
}
const besides = (by) => select(trace.list[trace.list.indexOf(current) + by]);
const tabBy = (by) => {
  const names = Object.keys(views).filter(has);
  open(names[(names.indexOf(opened) + by + names.length) % names.length]);
};

// ---- theme, keys, address ----------------------------------------------------------------------------------------------

const prefersDark = matchMedia('(prefers-color-scheme: dark)');
let theme = null; // null: as the system has it
function paintTheme() {
  const dark = theme === null ? prefersDark.matches : theme === 'dark';
  document.documentElement.dataset.dark = String(dark);
  byId('theme').textContent = dark ? 'Light' : 'Dark';
  for (const { view } of Object.values(views)) view.draw?.();
}
function switchTheme() {
  theme = document.documentElement.dataset.dark === 'true' ? 'light' : 'dark';
  paintTheme();
  remember();
}
prefersDark.addEventListener('change', paintTheme);
byId('theme').addEventListener('click', switchTheme);
byId('keys').addEventListener('click', () => byId('help').showModal());

byId('tabs').addEventListener('keydown', (event) => {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!by || !current) return;
  event.preventDefault();
  tabBy(by);
  byId(`tab-${opened}`).focus();
});
document.addEventListener('keydown', (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || byId('help').open || event.target.matches('select')) return;
  const acts = {
    '[': () => besides(-1), ']': () => besides(1), t: switchTheme, '?': () => byId('help').showModal(),
    ',': () => current && (open('beam'), views.beam.view.go(views.beam.view.step - 1)), '.': () => current && (open('beam'), views.beam.view.go(views.beam.view.step + 1)),
  };
  const names = current ? Object.keys(views).filter(has) : [];
  names.forEach((name, i) => (acts[String(i + 1)] = () => open(name)));
  if (!acts[event.key]) { // the view's own keys, before anybody has clicked into it; a control keeps those that move it
    const typed = event.key.length === 1 && event.key !== ' ' && !event.target.matches('input[type=range]');
    if (current && (typed || (event.target === document.body && event.key !== ' '))) views[opened].view.key?.(event);
    return;
  }
  event.preventDefault();
  acts[event.key]();
});

function remember() {
  if (!current) return;
  const state = new URLSearchParams({ sentence: current.id, view: opened });
  if (theme) state.set('theme', theme);
  history.replaceState(null, '', '#' + state);
}
function recall() {
  const state = new URLSearchParams(location.hash.slice(1));
  if (state.has('theme')) theme = state.get('theme') === 'dark' ? 'dark' : 'light';
  opened = views[state.get('view')] ? state.get('view') : 'tree';
  paintTheme();
  select(trace.sentences.get(Number(state.get('sentence') ?? NaN)) ?? trace.list[0]);
}

byId('totals').textContent = [
  count(trace.list.length, 'sentence'), count(trace.steps.length, 'step'), count(trace.rows, 'row'), count(trace.forks, 'fork'),
  trace.restarted ? count(trace.restarted, 'restart') : null, (() => {
    const failed = trace.list.filter((one) => one.end?.failure).length;
    return failed ? count(failed, 'failure') : null;
  })(),
].filter(Boolean).join(' · ');
if (trace.faults.length > 0) {
  byId('faults').hidden = false;
  byId('faults').textContent = `Lines that could not be read: ${trace.faults.length}. The first: ${trace.faults[0]}`;
}
if (trace.list.length > 0) {
  recall();
  window.addEventListener('hashchange', recall);
} else {
  paintTheme();
  byId('about').textContent = 'The trace names no sentence.';
}
document.documentElement.dataset.ready = 'true';

// How tokens, numbers and fates are said.

const encoder = new TextEncoder(), decoder = new TextDecoder();

function label(trace, token) {
  if (token < 0) return 'start';
  const text = trace.texts.get(token);
  if (text === undefined || text.length === 0) return trace.eos.has(token) ? '⟨end⟩' : `⟨${token}⟩`;
  if (typeof text !== 'string') return '‹' + [...text].map((b) => b.toString(16).padStart(2, '0')).join(' ') + '›';
  return text.replace(/ /g, '␣').replace(/[\u0000-\u001f\u007f]/g, (c) => JSON.stringify(c).slice(1, -1));
}

// The text of some tokens: bytes first, since a character may be cut between two of them.
function textOf(trace, tokens) {
  if (trace.texts.size === 0) return tokens.join(' ');
  const bytes = [];
  for (const token of tokens) {
    const text = trace.texts.get(token) ?? '';
    for (const byte of typeof text === 'string' ? encoder.encode(text) : text) bytes.push(byte);
  }
  return decoder.decode(Uint8Array.from(bytes)).trim();
}

function pathOf(node) {
  const tokens = [];
  for (let n = node; n !== n.sentence.start && n.parent; n = n.parent) tokens.push(n.token);
  return tokens.reverse();
}

const number = (x, digits = 3) => (x === null || x === undefined ? '–' : x.toFixed(digits).replace('-', '−'));
// A log-probability, and what of it rules added or took back.
const valueOf = (node) => number(node.logProb, 2) + (node.boost ? ` ${node.boost > 0 ? '↑' : '↓'}${number(Math.abs(node.boost), 1)}` : '');
const percent = (x) => {
  const p = 100 * Math.exp(x);
  return p >= 0.1 ? `${p.toFixed(1)} %` : '< 0.1 %';
};
const count = (n, one, many = one + 's') => `${n.toLocaleString('en')} ${n === 1 ? one : many}`;

// What the search's own number for a hypothesis is, as those know it who see it most: users of constrained beams.
const bankWords = 'the search’s own number for the hypothesis (Query::label). In a constrained beam: how many tokens of its constraints it has met';

// Whether nothing could follow a hypothesis: whatever its search asked about is forbidden, or has no probability.
function stuck(node) {
  const { line } = node;
  if (!line || line.invalid) return false;
  if (line.impossible) return true;
  const asked = (node.children ?? []).filter((child) => child.at >= 0);
  return line.count === 0 && asked.length > 0 && asked.every((child) => child.logProb === null);
}
const stuckWords = 'nothing: every continuation was forbidden, or has probability 0';

// The tokens that were fed after a step's answer: what went on of its candidates.
function survivors(sentence, step) {
  if (sentence.worst[step]) return sentence.worst[step];
  const next = sentence.steps[step + 1];
  const found = { worst: Infinity, count: 0 };
  if (next)
    for (const row of next.rows) {
      found.worst = Math.min(found.worst, row.nodes[0].sum);
      ++found.count;
    }
  return (sentence.worst[step] = found);
}

// What became of a node, and why: [kind, words]. Kinds: result, on, stuck, end, guess, lost.
function fate(trace, node) {
  const s = node.sentence, { prompt, prefix } = s;
  if (node.depth <= prompt.length) return ['on', 'prompt'];
  if (node.depth <= prompt.length + prefix.length && node.kept) return ['on', 'forced prefix'];
  if (node.results) {
    const score = s.end.hypotheses[node.results[0]].score;
    return ['result', `hypothesis ${node.results.map((r) => r + 1).join(', ')} of the result, score ${number(score)}`];
  }
  if (node.kept && node.state & guessed) return ['on', 'a guess that was accepted'];
  if (node.kept && stuck(node)) return ['stuck', `went on in slot ${node.slot}, and ended there: every continuation was forbidden, or has probability 0`];
  if (node.kept) return ['on', node.slot < 0 ? 'went on to the result' : `went on in slot ${node.slot}`];
  if (node.state & guessed) return ['guess', 'a guess that was rejected'];
  if (node.at >= 0 && node.logProb === null && !node.parent.line?.invalid) return ['lost', 'was forbidden, or has probability 0'];
  if (trace.eos.has(node.token)) return ['end', 'an end: outside the beam, or not among the results'];
  if (node.at >= s.steps.length - 1)
    return s.end ? ['lost', 'the search was over'] : ['lost', 'the trace ends here'];
  if (node.parent && node.parent.state & guessed && !node.parent.kept) return ['lost', 'comes after a rejected guess'];
  if (node.listed === 0) return ['lost', 'was only asked about'];
  if (node.parent.line && node.parent.line.noise) return ['lost', 'was not drawn'];
  if (s.slots === 1) return ['lost', 'another token was chosen'];
  const { worst, count: alive } = survivors(s, node.at);
  if (node.sum >= worst)
    return ['lost', s.banks ? 'its bank was full: worse ones of other banks went on' : 'worse ones went on: a rule of the search, or chance'];
  if (alive >= s.slots) return ['lost', `the beam was full: ${alive} better ones went on`];
  return ['lost', `${alive} of ${s.slots} places taken: below a threshold, or places of ended ones stay empty`];
}

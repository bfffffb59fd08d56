// The beam of one step: which hypotheses were in it, the answer to each, and what became of the candidates.

const shownCandidates = 300;

class BeamView {
  constructor(trace) {
    this.trace = trace;
    this.slider = h('input', { type: 'range', id: 'step', min: 0, value: 0, 'aria-label': 'Step', oninput: () => this.go(Number(this.slider.value)) });
    this.where = h('output', { for: 'step', id: 'step-now' });
    const button = (text, name, by) => h('button', { type: 'button', 'aria-label': name, onclick: () => this.go(this.step + by) }, text);
    this.body = h('div', {});
    this.element = h('div', {},
      h('div', { class: 'bar' }, button('‹', 'Step before', -1), this.slider, button('›', 'Next step', 1), this.where), this.body,
      h('p', { id: 'beam-legend', class: 'legend' }, 'Sum: of the natural logarithms of the probabilities of all tokens so far. Entropy, in nats: how undecided the model is about what follows. ',
        'In its list: its place among what may follow that hypothesis. ', h('span', { id: 'beam-bank' }, `Bank: ${bankWords}.`)));
  }
  show(sentence) {
    if (this.sentence !== sentence) this.step = 0;
    this.sentence = sentence;
    this.slider.max = Math.max(0, sentence.steps.length - 1);
    this.go(this.step);
  }
  go(step) {
    const { steps } = this.sentence;
    this.step = Math.max(0, Math.min(step, steps.length - 1));
    this.slider.value = this.step;
    if (steps.length === 0) {
      this.where.textContent = '';
      this.body.replaceChildren(h('p', {}, 'Nothing was run for this sentence.'));
      return;
    }
    const now = steps[this.step];
    byId('beam-bank').hidden = !this.sentence.banks;
    this.where.textContent = `step ${this.step} of ${steps.length - 1} (${now.step} of the batch)`;
    this.body.replaceChildren(this.rows(now), this.candidates(now));
  }

  rows(now) {
    const sorted = [...now.rows].sort((a, b) => (a.asked[0]?.line?.rank ?? 0) - (b.asked[0]?.line?.rank ?? 0));
    const { banks } = this.sentence, asked = (row) => row.asked[row.asked.length - 1];
    const lines = sorted.map((row, i) => {
      const last = row.nodes[row.nodes.length - 1], line = asked(row)?.line;
      return h('tr', { class: last.winner ? 'winner' : null },
        h('td', { class: 'number' }, String(i + 1)), h('td', { class: 'number' }, String(row.to)),
        h('td', {}, row.forked ? `forked from ${row.from}` : 'stays'), h('td', {}, row.nodes.map((n) => label(this.trace, n.token)).join(' ')),
        cell(last.sum), cell(line?.entropy), banks ? h('td', { class: 'number' }, line && line.bank >= 0 ? String(line.bank) : '–') : null,
        h('td', { class: 'text' }, last.depth <= this.sentence.prompt.length ? '' : textOf(this.trace, pathOf(last)),
          stuck(last) ? h('span', { class: 'nothing' }, ` ∅ What follows: ${stuckWords}`) : null));
    });
    return table(['Rank', 'Slot', 'From', 'Fed', 'Sum', 'Entropy', ...(banks ? ['Bank'] : []), 'Output so far'], lines, 'Hypotheses of the step');
  }

  candidates(now) {
    const all = [];
    for (const row of now.rows)
      for (const list of row.lists) for (const child of list) all.push([child, row]);
    all.sort(([a], [b]) => b.sum - a.sum);
    const lines = all.slice(0, shownCandidates).map(([node, row], i) => {
      const [kind, words] = fate(this.trace, node);
      return h('tr', { class: node.winner ? 'winner' : kind },
        h('td', { class: 'number' }, String(i + 1)), h('td', {}, label(this.trace, node.token)), h('td', { class: 'number' }, String(row.to)),
        h('td', { class: 'number' }, node.listed ? String(node.listed) : '–'), cell(node.logProb), cell(node.sum),
        h('td', {}, h('span', { class: `mark ${kind}`, 'aria-hidden': 'true' }), words));
    });
    const caption = all.length > shownCandidates ? `The ${shownCandidates} best of ${all.length} candidates` : 'Candidates';
    return table(['', 'Token', 'After slot', 'In its list', 'Log-probability', 'Sum', 'What became of it'], lines, caption);
  }
}

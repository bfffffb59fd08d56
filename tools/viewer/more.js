// Blocks and what of them was accepted, banks, the results.

class BlocksView {
  constructor(trace) {
    this.trace = trace;
    this.element = h('div', {});
  }
  show(sentence) {
    let guesses = 0, kept = 0;
    const rounds = [];
    sentence.steps.forEach((step, i) => {
      for (const row of step.rows) {
        const own = row.nodes.filter((node) => node.depth > sentence.prompt.length + sentence.prefix.length);
        if (own.length === 0 && row.guesses === 0) continue;
        const guessesOf = row.nodes.slice(row.nodes.length - row.guesses), right = guessesOf.filter((node) => node.kept).length;
        guesses += row.guesses;
        kept += right;
        const chip = (node) => {
          const guess = guessesOf.includes(node), [kind, words] = guess ? fate(this.trace, node) : ['own', 'the model’s own'];
          return h('li', { class: `chip ${guess ? kind : 'own'}`, title: `${words}; log-probability ${number(node.logProb)}` },
            h('span', { class: 'sr' }, guess ? (node.kept ? 'accepted: ' : 'rejected: ') : 'own: '), label(this.trace, node.token));
        };
        rounds.push(h('li', { class: 'round' }, h('span', { class: 'muted number' }, String(i)), h('ol', {}, own.map(chip)),
          h('span', { class: 'muted' }, row.guesses ? `${right} of ${row.guesses} accepted` : 'no guess')));
      }
    });
    this.element.replaceChildren(
      h('p', {}, h('strong', { id: 'accepted', 'data-value': kept }, String(kept)), ' of ', h('strong', { id: 'guesses', 'data-value': guesses }, String(guesses)),
        ` guesses were accepted in ${count(rounds.length, 'round')}.`),
      h('p', { class: 'bar legend' }, h('span', { class: 'chip own' }, 'the model’s own'), h('span', { class: 'chip on' }, 'accepted'), h('span', { class: 'chip guess' }, 'rejected')),
      h('ol', { class: 'rounds' }, rounds));
  }
}

class BanksView {
  constructor(trace, go) {
    this.trace = trace;
    this.go = go;
    this.element = h('div', {});
  }
  show(sentence) {
    let banks = 0;
    for (const step of sentence.steps) for (const row of step.rows) for (const node of row.asked) banks = Math.max(banks, (node.line?.bank ?? -1) + 1);
    const lines = sentence.steps.map((step, i) => {
      const found = Array.from({ length: banks }, () => []);
      for (const row of step.rows) for (const node of row.asked) if (node.line && node.line.bank >= 0) found[node.line.bank].push(node);
      return h('tr', {}, h('th', { scope: 'row' }, h('button', { type: 'button', class: 'plain', onclick: () => this.go(i) }, String(i))),
        found.map((nodes) => {
          const best = nodes.reduce((a, b) => (a && a.sum >= b.sum ? a : b), null);
          return h('td', { class: `bank fill${Math.min(5, nodes.length)}${nodes.some((n) => n.winner) ? ' holds' : ''}`, 'data-value': nodes.length },
            nodes.length ? h('span', {}, h('strong', {}, String(nodes.length)), ` ${best === sentence.start ? 'start' : label(this.trace, best.token)} `, h('small', {}, number(best.sum, 2))) : '');
        }));
    });
    this.element.replaceChildren(
      table(['Step', ...Array.from({ length: banks }, (_, bank) => `${bank} met`)], lines, 'Banks of the constrained beam'),
      h('p', { class: 'legend' }, `Bank: ${bankWords}. In each, step by step: how many hypotheses, the last token of the best, its sum of log-probabilities. Darker: more of them. Outlined: holds the result.`));
  }
}

// What was attached to each token of a result, a row each: attention to the source, if that is what the model attaches.
class AttentionView {
  constructor(trace) {
    this.trace = trace;
    this.chooser = h('select', { id: 'attended', onchange: () => this.show(this.sentence) });
    this.bar = h('div', { class: 'bar' }, h('label', { for: 'attended' }, 'Hypothesis'), this.chooser);
    this.grid = h('div', {});
    this.element = h('div', {}, this.bar, this.grid);
  }
  show(sentence) {
    const { hypotheses } = sentence.end;
    if (this.sentence !== sentence)
      this.chooser.replaceChildren(...hypotheses.map((one, i) => h('option', { value: i }, `${i + 1}: ${textOf(this.trace, one.tokens.filter((t) => !this.trace.eos.has(t)))}`)));
    this.sentence = sentence;
    this.bar.hidden = hypotheses.length < 2;
    const one = hypotheses[Number(this.chooser.value)], attached = one.attached ?? [];
    const width = attached.reduce((most, line) => Math.max(most, line.length), 0), largest = attached.reduce((most, line) => line.reduce((m, x) => Math.max(m, Math.abs(x)), most), 1e-9);
    const heading = (i) => sentence.source[i] ?? (sentence.source.length > 0 && i === sentence.source.length ? 'end' : String(i));
    const heat = (x, line, i) => {
      const cell = h('td', { class: 'heat number', 'data-value': x, title: `${label(this.trace, one.tokens[line])} from ${heading(i)}: ${number(x, 4)}` }, Math.abs(x) >= 0.05 * largest ? number(x, 2) : '');
      cell.style.background = `color-mix(in srgb, var(--winner) ${Math.round((45 * Math.abs(x)) / largest)}%, var(--raised))`;
      return cell;
    };
    this.grid.replaceChildren(table(['', ...Array.from({ length: width }, (_, i) => heading(i))],
      attached.map((line, t) => h('tr', {}, h('th', { scope: 'row', class: 'word' }, label(this.trace, one.tokens[t])), line.map((x, i) => heat(x, t, i)))),
      'What the model attached to each token of the output: how much it looked at each place of the source'));
  }
}

class ResultsView {
  constructor(trace) {
    this.trace = trace;
    this.element = h('div', {});
  }
  show(sentence) {
    const { end } = sentence;
    if (!end) return this.element.replaceChildren(h('p', {}, 'The trace ends before this sentence does.'));
    const some = (of) => end.hypotheses.some((one) => of(one) !== undefined);
    const met = some((one) => one.constraints_total), blocks = some((one) => one.blocks);
    const rows = end.hypotheses.map((one, i) => h('tr', { class: i === 0 ? 'winner' : null },
      h('td', { class: 'number' }, String(i + 1)), cell(one.score, 4), cell(one.log_prob, 4), h('td', { class: 'number' }, String(one.tokens.length)),
      h('td', {}, one.finished ? 'yes' : 'no'), met ? h('td', {}, `${one.constraints_met ?? 0} of ${one.constraints_total ?? 0}`) : null,
      blocks ? h('td', {}, (one.blocks ?? []).join(' ')) : null, h('td', { class: 'text' }, textOf(this.trace, one.tokens.filter((t) => !this.trace.eos.has(t))) || '–')));
    const best = end.hypotheses[0];
    this.element.replaceChildren(
      end.failure ? h('p', { class: 'failure', role: 'alert' }, h('strong', {}, end.failure), `: ${end.message}`) : '',
      best ? table(['', 'Score', 'Log-probability', 'Tokens', 'Finished', ...(met ? ['Constraints'] : []), ...(blocks ? ['Blocks'] : []), 'Text'], rows, 'Hypotheses') : '',
      best ? h('section', {}, h('h2', {}, 'The best, token by token'), h('p', { class: 'legend' }, 'Below each token its log-probability (natural logarithm), and a bar as long as it is probable. Score: what the search ranks by.'), h('ol', { class: 'tokens' }, best.tokens.map((token, i) =>
        h('li', {}, h('span', { class: 'word' }, label(this.trace, token)), h('span', { class: 'meter' }, sizedBar(best.log_probs[i])),
          h('small', { class: 'number', 'data-value': best.log_probs[i] === null ? '' : best.log_probs[i] }, number(best.log_probs[i], 2)))))) : '');
  }
}

// A bar as long as a token is probable.
function sizedBar(logProb) {
  const bar = h('span', {});
  bar.style.width = `${100 * Math.exp(logProb ?? -Infinity)}%`;
  return bar;
}

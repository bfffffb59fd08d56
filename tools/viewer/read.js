// From the lines of a trace to sentences, each with a tree of what was fed and of what came back.

const went = 1, guessed = 2; // bits of a node's `state`: it was fed; a block brought it as a guess

class Sentence {
  constructor(id) {
    this.id = id;
    this.about = '';
    this.source = [];
    this.admissions = [];
    this.took = new Set(); // steps of the batch
    this.end = null;
    this.begin([], []);
  }
  // Also after it has gone back to wait: then from nothing.
  begin(prompt, prefix) {
    this.prompt = prompt;
    this.prefix = prefix;
    this.steps = [];
    this.nodes = [];
    this.worst = [];
    this.root = this.add(null, -1);
    this.start = this.root; // where the output begins, once the prompt is there
    this.blocks = this.banks = false;
  }
  add(parent, token) {
    const node = {
      sentence: this, number: this.nodes.length, parent, token, depth: parent ? parent.depth + 1 : 0, logProb: null, boost: 0,
      sum: parent ? parent.sum : 0, listed: 0, at: -1, fed: -1, slot: -1, state: 0, kept: false, winner: false, line: null,
      results: null, children: null, folded: false,
    };
    this.nodes.push(node);
    if (parent) (parent.children ??= []).push(node);
    if (node.depth === this.prompt.length) this.start = node;
    return node;
  }
  child(parent, token) {
    if (parent.children) for (const node of parent.children) if (node.token === token) return node;
    return null;
  }
  get admission() { return this.admissions[this.admissions.length - 1]; }
  get slots() { return this.admission ? this.admission.slots : 0; }
}

class Trace {
  constructor(text) {
    this.texts = new Map();
    this.eos = new Set();
    this.sentences = new Map();
    this.steps = [];
    this.slots = 0;
    this.rows = this.forks = this.restarted = 0;
    this.faults = [];
    this.at = []; // the node that every slot ends with
    this.asked = [];
    this.alive = new Set();
    let from = 0, number = 0;
    while (from < text.length) {
      let to = text.indexOf('\n', from);
      if (to < 0) to = text.length;
      const line = text.slice(from, to).trim();
      from = to + 1;
      ++number;
      if (line === '') continue;
      try {
        this.read(JSON.parse(line));
      } catch (error) { // a program that was killed leaves half a line
        this.faults.push(`line ${number}: ${error.message}`);
      }
    }
    this.list = [...this.sentences.values()].sort((a, b) => a.id - b.id);
  }

  sentence(id) {
    let one = this.sentences.get(id);
    if (!one) this.sentences.set(id, one = new Sentence(id));
    return one;
  }

  read(event) {
    if ('token' in event) this.texts.set(event.token, 'text' in event ? event.text : Uint8Array.from(event.bytes));
    else if ('rows' in event) this.plan(event);
    else if ('answer' in event) this.answer(event);
    else if ('end' in event) this.finish(event);
    else if ('admit' in event) this.admit(event);
    else if ('sentence' in event) Object.assign(this.sentence(event.sentence), { about: event.about, source: event.source ?? [] });
    else if ('eos' in event) this.eos = new Set(event.eos);
    else if (!('sluice_trace' in event)) throw new Error('what is this?');
    else if (event.sluice_trace !== 1) throw new Error(`format ${event.sluice_trace}; this page knows 1`);
  }

  admit(event) {
    this.sendBack();
    const one = this.sentence(event.admit);
    if (one.admission) {
      ++this.restarted;
      one.admission.until ??= event.step;
    }
    for (const other of this.alive) // a sentence that lost its slots has gone back to wait
      if (other.admission.base < event.base + event.slots && event.base < other.admission.base + other.slots)
        this.leave(other, event.step);
    this.alive.add(one);
    one.begin(event.prompt, event.prefix ?? []);
    one.admissions.push({ step: event.step, base: event.base, slots: event.slots, until: null });
    this.slots = Math.max(this.slots, event.base + event.slots);
  }

  // A step without an answer found no room: the sentences that took part wait again.
  sendBack() {
    const last = this.steps[this.steps.length - 1];
    if (!last || last.answered || last.over) return;
    last.over = true;
    for (const [id] of last.rows) if (this.alive.has(this.sentence(id))) this.leave(this.sentence(id), this.steps.length);
  }

  leave(one, step) {
    one.admission.until ??= step;
    this.alive.delete(one);
  }

  // All rows of a step are one transaction: what they go on from is what was there before.
  plan(event) {
    this.sendBack();
    const step = { rows: event.rows, answered: false, released: event.release ?? [] };
    this.steps.push(step);
    this.asked = [];
    const before = event.rows.map((row) => this.at[row[1]]);
    event.rows.forEach(([id, from, to, length, tokens, lines = 1], i) => {
      const sentence = this.sentence(id);
      let own = sentence.steps[sentence.steps.length - 1];
      if (!own || own.step !== event.step) sentence.steps.push(own = { step: event.step, rows: [] });
      sentence.took.add(event.step);
      let node = this.beginning(sentence, before[i], length);
      for (let n = node; n && !n.kept; n = n.parent) n.kept = true;
      const row = { from, to, length, parent: node, nodes: [], guesses: 0, asked: [], lists: [], forked: from !== to };
      tokens.forEach((token, j) => {
        node = sentence.child(node, token) ?? sentence.add(node, token);
        node.state |= went;
        if (node.fed < 0) node.fed = sentence.steps.length - 1;
        node.slot = to;
        if (j > 0 && node.depth > sentence.prompt.length + sentence.prefix.length) {
          if (!node.kept) node.state |= guessed;
          ++row.guesses;
          sentence.blocks = true;
        } else for (let n = node; n && !n.kept; n = n.parent) n.kept = true;
        row.nodes.push(node);
        if (j >= tokens.length - lines) {
          row.asked.push(node);
          this.asked.push([sentence, node, row]);
        }
      });
      own.rows.push(row);
      this.at[to] = node;
      ++this.rows;
      if (row.forked) ++this.forks;
    });
  }

  // The node of the first `length` tokens of a slot; of somebody else's prompt, too.
  beginning(sentence, node, length) {
    if (length === 0 || !node) return sentence.root;
    while (node.depth > length) node = node.parent;
    if (node.sentence === sentence && sentence.nodes[node.number] === node) return node;
    const tokens = [];
    for (let n = node; n.parent; n = n.parent) tokens.push(n.token);
    node = sentence.root;
    for (const token of tokens.reverse()) {
      node = sentence.child(node, token) ?? sentence.add(node, token);
      node.state |= went;
      node.kept = true;
    }
    return node;
  }

  answer(event) {
    const step = this.steps[this.steps.length - 1];
    step.answered = true;
    event.lines.forEach((line, i) => {
      const [sentence, node, row] = this.asked[i], listed = [];
      row.lists.push(listed);
      node.line = {
        entropy: line.entropy ?? null, bank: line.label ?? -1, rank: line.rank ?? 0, noise: line.noise === true,
        plain: line.plain === true, invalid: line.invalid === true, impossible: line.impossible === true, count: (line.best ?? []).length / 2,
      };
      if (node.line.bank >= 0) sentence.banks = true;
      for (const [list, ranked] of [[line.best, true], [line.probes, false]])
        for (let j = 0; list && j < list.length; j += 2) {
          const child = sentence.child(node, list[j]) ?? sentence.add(node, list[j]);
          if (ranked || !listed.includes(child)) listed.push(child); // a probe may be in the list too
          if (ranked) child.listed = j / 2 + 1;
          child.at = sentence.steps.length - 1;
          child.logProb = list[j + 1];
          child.sum = node.sum + (child.depth > sentence.prompt.length ? child.logProb ?? 0 : 0);
        }
    });
    event.lines.forEach(({ boosts = [] }, i) => {
      const [sentence, node] = this.asked[i];
      for (let j = 0; j < boosts.length; j += 2) sentence.child(node, boosts[j]).boost = boosts[j + 1];
    });
    for (const [sentence, , { nodes }] of this.asked) // guesses were fed before their line was known
      for (const one of nodes) if (one.depth > sentence.prompt.length) one.sum = one.parent.sum + (one.logProb ?? 0);
  }

  finish(event) {
    const one = this.sentence(event.end);
    one.end = event;
    if (one.admission) this.leave(one, event.step);
    event.hypotheses.forEach((hypothesis, rank) => {
      let node = one.start;
      hypothesis.tokens.forEach((token, i) => {
        let next = one.child(node, token);
        if (!next) {
          next = one.add(node, token);
          next.logProb = hypothesis.log_probs[i];
          next.sum = node.sum + (next.logProb ?? 0);
          next.at = one.steps.length - 1;
        }
        node = next;
        node.kept = true;
        if (rank === 0) node.winner = true;
      });
      if (rank === 0) one.start.winner = true;
      (node.results ??= []).push(rank);
    });
  }
}

// SPDX-License-Identifier: Apache-2.0
/// \file
/// The page of TracePage, without the trace. Made of tools/viewer/ by tools/make-viewer: change it there.
#pragma once

#include <sluice/language.hpp>

#include <string_view>

// clang-format off
namespace sluice::inline v0::detail {

using std::literals::string_view_literals::operator""sv;  // a length that the compiler need not count is read faster

inline constexpr std::string_view trace_page_before[] = {
    R"page(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-h7HurcHVO5BuupMF2ViHpt1X34FZPMZVCfDeT/icraA='; style-src 'sha256-w7JsoyoFUVEutOZxvE1WmbDWbCl13NK1BnRye2cCGQs='; base-uri 'none'; form-action 'none'">
<title>What a decoder did</title>
<style>)page"sv,
    R"page(:root {
  --paper: #fcfbf8; --raised: #ffffff; --ink: #1c2227; --muted: #58626b; --edge: #c3c8c6; --rule: #dddfdb;
  --winner: #0a6870; --on: #2f4858; --result: #0a6870; --end: #7a5310; --guess: #a5342a; --stuck: #8a2f6b; --lost: #6b7178;
  --soft: #e3f0ef; --idle: #8f9aa0; --bar: #7fa9ab; --accepted: #2e6b37; --accepted-soft: #e4f1e3; --guess-soft: #f9e6e2;
  color-scheme: light;
}
:root[data-dark='true'] {
  --paper: #14181b; --raised: #1b2125; --ink: #e8eae8; --muted: #a3adb4; --edge: #4a545b; --rule: #323a40;
  --winner: #63cfcf; --on: #c2d3de; --result: #63cfcf; --end: #dfb36a; --guess: #f0917f; --stuck: #e59acb; --lost: #949ea6;
  --soft: #17383a; --idle: #7d8990; --bar: #3f7478; --accepted: #8fd296; --accepted-soft: #1d3a22; --guess-soft: #43231e;
  color-scheme: dark;
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body {
  margin: 0 auto; padding: 16px 20px 32px; max-width: 1500px; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif;
}
header { display: flex; flex-wrap: wrap; gap: 6px 18px; align-items: baseline; }
h1 { font-size: 18px; margin: 0; } h2 { font-size: 15px; margin: 20px 0 6px; }
#totals { flex: 1; }
.muted { color: var(--muted); font-size: 13px; }
.number { font-variant-numeric: tabular-nums; }
.bar { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; margin: 10px 0; }
button, select, input { font: inherit; color: inherit; accent-color: var(--winner); }
button, select { background: var(--raised); border: 1px solid var(--edge); border-radius: 6px; padding: 4px 11px; max-width: 100%; }
button { cursor: pointer; } button:hover { border-color: var(--ink); }
button.plain { border: 0; background: none; padding: 0 4px; text-decoration: underline; }
:focus-visible { outline: 3px solid var(--winner); outline-offset: 2px; }
.choose { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; margin-top: 12px; }
.choose select { flex: 0 1 520px; min-width: 0; }
#about { margin: 10px 0 2px; font-size: 17px; min-height: 1.4em; overflow-wrap: anywhere; }
#summary { margin: 0 0 10px; }
#tabs { display: flex; flex-wrap: wrap; gap: 2px; border-bottom: 1px solid var(--rule); }
[role='tab'] { border: 0; border-bottom: 3px solid transparent; border-radius: 0; background: none; padding: 7px 14px; color: var(--muted); }
[role='tab'][aria-selected='true'] { color: var(--ink); border-bottom-color: var(--winner); font-weight: 600; }
.split { display: grid; grid-template-columns: minmax(0, 1fr) 260px; gap: 14px; }
.frame { position: relative; height: min(62vh, 620px); min-height: 300px; overflow: hidden; background: var(--raised); border: 1px solid var(--rule); border-radius: 8px; touch-action: none; }
.frame canvas, .frame svg { position: absolute; left: 0; top: 0; }
#batch-frame { margin-top: 10px; } #tree-frame { cursor: grab; } #tree-frame text { cursor: text; }
aside { background: var(--raised); border: 1px solid var(--rule); border-radius: 8px; padding: 10px 14px; overflow: auto; max-height: min(62vh, 620px); }
dl { margin: 0; } dt { color: var(--muted); font-size: 12.5px; } dd { margin: 0 0 7px; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
svg text { fill: var(--on); } svg .value, svg .more { fill: var(--muted); }
svg rect { fill: var(--raised); stroke: none; } svg .edge { fill: none; stroke: var(--edge); stroke-width: 1.2; }
svg .winner text, svg .result text { fill: var(--winner); } svg .winner .word { font-weight: 650; } svg .winner rect { fill: var(--soft); }
svg .edge.winner { stroke: var(--winner); stroke-width: 2.6; } svg .edge.lost, svg .edge.guess, svg .edge.end { stroke-dasharray: 3 3; }
svg .stuck text { fill: var(--stuck); } svg .lost text { fill: var(--lost); } svg .end text { fill: var(--end); } svg .guess text { fill: var(--guess); text-decoration: line-through; }
svg .ends rect { stroke: var(--winner); stroke-width: 1.2; } svg .selected rect { stroke: var(--ink); stroke-width: 2; }
.scroll { overflow: auto; max-height: 70vh; border: 1px solid var(--rule); border-radius: 8px; background: var(--raised); margin: 10px 0; }
table { border-collapse: collapse; width: 100%; } caption { text-align: left; padding: 8px 10px; font-weight: 600; }
th, td { text-align: left; padding: 4px 10px; border-top: 1px solid var(--rule); vertical-align: top; }
thead th { color: var(--muted); font-weight: 500; font-size: 13px; position: sticky; top: 0; background: var(--raised); border-top: 0; }
td.number, th.number { text-align: right; white-space: nowrap; } td.text { min-width: 16em; } tr.winner td { background: var(--soft); } tr.lost td { color: var(--lost); }
.mark { display: inline-block; width: 9px; height: 9px; border-radius: 50%; margin-right: 7px; background: var(--lost); }
.legend .mark { margin-left: 12px; margin-right: 5px; } .mark.winner { background: var(--winner); } .mark.on { background: var(--on); } .mark.result { background: var(--winner); } .mark.end { background: var(--end); } .mark.guess { background: var(--guess); } .mark.stuck { background: var(--stuck); }
.nothing { color: var(--stuck); font-size: 13px; }
.tree { display: grid; grid-template: 'bar legend' 'split split' 'help help' / auto minmax(0, 1fr); column-gap: 18px; align-items: center; }
.tree > .split { grid-area: split; } #tree-legend { grid-area: legend; font-size: 12.5px; } #tree-help { grid-area: help; } #tree-legend b { color: var(--ink); font-weight: 600; }
#tree-legend .mark { margin-left: 0; } .kind { display: inline-block; margin-right: 12px; }
#step { flex: 1 1 200px; max-width: 560px; }
.legend { font-size: 13px; color: var(--muted); } .swatch { width: 16px; height: 11px; border-radius: 2px; margin-left: 10px; }
.swatch.run { background: hsl(190 42% 46%); } .swatch.spare { background: var(--soft); border: 1px solid var(--rule); } .swatch.refill { width: 3px; height: 15px; background: var(--ink); }
.swatch.idle { background: linear-gradient(var(--soft) 40%, var(--idle) 40% 60%, var(--soft) 60%); }
td.heat { min-width: 3.2em; border-left: 1px solid var(--rule); } th.word { white-space: pre; font-weight: 500; }
ol.rounds, ol.tokens, .round ol { list-style: none; margin: 0; padding: 0; }
.round { display: flex; flex-wrap: wrap; gap: 10px; align-items: baseline; padding: 3px 0; } .round > .number { min-width: 2.2em; text-align: right; }
.round ol { display: flex; flex-wrap: wrap; gap: 4px; }
.chip { border: 1px solid var(--edge); border-radius: 5px; padding: 1px 7px; background: var(--raised); color: var(--ink); white-space: pre; }
.chip.on, .chip.result { border-color: var(--accepted); background: var(--accepted-soft); color: var(--accepted); }
.chip.guess, .chip.lost, .chip.end { border-color: var(--guess); background: var(--guess-soft); color: var(--guess); text-decoration: line-through; }
td.bank { min-width: 110px; border-left: 1px solid var(--rule); } td.holds { outline: 2px solid var(--winner); outline-offset: -3px; }
.fill1, .fill2, .fill3, .fill4, .fill5 { background: color-mix(in srgb, var(--winner) 8%, var(--raised)); }
.fill3 { background: color-mix(in srgb, var(--winner) 14%, var(--raised)); } .fill4, .fill5 { background: color-mix(in srgb, var(--winner) 20%, var(--raised)); }
ol.tokens { display: flex; flex-wrap: wrap; gap: 10px 8px; }
ol.tokens li { display: grid; justify-items: center; gap: 2px; } ol.tokens .word { white-space: pre; }
.meter { display: block; width: 46px; height: 5px; background: var(--rule); border-radius: 3px; overflow: hidden; } .meter span { display: block; height: 100%; background: var(--winner); }
.failure, #faults { border-left: 4px solid var(--guess); background: var(--guess-soft); padding: 8px 12px; }
.sr { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
dialog { background: var(--raised); color: var(--ink); border: 1px solid var(--edge); border-radius: 10px; max-width: 560px; } dialog td { border: 0; } kbd { font: 13px ui-monospace, monospace; border: 1px solid var(--edge); border-radius: 4px; padding: 0 5px; }
@media (max-width: 800px) { /* what is looked at begins in the upper third: what describes comes after it */
  body { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 8px; padding: 8px 10px; } header { display: contents; } h1 { flex: 1; font-size: 16px; }
  main, #faults { flex: 1 1 100%; min-width: 0; } #totals { order: 3; flex: 1 1 100%; } main { display: flex; flex-direction: column; }
  #about, #summary { order: 1; margin: 6px 0 0; } #about { font-size: 15px; }
  button, select { padding: 3px 9px; } .choose { margin: 0; flex-wrap: nowrap; } .choose select { flex: 1; } .choose label { position: absolute; clip-path: inset(50%); }
  #tabs { flex-wrap: nowrap; overflow-x: auto; } [role='tab'] { padding: 5px 10px; flex: none; } .bar { margin: 6px 0; gap: 6px; } .roomy { display: none; }
  .tree { grid-template: 'bar' 'split' 'legend' 'help' / minmax(0, 1fr); } #tree-legend { margin-top: 6px; }
  #step { flex-basis: 120px; } #step-now { font-size: 13px; } .split { grid-template-columns: minmax(0, 1fr); } aside { max-height: none; } .frame { height: 52vh; } p { margin: 6px 0; }
}
)page"sv,
    R"page(</style>
</head>
<body>
<header>
<h1>What a decoder did</h1>
<span id="totals" class="muted"></span>
<button type="button" id="keys">Keys</button>
<button type="button" id="theme">Dark</button>
</header>
<noscript><p>This page draws a trace, and needs its script for that. It loads nothing.</p></noscript>
<p id="faults" role="alert" hidden></p>
<main>
<div class="choose"><label for="sentence">Sentence</label><select id="sentence"></select></div>
<p id="about"></p>
<p id="summary" class="muted"></p>
<div id="tabs" role="tablist" aria-label="Views"></div>
<div id="panels"></div>
</main>
<dialog id="help" aria-label="Keys">
<h2>Keys</h2>
<table>
<tr><td><kbd>1</kbd> … <kbd>7</kbd></td><td>the views, from left to right</td></tr>
<tr><td><kbd>[</kbd> <kbd>]</kbd></td><td>sentence before, next sentence</td></tr>
<tr><td><kbd>,</kbd> <kbd>.</kbd></td><td>step before, next step of the beam</td></tr>
<tr><td>arrows</td><td>in the tree: parent, child, above, below; in the batch: step and slot</td></tr>
<tr><td><kbd>Enter</kbd></td><td>in the tree: fold, unfold; in the batch: the tree of that sentence</td></tr>
<tr><td><kbd>+</kbd> <kbd>-</kbd> <kbd>0</kbd></td><td>zoom; all of it. With a mouse: Ctrl and wheel; drag</td></tr>
<tr><td><kbd>w</kbd> <kbd>p</kbd></td><td>in the tree: the result from its beginning, again: its end; show or hide pruned candidates</td></tr>
<tr><td><kbd>t</kbd> <kbd>?</kbd></td><td>light or dark; these keys</td></tr>
</table>
<form method="dialog"><button>Close</button></form>
</dialog>
<script type="application/jsonl" id="trace">
)page"sv,
};

inline constexpr std::string_view trace_page_after[] = {
    R"page(</script>
<script>)page"sv,
    R"page(
(() => {
"use strict";
)page"sv,
    R"page(// The little that is needed of a framework.

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
)page"sv,
    R"page(// From the lines of a trace to sentences, each with a tree of what was fed and of what came back.

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
)page"sv,
    R"page(// How tokens, numbers and fates are said.

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
)page"sv,
    R"page(// Where the nodes of a tree lie: a row for every leaf, a column for every token. O(nodes).

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
)page"sv,
    R"page(// The tree of hypotheses. What is seen is drawn: as SVG where it can be read, as a canvas from afar.

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
)page"sv,
    R"page(// The two ways in which the tree is drawn.

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
)page"sv,
    R"page(// The beam of one step: which hypotheses were in it, the answer to each, and what became of the candidates.

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
)page"sv,
    R"page(// The batch over time: which sentence has which slot in which step, which wait, which come in.

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
)page"sv,
    R"page(// Blocks and what of them was accepted, banks, the results.

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
)page"sv,
    R"page(// Puts the page together.

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
)page"sv,
    R"page(})();
)page"sv,
    R"page(</script>
</body>
</html>
)page"sv,
};

}  // namespace sluice::inline v0::detail

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trace_page.test.py TRANSLATE MODEL SAMPLE [--pictures FOLDER]: the pages of --trace, in a browser, by its keys.

What the page says is compared with the lines of the trace, which are read here in another way. --pictures writes those of
docs/images/ too.
"""

import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import browser  # noqa: E402  (beside this file)
from browser import check  # noqa: E402

searches = {
    "greedy": ["--search", "greedy"],
    "beam": ["--width", "4", "--n-best", "4"],
    "constrained": ["--width", "8", "--n-best", "4", "--constraints", "constraints"],
    "blockwise": ["--search", "blockwise", "--proposer", "ngram,heads", "--block", "4"],
    "sampling": ["--search", "sample", "--n-best", "3", "--seed", "4", "--top-k", "8"],
}


class Told:
    """A trace, read line by line: what every list said, by all the tokens before it."""

    def __init__(self, file):
        self.prompt, self.lists, self.steps, self.results, self.about, self.rows = {}, {}, {}, {}, {}, 0
        self.lines, self.texts, self.guesses, self.kept, self.banks = {}, {}, {}, {}, {}
        self.source, self.entropies = {}, {}
        slots, asked, open_guesses = {}, [], {}
        for line in open(file, encoding="utf-8"):
            event = json.loads(line)
            if "token" in event:
                self.texts[event["token"]] = event.get("text")
            elif "about" in event:
                self.about[event["sentence"]] = event["about"]
                self.source[event["sentence"]] = event["source"]
            elif "admit" in event:
                self.prompt[event["admit"]] = len(event["prompt"])
                self.lists[event["admit"]], self.steps[event["admit"]] = {}, []
            elif "rows" in event:
                before, asked, fresh = dict(slots), [], set()
                for one, start, to, length, tokens, *lines in event["rows"]:
                    if one not in fresh:
                        fresh.add(one)
                        self.steps[one].append([])
                    if to in open_guesses:
                        self.kept[one] = self.kept.get(one, 0) + length - open_guesses[to]
                        del open_guesses[to]
                    slots[to] = before.get(start, ())[:length] + tuple(tokens)
                    self.steps[one][-1].append(slots[to])
                    self.rows += 1
                    if len(tokens) > 1:
                        self.guesses[one] = self.guesses.get(one, 0) + len(tokens) - 1
                        open_guesses[to] = length + 1
                    count = lines[0] if lines else 1
                    asked += [(one, slots[to][: len(slots[to]) - i], i == 0) for i in reversed(range(count))]
            elif "answer" in event:
                for (one, before, last), line in zip(asked, event["lines"], strict=True):
                    flat = line.get("best", []) + line.get("probes", [])
                    self.lists[one].setdefault(before, {}).update(zip(flat[::2], flat[1::2]))
                    where = (one, len(self.steps[one]) - 1)
                    if last:
                        self.entropies.setdefault(where, []).append(line["entropy"])
                    self.lines.setdefault(where, []).extend(dict(zip(flat[::2], flat[1::2])).values())
                    if "label" in line:
                        self.banks.setdefault(one, []).append((len(self.steps[one]) - 1, line["label"]))
            elif "end" in event:
                self.results[event["end"]] = event
                if one_guess := [to for to in open_guesses if slots[to] in self.steps[event["end"]][-1]]:
                    held = self.prompt[event["end"]] + len(event["hypotheses"][0]["tokens"])
                    for to in one_guess:  # what it ends with is the model's own, unless a guess was the end
                        sure = self.agreed(slots[to], event) - open_guesses.pop(to)
                        self.kept[event["end"]] = self.kept.get(event["end"], 0) + min(sure, held)

    def agreed(self, held, event):
        """How many of a slot's tokens are in the result."""
        output = event["hypotheses"][0]["tokens"]
        count = self.prompt[event["end"]]
        while count < len(held) and count - self.prompt[event["end"]] < len(output) and \
                held[count] == output[count - self.prompt[event["end"]]]:
            count += 1
        return count

    def sum(self, one, held):
        total = 0.0
        for i in range(self.prompt[one], len(held)):
            total += self.lists[one][held[:i]].get(held[i]) or 0.0
        return total

    def text(self, tokens):
        return "".join(self.texts[token] for token in tokens).strip()


def values(page, selector):
    """Numbers of cells, in full."""
    found = page.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map((cell) => cell.dataset.value)")
    return [float(x) if x else math.nan for x in found]


def detail(page, name):
    return page.evaluate(f"document.querySelector('#details [data-of=\"{name}\"]')?.textContent")


def number_of(page, name):
    return page.evaluate(f"document.querySelector({json.dumps(name)}).textContent")


def check_results(page, told, one, name):
    hypotheses = told.results[one]["hypotheses"]
    rows = "#panel-results tbody tr"
    check(f"{name} {one}: scores", values(page, f"{rows} td:nth-child(2)") == [h["score"] for h in hypotheses])
    check(f"{name} {one}: sums", values(page, f"{rows} td:nth-child(3)") == [h["log_prob"] for h in hypotheses])
    check(f"{name} {one}: texts", page.texts(f"{rows} td.text") == [told.text(h["tokens"]) or "–" for h in hypotheses])
    check(f"{name} {one}: tokens", values(page, "#panel-results .tokens small") == hypotheses[0]["log_probs"])


def check_attention(page, told, one, name):
    hypotheses = told.results[one]["hypotheses"]
    source = told.source[one]
    for i in range(len(hypotheses) if len(hypotheses) < 3 else 2):
        page.evaluate(f"""(() => {{ const chooser = document.getElementById("attended"); chooser.value = "{i}";
                      chooser.dispatchEvent(new Event("change")) }})()""")
        attached = hypotheses[i]["attached"]
        check(f"{name} {one}: attention of hypothesis {i}", values(page, "#panel-attention td") == [x for line in attached for x in line])
        check(f"{name} {one}: it adds up", all(abs(sum(line) - 1) < 1e-4 for line in attached))
        check(f"{name} {one}: places", page.texts("#panel-attention thead th")[1:] == [*source, "end"])
        check(f"{name} {one}: tokens", len(page.texts("#panel-attention tbody th")) == len(hypotheses[i]["tokens"]))


def check_beam(page, told, one, name):
    """By the keys, step by step."""
    for step, rows in enumerate(told.steps[one]):
        if step > 0:
            page.press(".")
        check(f"{name} {one}: the slider is at {step}", page.evaluate("document.getElementById('step').value") == str(step))
        sums = sorted(values(page, "#panel-beam .scroll:nth-child(1) tbody td:nth-child(5)"))
        check(f"{name} {one}, step {step}: sums of rows", sums == sorted(told.sum(one, held) for held in rows))
        entropies = sorted(values(page, "#panel-beam .scroll:nth-child(1) tbody td:nth-child(6)"))
        check(f"{name} {one}, step {step}: entropies", entropies == sorted(told.entropies[one, step]) and min(entropies) >= 0)
        expected = sorted(p for p in told.lines[one, step] if p is not None)
        found = sorted(p for p in values(page, "#panel-beam .scroll:nth-child(2) tbody td:nth-child(5)") if p == p)
        if len(rows) == 1:  # of many, the best
            expected = expected[-300:]
        check(f"{name} {one}, step {step}: candidates", found == expected)


def check_tree(page, told, one, name):
    contexts = told.lists[one]
    nodes = {held[:i] for rows in told.steps[one] for held in rows for i in range(1, len(held) + 1)}
    nodes |= {held + (token,) for held, line in contexts.items() for token in line}
    start = next(iter(told.steps[one]))[0][: told.prompt[one]]
    nodes |= {start + tuple(h["tokens"][:i]) for h in told.results[one]["hypotheses"] for i in range(1, len(h["tokens"]) + 1)}
    summary = number_of(page, "#summary")
    check(f"{name} {one}: {len(nodes)} tokens in the tree: {summary}", f", {len(nodes):,} tokens in the tree" in summary)
    page.evaluate("document.getElementById('tree-frame').focus()")
    page.press("w")
    best = told.results[one]["hypotheses"][0]
    check(f"{name} {one}: the result's sum", abs(float(detail(page, "Sum").replace("−", "-")) - best["log_prob"]) < 1e-4)
    check(f"{name} {one}: the result's fate", detail(page, "Fate").startswith("hypothesis 1"))
    for left in reversed(range(len(best["tokens"]) - 1)):
        page.press("ArrowLeft")
        check(f"{name} {one}: token {left}", detail(page, "Number") == str(best["tokens"][left]))
    shown = number_of(page, "#tree-extent")
    page.press("Enter")
    check(f"{name} {one}: folded", number_of(page, "#tree-extent") != shown)
    page.press("Enter")
    check(f"{name} {one}: unfolded", number_of(page, "#tree-extent") == shown)
    page.press("p")
    everything = f"{len(nodes) - told.prompt[one] + 1:,} node"
    check(f"{name} {one}: {everything}: {number_of(page, '#tree-extent')}", number_of(page, "#tree-extent").startswith(everything))
    page.press("p", "Home", "0")


def check_search(page, told, name):
    totals = number_of(page, "#totals")
    check(f"{name}: {totals}", f" {told.rows:,} rows" in totals and f"{len(told.results)} sentences" in totals)
    for one in sorted(told.results):
        check(f"{name} {one}: what it is", number_of(page, "#about") == told.about[one])
        page.press("1")
        check_tree(page, told, one, name)
        page.press("2")
        check_beam(page, told, one, name)
        tabs = page.evaluate("[...document.querySelectorAll('[role=tab]:not([hidden])')].map((tab) => tab.textContent)")
        check(f"{name}: views {tabs}", ("Blocks" in tabs) == (one in told.guesses) and ("Banks" in tabs) == (one in told.banks))
        if "Blocks" in tabs:
            page.press(str(tabs.index("Blocks") + 1))
            check(f"{name} {one}: guesses", values(page, "#guesses") == [told.guesses[one]])
            check(f"{name} {one}: accepted", values(page, "#accepted") == [told.kept.get(one, 0)])
        if "Banks" in tabs:
            page.press(str(tabs.index("Banks") + 1))
            found = values(page, "#panel-banks td.bank")
            steps, width = len(told.steps[one]), 1 + max(bank for _, bank in told.banks[one])
            check(f"{name} {one}: banks", found == [told.banks[one].count((s, b)) for s in range(steps) for b in range(width)])
        page.press(str(tabs.index("Attention") + 1))
        check_attention(page, told, one, name)
        page.press(str(tabs.index("Results") + 1))
        check_results(page, told, one, name)
        page.press("]")


def check_ways(page):
    """What else keys do, of whatever page is open."""
    page.evaluate("document.getElementById('tab-tree').click(), document.getElementById('tab-tree').focus()")
    page.press("ArrowRight")
    check("arrows change the view", number_of(page, "[aria-selected=true]") == "Beam")
    page.evaluate("document.getElementById('step').focus()")
    at = int(page.evaluate("document.getElementById('step').value"))
    page.press("ArrowRight" if at == 0 else "ArrowLeft")
    check("the slider takes arrows", int(page.evaluate("document.getElementById('step').value")) == (1 if at == 0 else at - 1))
    check("and shows that step", number_of(page, "#step-now").startswith(f"step {1 if at == 0 else at - 1} "))
    dark = page.evaluate("document.documentElement.dataset.dark")
    page.press("t")
    check("t changes the theme", page.evaluate("document.documentElement.dataset.dark") != dark)
    page.press("t", "?")
    check("? tells of the keys", page.evaluate("document.getElementById('help').open"))
    page.press("Escape")
    page.evaluate("document.getElementById('tab-batch').click(), document.getElementById('batch-frame').focus()")
    page.press("Home", "ArrowRight", "ArrowRight")
    check("the batch at step 2", number_of(page, "#batch-now").startswith("Step 2: "))
    page.press("Enter")
    check("Enter opens the tree", number_of(page, "[aria-selected=true]") == "Tree")
    page.evaluate("document.activeElement.blur()")
    reached = set()
    for _ in range(40):
        page.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.getAttribute('aria-label')"))
    check(f"Tab reaches {reached}", {"keys", "theme", "sentence", "tab-tree", "Zoom in", "show-pruned", "tree-frame"} <= reached)


def check_contrast(style):
    """Of all that is read, in both themes: 4.5 to 1, as WCAG 2.2 AA has it."""
    def luminance(colour):
        parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
        return sum(w * (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4)
                   for w, c in zip((0.2126, 0.7152, 0.0722), parts))
    themes = re.findall(r"^:root[^{]*{(.*?)}", style, re.MULTILINE | re.DOTALL)
    check("two themes", len(themes) == 2)
    for theme in themes:
        names = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", theme))
        for text, on in [("ink", "paper"), ("muted", "paper"), ("ink", "soft"), ("winner", "soft"), ("guess", "guess-soft"),
                         ("accepted", "accepted-soft")] + [(name, "raised") for name in (
                             "ink", "muted", "winner", "on", "result", "end", "guess", "stuck", "lost")]:
            light, dark = sorted((luminance(names[text]), luminance(names[on])), reverse=True)
            check(f"contrast of {text} on {on}: {(light + 0.05) / (dark + 0.05):.2f}", (light + 0.05) / (dark + 0.05) >= 4.5)


def check_narrow(page, name):
    """Nothing lies beside the window of a telephone, and two thirds of it are for what is looked at."""
    for width, height in ((390, 780), (360, 640)):
        page.resize(width, height)
        for key, tab in enumerate(page.texts("[role=tab]:not([hidden])"), 1):
            page.press(str(key))
            wide = page.evaluate("document.documentElement.scrollWidth")
            check(f"{name}: {tab} is {wide} wide of {width}", wide <= width)
            top = page.evaluate("document.querySelector('[role=tabpanel]:not([hidden]) :is(.frame, .scroll, ol, .failure)').getBoundingClientRect().top + scrollY")
            check(f"{name}: {tab} begins at {top} of {height}", top <= height / 3)
            shown = page.evaluate("(() => { const tab = document.querySelector('[aria-selected=true]').getBoundingClientRect(); return tab.left >= 0 && tab.right <= innerWidth })()")
            check(f"{name}: the name of {tab} is in sight at {width}", shown)
    page.resize(1280, 860)


def in_sight(page, number):
    """Where the node of a tree is drawn: its left and right in its frame, None: not in it."""
    return page.evaluate(f"""(() => {{
        const frame = document.getElementById("tree-frame").getBoundingClientRect();
        const box = document.querySelector('#tree-frame [data-node="{number}"] rect')?.getBoundingClientRect();
        return box && box.top >= frame.top && box.bottom <= frame.bottom && box.left >= frame.left && box.right <= frame.right
            ? [box.left - frame.left, box.right - frame.left] : null }})()""")


def overlaps(page):
    """How many labels the tree has, and pairs of them that are not four dots apart."""
    return page.evaluate("""(() => {
        const all = [...document.querySelectorAll("#tree-frame svg:not([hidden]) text")].map((one) => [one.textContent, one.getBoundingClientRect()]);
        const found = [];
        all.forEach(([text, a], i) => all.slice(i + 1).forEach(([other, b]) => {
            const rows = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > Math.min(a.height, b.height) / 2;
            if (rows && a.left < b.right + 4 && b.left < a.right + 4) found.push(text + " | " + other) }));
        return [all.length, found] })()""")


def check_labels(page, name):
    """At every zoom, with and without candidates, no label covers another, and none is without letters of its token."""
    page.press("1")
    readable = 0
    for zooms in ([], ["+"], ["-"], ["-"], ["p"], ["+"], ["+"], ["w"], ["p"]):
        page.press(*zooms)
        count, found = overlaps(page)
        readable += count > 5
        check(f"{name}: of {count} labels cover each other: {found[:3]}", not found)
        words = page.texts("#tree-frame svg:not([hidden]) .word")
        check(f"{name}: words {[w for w in words if len(w) < 1 or w == '…']}", all(w and w != "…" for w in words))
    check(f"{name}: labels at {readable} zooms", readable >= 4)


def check_untouched(page, address, told, name):
    """Keys of the tree where nothing has been clicked, nor has the focus."""
    one = min(told.results)
    page.load(address)
    check(f"{name}: nothing has the focus", page.evaluate("document.activeElement === document.body"))
    shown = number_of(page, "#tree-extent")
    page.press("p")
    check(f"{name}: p shows what was pruned", (name == "greedy" or number_of(page, "#tree-extent") != shown) and
          page.evaluate("document.getElementById('show-pruned').checked"))
    page.press("p", "w")
    check(f"{name}: p hides it, w goes to the result", number_of(page, "#tree-extent") == shown and
          (detail(page, "Fate") or "").startswith("hypothesis 1"))
    page.press("ArrowLeft")
    check(f"{name}: arrows move", detail(page, "Number") == str(told.results[one]["hypotheses"][0]["tokens"][-2]))
    page.evaluate("document.getElementById('tab-tree').click(), document.getElementById('tab-tree').focus()")
    page.press("p")
    check(f"{name}: p where a button has the focus", page.evaluate("document.getElementById('show-pruned').checked"))


def check_legends(page, told, name):
    """Each view says what its numbers, colours and Bank are."""
    def seen(selector):
        return page.evaluate(f"""(() => {{ const one = document.querySelector({json.dumps(selector)});
                             return one && one.offsetParent !== null ? one.textContent : "" }})()""")
    page.press("1")
    legend = seen("#tree-legend")
    for words in ("log-probability", "candidates after it that are not shown", "a blank", "the best", "went on", "pruned",
                  "rejected guess", "unused end", "boxed"):
        check(f"{name}: the tree's legend says {words}", words in legend)
    kinds = page.evaluate("[...document.querySelectorAll('#tree-legend .mark')].map((one) => getComputedStyle(one).backgroundColor)")
    check(f"{name}: colours {kinds}", len(set(kinds)) == 6)
    page.press("2")
    check(f"{name}: the beam's legend", "Entropy, in nats" in seen("#beam-legend"))
    one = int(page.evaluate("document.getElementById('sentence').value"))
    check(f"{name}: what a bank is", ("tokens of its constraints" in seen("#beam-bank")) == (one in told.banks))
    tabs = page.texts("[role=tab]:not([hidden])")
    page.press(str(tabs.index("Results") + 1))
    check(f"{name}: the results' legend", "its log-probability" in seen("#panel-results .legend"))
    page.press(str(tabs.index("Batch") + 1))
    check(f"{name}: the batch's legend", "A colour is a sentence" in seen("#panel-batch .legend"))
    if "Banks" in tabs:
        page.press(str(tabs.index("Banks") + 1))
        check(f"{name}: the banks' legend", "tokens of its constraints" in seen("#panel-banks .legend"))


def check_long_result(page, html, folder):
    """A result of sixty tokens begins at its left; once more, its end is in sight."""
    lines = [{"sluice_trace": 1}, {"eos": [2]}, *({"token": t, "text": " " + "w" * 3 * (t % 3) + "!"} for t in range(3, 9)),
             {"admit": 0, "step": 0, "base": 0, "slots": 1, "prompt": [1]}]
    tokens = [3 + i % 6 for i in range(59)] + [2]
    for step, token in enumerate(tokens):
        lines += [{"step": step, "rows": [[0, 0, 0, step, [1 if step == 0 else tokens[step - 1]]]]},
                  {"answer": step, "lines": [{"best": [token, -0.5, *(x for i in range(step % 13) for x in (9 + i, -1.54 - i))]}]}]
    lines.append({"end": 0, "step": 60, "hypotheses": [{"tokens": tokens, "log_probs": [-0.5] * 60, "log_prob": -30.0, "score": -0.5,
                                                        "finished": True}]})
    page.load(page_of(html, "\n".join(map(json.dumps, lines)), f"{folder}/long.html"))
    first = page.evaluate("Number(document.querySelector('#tree-frame g.winner').dataset.node)")
    check(f"a long tree opens at its left: {in_sight(page, first)}", (in_sight(page, first) or [99])[0] < 40)
    page.press("w")
    check("w has the end of a long result", detail(page, "Token") == "⟨end⟩" and detail(page, "Sum") == "−30.00000")
    check(f"and shows its beginning: {in_sight(page, first)}", (in_sight(page, first) or [99])[0] < 40)
    page.press("w")
    ends = page.evaluate("Number(document.querySelector('#tree-frame g.ends')?.dataset.node ?? -1)")
    check(f"w again shows its end: {in_sight(page, ends)}", in_sight(page, ends) is not None and in_sight(page, first) is None)
    page.press("w")
    check(f"and stays there: {in_sight(page, ends)}", in_sight(page, ends) is not None)
    page.load(f"file://{folder}/long.html")
    check_labels(page, "a long one")


def check_forbidden(page, html, folder):
    """Hypotheses behind which nothing was possible say so: as the trace says it, and where all that was asked about is impossible."""
    lines = [{"sluice_trace": 1}, {"eos": [2]}, {"admit": 0, "step": 0, "base": 0, "slots": 3, "prompt": [1]},
             {"step": 0, "rows": [[0, 0, 0, 0, [1]]]}, {"answer": 0, "lines": [{"best": [3, -0.5, 4, -1.5, 5, -2.5]}]},
             {"step": 1, "rows": [[0, 0, 0, 1, [3]], [0, 0, 1, 1, [4]], [0, 0, 2, 1, [5]]]},
             {"answer": 1, "lines": [{"best": [6, -0.5], "rank": 0}, {"impossible": True, "rank": 1}, {"probes": [2, None], "rank": 2}]},
             {"step": 2, "rows": [[0, 0, 0, 2, [6]]]}, {"answer": 2, "lines": [{"best": [2, -0.25, 7, -2]}]},
             {"end": 0, "step": 3, "hypotheses": [{"tokens": [3, 6, 2], "log_probs": [-0.5, -0.5, -0.25], "log_prob": -1.25, "score": -0.4,
                                                   "finished": True}]}]
    page.load(page_of(html, "\n".join(map(json.dumps, lines)), f"{folder}/forbidden.html"))
    page.press("ArrowRight")
    check("what has a continuation", detail(page, "Fate") == "went on in slot 0" and detail(page, "What follows") is None)
    for token, slot in (("4", 1), ("5", 2)):
        page.press("ArrowDown")
        check(f"token {token} is selected", detail(page, "Number") == token)
        check(f"the fate of {token}: {detail(page, 'Fate')}",
              detail(page, "Fate") == f"went on in slot {slot}, and ended there: every continuation was forbidden, or has probability 0")
        check(f"what follows {token}: {detail(page, 'What follows')}", (detail(page, "What follows") or "").startswith("nothing: "))
    marks = [word for word in page.texts("#tree-frame .word") if "∅" in word]
    check(f"marks in the tree: {marks}", marks == ["⟨4⟩ ∅", "⟨5⟩ ∅"])
    page.press("2", ".")
    notes = page.texts("#panel-beam .scroll:nth-child(1) tbody tr")
    check(f"the beam: {notes}", [("∅" in note and "every continuation was forbidden" in note) for note in notes] == [False, True, True])
    became = [row for row in page.texts("#panel-beam .scroll:nth-child(2) tbody tr") if "⟨end⟩" in row]
    check(f"a forbidden end: {became}", len(became) == 1 and became[0].endswith("was forbidden, or has probability 0"))


def large_trace(steps, width, lists):
    """Lines of one sentence, so many hypotheses wide."""
    yield {"sluice_trace": 1}
    yield {"eos": [2]}
    yield {"sentence": 0, "about": "a & b </script><script>document.title = 'broken'</script> <!-- \u2028"}
    yield {"token": 7, "text": "</script><img src=x onerror=alert(1)>"}
    yield {"token": 8, "bytes": [0xE2, 0x96]}
    yield {"admit": 0, "step": 0, "base": 0, "slots": width, "prompt": [1]}
    for step in range(steps):
        rows = [[0, slot, slot, step, [3 + slot % lists]] for slot in range(width)] if step > 1 else []
        if step == 0:
            rows = [[0, 0, 0, 0, [1]]]
        elif step == 1:
            rows = [[0, 0, slot, 1, [3 + slot]] for slot in range(width)]
        yield {"step": step, "rows": rows}
        yield {"answer": step, "lines": [{"best": [x for i in range(width if step == 0 else lists)
                                                   for x in (3 + i, -0.5 - i / 8)], "rank": r} for r in range(len(rows))]}


def page_of(html, lines, file):
    """The same page around other lines."""
    begin = html.index('id="trace">') + len('id="trace">')
    end = html.index("</script>", begin)
    with open(file, "w", encoding="utf-8") as out:
        out.write(html[:begin] + "\n" + lines.replace("<", "\\u003c") + "\n" + html[end:])
    return f"file://{file}"


def broken(page, html, folder):
    """Traces that are none, or end in the middle."""
    begin = html.index('id="trace">') + len('id="trace">')
    whole = html[begin:html.index("</script>", begin)]
    for lines, words_of_it in ((whole[: whole.rindex('"answer"') + 20], "could not be read: 1."), ("", None), ('{"sluice_trace":2}', "knows 1")):
        page.load(page_of(html, lines, f"{folder}/broken.html"))
        page.press("1", "2", ".", ",", "3", "4", "[", "]", "t", "t")
        faults = page.evaluate("document.getElementById('faults').hidden ? null : document.getElementById('faults').textContent")
        check(f"of {len(lines)} characters it says {faults}", faults is None if words_of_it is None else words_of_it in (faults or ""))
        if not lines:
            check("an empty trace", number_of(page, "#about") == "The trace names no sentence.")


def large(page, html, folder):
    """100,000 tokens, and texts that would like to be HTML."""
    lines = "\n".join(json.dumps(line, separators=(",", ":")) for line in large_trace(100, 200, 5))
    seconds = page.load(page_of(html, lines, f"{folder}/large.html"))
    nodes = int(number_of(page, "#summary").split(", ")[2].split(" ")[0].replace(",", ""))
    page.evaluate("document.getElementById('tree-frame').focus()")
    since = time.monotonic()
    page.press("p", "0", "+", "+", "ArrowRight", "ArrowRight", "ArrowDown")
    moves = time.monotonic() - since
    page.press("0")
    print(f"{nodes} nodes: loaded in {seconds:.2f} s, seven keys took {moves:.2f} s")
    check(f"{nodes} nodes", 95000 < nodes < 105000)
    check("all are shown", number_of(page, "#tree-extent").startswith(f"{nodes:,}"))
    check("it does not stall", seconds < 60 and moves < 60)
    check("a text is a text", "<img" in (page.evaluate(
        "[...document.querySelectorAll('#panel-beam td')].map((cell) => cell.textContent).join()") if page.press("2") is None else ""))
    check("nothing ran that is not the page's", page.evaluate("document.title") == "What a decoder did")
    check("bytes that are no text", "‹e2 96›" in " ".join(page.texts("#panel-beam td")))


def take_pictures(page, folder, pictures):
    """Those of docs/images/."""
    for name, search, keys, dark, sentence, height in (
            ("viewer-beam-tree", "beam", ["1"], False, 2, 720),
            ("viewer-beam-steps-dark", "beam", ["2"] + ["."] * 3, True, 2, 770),
            ("viewer-attention", "beam", ["3"], False, 2, 560),
            ("viewer-greedy-results", "greedy", ["4"], False, 2, 460),
            ("viewer-constrained-banks", "constrained", ["3"], False, 0, 760),
            ("viewer-blockwise", "blockwise", ["3"], False, 3, 460),
            ("viewer-sampling-tree-dark", "sampling", ["1"], True, 1, 640),
            ("viewer-streaming-batch", "streaming", ["5"], False, 2, 760)):
        page.dark(dark)
        page.resize(1180, height)
        page.load(f"file://{folder}/{search}.html#sentence={sentence}")
        page.press(*keys)
        page.picture(f"{pictures}/{name}.png")


def main(path, translate, model, sample, pictures=None):
    with tempfile.TemporaryDirectory() as folder:
        lines = open(sample, encoding="utf-8").read().splitlines()
        demands = [["red", "bike"], [], ["coffee has"], ["big hospital"]]
        chosen = [lines[i] for i in (0, 1, 2, 5)]
        with open(f"{folder}/source", "w", encoding="utf-8") as file:
            file.write("\n".join(chosen) + "\n")
        with open(f"{folder}/constraints", "w", encoding="utf-8") as file:
            file.write("".join(json.dumps({"all": d}) + "\n" for d in demands))
        common = [translate, "--model", model, "--input", f"{folder}/source", "--output", f"{folder}/out"]
        for name, options in searches.items():
            for kind in ("jsonl", "html"):
                ended = subprocess.run(common + ["--trace", f"{folder}/{name}.{kind}"] + options, cwd=folder, check=False)
                check(f"{name}: exit code {ended.returncode}", ended.returncode == 0)
            traced = open(f"{folder}/out", "rb").read()
            subprocess.run(common + options, cwd=folder, check=True)
            check(f"{name}: a trace changes the output", open(f"{folder}/out", "rb").read() == traced)
        if pictures:
            subprocess.run([translate, "--model", model, "--input", sample, "--output", f"{folder}/out", "--trace",
                            f"{folder}/streaming.html", "--schedule", "streaming", "--batch", "12", "--width", "3",
                            "--refill-below", "0.5", "--max-rows", "18", "--window", "0"], check=True)
        page = browser.Browser(path)
        try:
            for name in searches:
                page.load(f"file://{folder}/{name}.html")
                told = Told(f"{folder}/{name}.jsonl")
                check_search(page, told, name)
                page.load(f"file://{folder}/{name}.html")
                check_labels(page, name)
                check_legends(page, told, name)
                check_narrow(page, name)
                check_untouched(page, f"file://{folder}/{name}.html", told, name)
            page.load(f"file://{folder}/beam.html")
            check_ways(page)
            check_contrast(page.evaluate("document.querySelector('style').textContent"))
            html = open(f"{folder}/beam.html", encoding="utf-8").read()
            check_long_result(page, html, folder)
            check_forbidden(page, html, folder)
            broken(page, html, folder)
            large(page, html, folder)
            check(f"errors in the console: {page.errors}", not page.errors)
            outside = [url for url in page.requests if not url.startswith(("file://", "about:"))]
            check(f"requests: {outside}", not outside)
            if pictures:
                os.makedirs(pictures, exist_ok=True)
                take_pictures(page, folder, os.path.abspath(pictures))
        finally:
            page.close()


if __name__ == "__main__":
    browser.run(main)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Charts of Markdown tables as SVG, in the style of benchmarks/simulation/svg.hpp: light or dark as the reader prefers.
#   benchmarks/tables/plot.py KIND FILE.md FILE.svg     draws the tables of a page; KIND: blocks, batches, masks, power, substituted
# Numbers are those of the table, digit for digit: beside their points, or shown when the pointer is on them, and in <desc>.
import math
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

WIDTH, HEIGHT, INNER, TALL = 380, 250, 310, 170
LIGHT = ("#ffffff", "#1f2328", "#d8dee4", ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#7f7f7f"))
DARK = ("#0d1117", "#e6edf3", "#30363d", ("#58a6ff", "#ff7b72", "#56d364", "#bc8cff", "#ffa657", "#a5a5a5"))


@dataclass
class Chart:
    """Lines over named points at equal distances. A number is text, as it is printed."""
    title: str
    x_label: str
    y_label: str
    names: list  # of the points on the x axis
    lines: dict  # name: a number or None for each point
    y_least: float = 0
    y_most: float = 1
    logarithmic: bool = False  # the y axis, in decades
    joined: bool = True  # by a line, else only marks
    values: bool = True  # beside the points
    slanted: bool = False  # the points' names; then there is no room for x_label
    named: bool = True  # the lines, inside; else the picture names them above its charts
    marks: list = field(default_factory=list)

    def __post_init__(self):
        if self.logarithmic:
            decades = round(math.log10(self.y_most / self.y_least))
            self.marks = [self.y_least * 10**i for i in range(decades + 1)]
        else:
            self.marks = [self.y_least + (self.y_most - self.y_least) * i / 4 for i in range(5)]
        for name, numbers in self.lines.items():
            if len(numbers) != len(self.names):
                raise ValueError(f"'{name}' has {len(numbers)} numbers for {len(self.names)} points")
            for n in numbers:
                if n is not None and not self.y_least <= number(n) <= self.y_most:
                    raise ValueError(f"'{name}': {n} is not from {self.y_least} to {self.y_most}")


def number(text):
    return float(text.replace(",", ""))


def shown(mark):
    """A mark of an axis; there is no room for many zeros."""
    return f"10^{round(math.log10(mark))}" if mark >= 10000 else f"{mark:.5g}"


def style(colours):
    ground, ink, grid, lines = colours
    return (f".ground {{ fill: {ground} }}\ntext {{ fill: {ink} }}\n.frame {{ fill: none; stroke: {ink} }}\n"
            f".grid {{ stroke: {grid} }}\n" +
            "".join(f".f{i} {{ fill: {c} }}\n.s{i} {{ stroke: {c} }}\n" for i, c in enumerate(lines)))


def words(x, y, text, anchor="middle", size=11, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{more}>{escape(text)}</text>\n'


def draw(chart, left, top):
    def x_of(i):
        return left + INNER * (i + 0.5) / len(chart.names)

    def y_of(n):
        part = (math.log(n / chart.y_least) / math.log(chart.y_most / chart.y_least) if chart.logarithmic else
                (n - chart.y_least) / (chart.y_most - chart.y_least))
        return top + TALL * (1 - part)

    out = words(left + INNER / 2, top - 10, chart.title, size=13, more=' font-weight="bold"')
    if chart.x_label:
        out += words(left + INNER / 2, top + TALL + 34, chart.x_label)
    out += (f'<text transform="translate({left - 38:.1f} {top + TALL / 2:.1f}) rotate(-90)" text-anchor="middle" '
            f'font-size="11">{escape(chart.y_label)}</text>\n')
    for mark in chart.marks:
        out += (f'<line x1="{left:.1f}" x2="{left + INNER:.1f}" y1="{y_of(mark):.1f}" y2="{y_of(mark):.1f}" '
                'class="grid"/>\n')
        out += words(left - 5, y_of(mark) + 4, shown(mark), "end", 10)
    for i, name in enumerate(chart.names):
        x, y = x_of(i), top + TALL + 15
        out += (words(x, y, name, "end", 10, f' transform="rotate(-35 {x:.1f} {y:.1f})"') if chart.slanted else
                words(x, y, name.split()[0], size=10))
    out += f'<rect x="{left:.1f}" y="{top:.1f}" width="{INNER}" height="{TALL}" class="frame"/>\n'
    for k, (name, numbers) in enumerate(chart.lines.items()):
        points = [(x_of(i), y_of(number(n)), n, chart.names[i]) for i, n in enumerate(numbers) if n is not None]
        if chart.joined:
            path = " L".join(f"{x:.1f} {y:.1f}" for x, y, _, _ in points)
            out += f'<path d="M{path}" class="s{k}"/>\n'
        for x, y, n, where in points:
            out += (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" class="f{k}">'
                    f"<title>{escape(f'{name}, {where}: {n}')}</title></circle>\n")
            if chart.values:  # above its points for the first line, below for the others
                out += words(x, y + (-7 if k == 0 else 15), n, size=9)
        if not chart.named:
            continue
        in_column = 3 if len(chart.lines) <= 3 else 2
        x, y = left + 150 * (k // in_column), top + 12 + 14 * (k % in_column)
        out += f'<rect x="{x + 8:.1f}" y="{y - 5:.1f}" width="14" height="3" class="f{k}"/>\n'
        out += words(x + 26, y, name, "start")
    return out


def key(names):
    """The lines' names and colours, in one row."""
    out, x = "", 14
    for k, name in enumerate(names):
        out += f'<rect x="{x}" y="12" width="14" height="3" class="f{k}"/>\n' + words(x + 18, 17, name, "start")
        x += 34 + 7 * len(name)
    return out


def picture(title, description, charts, across=None):
    """Charts side by side, at most `across` of them, as the text of an SVG; title and description are for who does not see it."""
    across = across or len(charts)
    tall = HEIGHT + (22 if any(c.slanted for c in charts) else 0)
    above = 0 if charts[0].named else 24
    wide, high = WIDTH * across, above + tall * math.ceil(len(charts) / across)
    body = "" if charts[0].named else key(charts[0].lines)
    body += "".join(draw(c, WIDTH * (i % across) + 52, 28 + above + tall * (i // across)) for i, c in enumerate(charts))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" font-family="sans-serif" role="img" '
            f'aria-labelledby="title description">\n<title id="title">{escape(title)}</title>\n'
            f'<desc id="description">{escape(description)}</desc>\n'
            f"<style>\npath {{ fill: none; stroke-width: 2 }}\n{style(LIGHT)}"
            f"@media (prefers-color-scheme: dark) {{\n{style(DARK)}}}\n</style>\n"
            f'<rect width="100%" height="100%" class="ground"/>\n{body}</svg>\n')


def tables(page):
    """The Markdown tables of a text, each a list of rows, the heading first; cells are text."""
    found, inside = [], False
    for line in page.splitlines():
        line = line.strip()
        if not line.startswith("|"):
            inside = False
            continue
        if not inside:
            found.append([])
        inside = True
        if not re.fullmatch(r"[|\-: ]+", line):
            found[-1].append([cell.strip() for cell in line.strip("|").split("|")])
    return found


def table(page, *columns):
    """The first table whose heading has all these columns, as a dictionary for each row."""
    for heading, *rows in tables(page):
        if all(c in heading for c in columns):
            for row in rows:
                if len(row) != len(heading):
                    raise ValueError(f"a row of {len(row)} cells below {len(heading)}: {' | '.join(row)}")
            return [dict(zip(heading, row)) for row in rows]
    raise ValueError(f"no table with the columns {', '.join(columns)}")


def column(rows, name):
    return [row[name] or None for row in rows]


def told(name, rows, *columns):
    """Numbers as a sentence."""
    return " ".join(f"{row[name]}: " + ", ".join(f"{c} {row[c]}" for c in columns if row[c]) + "." for row in rows)


def blocks(page):
    accepted = table(page, "k", "regular", "distilled", "perfect")
    speed = [r for r in table(page, "k", "mean block", "float32", "bfloat16", "int8") if r["k"].split()[0].isdigit()]
    types = ("float32", "bfloat16", "int8")
    return picture(
        "Blockwise decoding over the size of blocks",
        "Tokens settled in a round. k = " + told("k", accepted, "regular", "distilled") +
        " Speed beside greedy decoding. k = " + told("k", speed, *types), [
            Chart("Tokens settled in a round", "largest block, k", "tokens", column(accepted, "k"),
                  {n: column(accepted, n) for n in ("distilled", "regular")}, 1, 3),
            Chart("Speed, a sentence at a time", "largest block, k", "times greedy", column(speed, "k"),
                  {n: column(speed, n) for n in types}, 0.8, 1.6)])


def batches(page):
    rows = table(page, "batch", "greedy", "beam 5")
    kinds = ("greedy", "beam 5")
    most = max(number(n) for k in kinds for n in column(rows, k) if n)
    return picture("Sentences a second of processor time, over the size of the batch",
                   "Batches of " + told("batch", rows, *kinds), [
                       Chart("translate, one thread", "sentences in a batch", "sentences / second of CPU",
                             column(rows, "batch"), {k: column(rows, k) for k in kinds}, 0, 200 * math.ceil(most / 160))])


def masks(page):
    rows = table(page, "first median", "first 99 %", "warm median", "warm 99 %")
    kinds = ("first 99 %", "first median", "warm 99 %", "warm median")
    return picture("Microseconds for the set of allowed tokens, by grammar", told("", rows, *kinds), [
        Chart("Sets of allowed tokens", "", "microseconds", column(rows, ""), {k: column(rows, k) for k in kinds}, 0.01, 1e6,
              logarithmic=True, joined=False, values=False, slanted=True)])


LEVELS = ("p ≤ 0.01", "p ≤ 0.001")


def found(rows, points, level):
    """For each scheme the shares found at one of LEVELS: numbers of cells like `0.55, 0.31 (2)`."""
    lines = {}
    for row in rows:
        shares = [re.fullmatch(r"([\d.]+), ([\d.]+) \(-?\d+\)", row[p]) for p in points]
        if None in shares:
            raise ValueError(f"a cell of {row['scheme']} has no shares at two levels")
        lines[row["scheme"]] = [s.group(level + 1) for s in shares]
    return lines


def detection(title, points, charts, across):
    """Charts of shares, one line for each scheme."""
    for c in charts:
        c.values = c.named = False
    said = " ".join(f"{c.title}. " + told("scheme", [dict(zip(points, n), scheme=s) for s, n in c.lines.items()], *points)
                    for c in charts)
    return picture(title, said, charts, across)


def power(page):
    rows = table(page, "scheme", "bits per token", "25 tokens")
    points = [name for name in rows[0] if name not in ("scheme", "bits per token")]
    charts = [Chart(f"{bits} bits per token, {said}", "tokens", "share of texts found", points,
                    found([row for row in rows if row["bits per token"] == bits], points, level))
              for bits in dict.fromkeys(column(rows, "bits per token")) for level, said in enumerate(LEVELS)]
    return detection("Marked texts found, over their length, by entropy and scheme", points, charts, 2)


def substituted(page):
    rows = table(page, "scheme", "0 %", "50 %")
    points = [name for name in rows[0] if name != "scheme"]
    charts = [Chart(f"200 tokens of 2 bits, {said}", "percent of tokens replaced", "share of texts found", points,
                    found(rows, points, level)) for level, said in enumerate(LEVELS)]
    return detection("Marked texts found, over the share of tokens that were replaced, by scheme", points, charts, 2)


KINDS = {"blocks": blocks, "batches": batches, "masks": masks, "power": power, "substituted": substituted}


def main(arguments):
    if len(arguments) != 3 or arguments[0] not in KINDS:
        sys.exit(f"plot.py {'|'.join(KINDS)} FILE.md FILE.svg")
    kind, page, svg = arguments
    try:
        Path(svg).write_text(KINDS[kind](Path(page).read_text(encoding="utf-8")), encoding="utf-8")
    except (OSError, ValueError) as e:
        sys.exit(f"plot.py: {page}: {e}")


if __name__ == "__main__":
    main(sys.argv[1:])

# SPDX-License-Identifier: Apache-2.0
"""Writes headers that hold all mutants, each switched on by its number, and removes mutants that do not compile."""
import hashlib
import json
import re


class Rendered:
    """The text of one header with a switch for each mutant, and the place of each mutant in it."""

    def __init__(self, text, wraps):
        self.spans = []  # (first, behind, number): offsets in self.text
        parts, length, open_wraps = [], 0, []

        def put(piece):
            nonlocal length
            parts.append(piece)
            length += len(piece)

        at = 0
        events = sorted(wraps, key=lambda w: (w.start, -w.end, w.order, w.number))
        for offset, wrap in [(w.start, w) for w in events] + [(len(text), None)]:
            while open_wraps and open_wraps[-1][0].end <= offset:
                inner, begin = open_wraps.pop()
                put(text[at:inner.end])
                at = inner.end
                put(")))" if inner.cast else "))" if inner.flip else ")")
                if inner.flip:
                    self.spans.append((begin, length, inner.number))
            put(text[at:offset])
            at = offset
            if wrap is None or (open_wraps and open_wraps[-1][0].end < wrap.end):
                continue  # in a macro: they would overlap
            begin, switch = length, f"::sluice_mutation::{wrap.switch}({wrap.number})"
            if wrap.flip:
                put(f"({switch} != static_cast<bool>(")
            elif wrap.cast:
                put(f"({switch} ? {wrap.other} : void((")
            else:
                put(f"({switch} ? {wrap.other} : ")
            if not wrap.flip:
                self.spans.append((begin, length, wrap.number))
            open_wraps.append((wrap, begin))
        self.text = "".join(parts)
        self.lines = [0] + [m.end() for m in re.finditer("\n", self.text)]

    def guilty(self, line, column):
        """The mutants that may have caused an error at this place: those whose text it is in; else all of its line."""
        offset = self.lines[line - 1] + column - 1
        spans = [s for s in self.spans if s[0] <= offset < s[1]]
        if spans:
            return {min(spans, key=lambda s: s[1] - s[0])[2]}
        end = self.lines[line] if line < len(self.lines) else len(self.text)
        return {s[2] for s in self.spans if self.lines[line - 1] <= s[0] < end}


class Tree:
    """Copies of headers with switches, written below `folder`."""

    def __init__(self, folder, headers):
        self.folder, self.headers, self.taken_out = folder, headers, set()
        self.memory = folder.parent / "taken_out.json"  # for the next run
        self.mark = hashlib.sha256(repr([(n, h.text, [m.change for m in h.mutants]) for n, h in headers.items()]).encode()).hexdigest()
        if self.memory.exists():
            stored = json.loads(self.memory.read_text())
            if stored["mark"] == self.mark:
                self.taken_out = set(stored["numbers"])
        self.rendered = {}
        for name in headers:
            self.write(name)

    def write(self, name):
        header = self.headers[name]
        rendered = Rendered(header.text, [w for w in header.wraps if w.number not in self.taken_out])
        self.rendered[str(self.folder / name)] = rendered
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink() or not path.exists() or path.read_text(encoding="latin-1") != rendered.text:
            path.unlink(missing_ok=True)
            with open(path, "w", encoding="latin-1", newline="") as file:
                file.write(rendered.text)

    def take_out(self, numbers):
        self.taken_out |= numbers
        self.memory.write_text(json.dumps({"mark": self.mark, "numbers": sorted(self.taken_out)}))
        for name, header in self.headers.items():
            if any(m.number in numbers for m in header.mutants):
                self.write(name)

    def blame(self, messages):
        """The numbers of the mutants in which a compiler reports errors. For an error outside the copies, the mutant of the
        first note that follows it counts."""
        numbers, pending = set(), False
        for path, line, column, level in re.findall(r"^([^\s:][^:\n]*):(\d+):(\d+): (?:fatal )?(error|note):", messages, re.M):
            if level == "note" and not pending:
                continue
            found = self.rendered[path].guilty(int(line), int(column)) if path in self.rendered else set()
            pending = not found
            numbers |= found
        return numbers

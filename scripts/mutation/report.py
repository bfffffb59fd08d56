# SPDX-License-Identifier: Apache-2.0
"""The report: a table of results by folder, and the list of mutants that survived."""
import pathlib

KILLED = ("failed", "crashed", "endless")


def equivalent(path):
    """Reads the list of equivalent mutants: {(header, line, change): reason}. Records are separated by empty lines; a record
    may name several changes of its line."""
    found = {}
    if not path or not pathlib.Path(path).exists():
        return found
    for record in pathlib.Path(path).read_text(encoding="utf-8").split("\n\n"):
        header = line = reason = None
        changes = []
        for row in record.splitlines():
            key, _, value = row.partition(": ")
            if row.startswith("#"):
                continue
            if (key == "header" and header) or (key == "line" and line) or (key == "reason" and reason):
                raise SystemExit(f"mutate: {path}: \"{row}\" comes twice in a record: a merge has put two into each other")
            if key == "header":
                header = value
            elif key == "line":
                line = value
            elif key == "change":
                changes.append(value)
            elif key == "reason":
                reason = value
            elif row.strip():
                raise SystemExit(f"mutate: {path}: \"{row}\" is not header, line, change or reason")
        for change in changes:
            if not (header and line and reason):
                raise SystemExit(f"mutate: {path}: \"{change}\" lacks header, line or reason")
            found[header, line, change] = reason
    return found


class Report:
    def __init__(self, folders, explained):
        self.rows = {f: dict(all=0, tried=0, killed=0, explained=0, survived=0, unreached=0, out=0) for f in folders}
        self.explained = explained
        self.lines = []
        self.used = set()

    def add(self, folder, mutant, outcome):
        """Counts a mutant. `outcome` is None if it was not tried, "taken out" if it does not compile."""
        row = self.rows[folder]
        if outcome == "taken out":
            row["out"] += 1
            return
        row["all"] += 1
        if outcome is None:
            return
        row["tried"] += 1
        key = (mutant.header, mutant.text, mutant.change)
        if outcome in KILLED:
            row["killed"] += 1
            if key in self.explained:
                self.lines.append(f"{mutant.header}:{mutant.line}: killed, though explained: {mutant.change}")
        elif key in self.explained:
            row["explained"] += 1
            self.used.add(key)
        else:
            row["survived" if outcome == "survived" else "unreached"] += 1
            self.lines.append(f"{mutant.header}:{mutant.line}: {outcome}: {mutant.change}\n    {mutant.text}")

    def table(self):
        out = ["| folder | mutants | tried | killed | equivalent | survived | not reached | score |",
               "| --- | --- | --- | --- | --- | --- | --- | --- |"]
        for folder, row in self.rows.items():
            counted = row["tried"] - row["explained"]
            score = f"{100 * row['killed'] / counted:.1f} %" if counted else "-"
            out.append(f"| `{folder}/` | {row['all']:,} | {row['tried']:,} | {row['killed']:,} | {row['explained']:,} | "
                       f"{row['survived']:,} | {row['unreached']:,} | {score} |")
        return "\n".join(out)

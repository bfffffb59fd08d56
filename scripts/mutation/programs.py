# SPDX-License-Identifier: Apache-2.0
"""Builds the programs of tests with the instrumented headers."""
import concurrent.futures
import glob
import hashlib
import pathlib
import re
import subprocess


class Builder:
    """The test program of one folder."""

    def __init__(self, root, folder, plan, tests, tree, mutants, jobs, say):
        self.root, self.folder, self.plan, self.tests, self.tree = root, folder, plan, tests, tree
        self.jobs, self.say = jobs, say
        here = pathlib.Path(__file__).resolve().parent.parent.parent
        flags = [f.replace("ROOT", str(root)) for f in plan.get("flags", [])]
        self.command = ["clang++-19", "-std=c++20", *plan.get("optimise", ["-O1"]), "-w", "-Werror=vla",
                        "-Wno-narrowing", "-Wno-c++11-narrowing", "-D_GLIBCXX_ASSERTIONS", f"-DSLUICE_MUTANTS={mutants + 1}",
                        f"-I{tree.folder}", f"-I{root / plan['include']}", *flags]
        self.command.append("-ferror-limit=0")
        self.switch = here / "tests" / "mutation" / "switch.hpp"

    def compile(self, source, *options):
        switch = ["-include", str(self.switch)] if "-x" in " ".join(options) or "-include-pch" in options else []
        return subprocess.run([*self.command, *switch, *options, str(source)], capture_output=True, text=True)

    # ---- what is compiled

    def units(self):
        """Writes the files to compile. As in cmake/test-batches.cmake, one file holds several tests, each in a namespace of its
        own."""
        sources = []
        for pattern in self.tests["tests"]:
            sources += sorted(glob.glob(str(self.root / pattern), recursive=True))
        batch = self.plan.get("batch", 1)
        alone, together = [], []
        for source in sources:
            text = pathlib.Path(source).read_text(encoding="utf-8")
            obstacle = re.search(r"^#define|^namespace sluice", text, re.M) or not source.endswith(".test.cpp") or batch == 1
            (alone if obstacle else together).append(source)
        result = [pathlib.Path(s) for s in alone]
        for first in range(0, len(together), batch):
            part = together[first:first + batch]
            includes, bodies = [], []
            for source in part:
                for line in pathlib.Path(source).read_text(encoding="utf-8").splitlines():
                    if line.startswith("#include ") and line not in includes:
                        includes.append(line)
                stem = re.sub(r"\W", "_", pathlib.Path(source).name)
                bodies.append(f'namespace {stem} {{\n#include "{source}"\n}}\n')
            path = self.folder / "batches" / f"{first // batch}.cpp"
            path.parent.mkdir(parents=True, exist_ok=True)
            text = "\n".join(includes) + "\n" + "".join(bodies)
            if not path.exists() or path.read_text() != text:
                path.write_text(text)
            result.append(path)
        return result

    # ---- building

    def stamp(self, *paths):
        """A hash of everything an object is compiled from. It does not depend on which mutants have been removed because they do
        not compile: the others stay the same."""
        made = hashlib.sha256(" ".join(self.command).encode())
        paths = [self.switch, *paths]
        for pattern in self.plan.get("depends", []):
            paths += map(pathlib.Path, sorted(glob.glob(str(self.root / pattern), recursive=True)))
        for path in paths:
            made.update(path.read_bytes())
            for other in re.findall(r'^#include "(/.*)"$', path.read_text(encoding="latin-1"), re.M):
                made.update(pathlib.Path(other).read_bytes())
        for name, header in self.tree.headers.items():
            made.update(f"{name} {header.text} {[m.change for m in header.mutants]}".encode())
        return made.hexdigest()

    def rounds(self, what, tasks):
        """Compiles every (source, object, options); removes the mutants with errors and compiles the failed files again."""
        count = 0
        while tasks:
            count += 1
            with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
                made = list(pool.map(lambda t: self.compile(t[0], *t[2](), "-o", str(t[1])), tasks))
            failed = [(t, m.stderr) for t, m in zip(tasks, made) if m.returncode != 0]
            guilty = set().union(*[self.tree.blame(e) for _, e in failed]) - self.tree.taken_out
            if failed and not guilty:
                raise SystemExit(f"mutate: {failed[0][0][0]} does not compile, and no mutant is to blame:\n{failed[0][1][:6000]}")
            self.say(f"{what}, round {count}: {len(tasks)} files, {len(failed)} refused, {len(guilty)} mutants taken out")
            self.tree.take_out(guilty)
            for task in tasks:
                if task not in [t for t, _ in failed]:
                    task[3]()
            tasks = [t for t, _ in failed]
            if tasks and what != "headers":
                self.precompile()

    def task(self, source, made, options, stamp):
        """Returns the task that compiles `source` into `made`, as a list; empty if that is up to date."""
        mark = made.with_suffix(".stamp")
        if made.exists() and mark.exists() and mark.read_text() == stamp:
            return []
        made.parent.mkdir(parents=True, exist_ok=True)
        return [(source, made, options, lambda: mark.write_text(stamp))]

    def precompile(self):
        source = self.folder / "everything.hpp"
        text = "".join(f"#include <{n}>\n" for n in [*self.tree.headers, *self.tests.get("precompiled", self.plan.get("precompiled", []))])
        if not source.exists() or source.read_text() != text:
            source.write_text(text)
        stamp = self.stamp(source) + f" {sorted(self.tree.taken_out)}"
        made = self.folder / "everything.pch"
        done = lambda: made.with_suffix(".stamp").write_text(  # noqa: E731
            self.stamp(source) + f" {sorted(self.tree.taken_out)}")
        tasks = self.task(source, made, lambda: ["-xc++-header"], stamp)
        self.rounds("headers", [(*t[:3], done) for t in tasks])

    def build(self):
        objects, tasks = [], []
        others = [self.root / s for s in [*self.plan.get("always", []), *([self.plan["main"]] if "main" in self.plan else [])]]
        for source in self.units() + others:
            made = self.folder / "objects" / (re.sub(r"\W", "_", str(source)) + ".o")
            if source in others:  # includes no header with mutants; shared by all folders
                made = self.folder.parent / "objects" / made.name
            objects.append(made)
            stamp = hashlib.sha256(source.read_bytes()).hexdigest() if source in others else self.stamp(source)
            options = [] if source in others else ["-include-pch", str(self.folder / "everything.pch")]
            tasks += self.task(source, made, lambda o=options: [*o, "-c"], stamp)
        if tasks:
            self.precompile()
            self.rounds("tests", tasks)
        made = self.folder / "sluice.mutated"
        if not made.exists() or max(o.stat().st_mtime for o in objects) > made.stat().st_mtime:
            subprocess.run([*self.command[:1], *map(str, objects), "-o", str(made), "-pthread"], check=True)
        return made

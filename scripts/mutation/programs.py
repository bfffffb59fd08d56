# SPDX-License-Identifier: Apache-2.0
"""Builds the programs of tests with the instrumented headers."""
import concurrent.futures
import glob
import hashlib
import pathlib
import re
import subprocess


class Builder:
    def __init__(self, root, folder, plan, tree, mutants, jobs, say):
        self.root, self.folder, self.plan, self.tree, self.jobs, self.say = root, folder, plan, tree, jobs, say
        here = pathlib.Path(__file__).resolve().parent.parent.parent
        flags = [f.replace("ROOT", str(root)) for f in plan.get("flags", [])]
        self.command = [plan.get("compiler", "clang++-19"), "-std=c++20", *plan.get("optimise", ["-O1"]), "-w", "-Werror=vla",
                        "-Wno-narrowing", "-Wno-c++11-narrowing", "-D_GLIBCXX_ASSERTIONS", f"-DSLUICE_MUTANTS={mutants + 1}",
                        f"-I{tree.folder}", f"-I{root / plan['include']}", *flags]
        if "clang" not in self.command[0]:
            self.command.remove("-Wno-c++11-narrowing")
        else:
            self.command.append("-ferror-limit=0")
        self.switch = here / "tests" / "mutation" / "switch.hpp"

    def compile(self, source, *options):
        return subprocess.run([*self.command, "-include", str(self.switch), *options, str(source)], capture_output=True, text=True)

    # ---- what is compiled

    def units(self, program):
        """Files to compile: as in cmake/test-batches.cmake, several tests as one, each in a namespace of its own."""
        sources = []
        for pattern in self.plan["programs"][program]["sources"]:
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
            path = self.folder / "batches" / f"{program}.{first // batch}.cpp"
            path.parent.mkdir(parents=True, exist_ok=True)
            text = "\n".join(includes) + "\n" + "".join(bodies)
            if not path.exists() or path.read_text() != text:
                path.write_text(text)
            result.append(path)
        return result

    def check(self, programs):
        """Takes mutants out until everything is accepted."""
        everything = self.folder / "everything.cpp"
        everything.write_text("".join(f"#include <{name}>\n" for name in self.tree.headers))
        sources = [everything] + [u for p in programs for u in self.units(p)]
        accepted = self.folder / "accepted.txt"
        stamp = self.stamp(sources)
        if accepted.exists() and accepted.read_text() == stamp:
            return
        todo, rounds = [everything], 0
        rest = sources[1:]
        while todo:
            rounds += 1
            with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
                made = list(pool.map(lambda s: self.compile(s, "-fsyntax-only"), todo))
            failed = [(s, m) for s, m in zip(todo, made) if m.returncode != 0]
            guilty = set()
            for source, one in failed:
                guilty |= self.tree.blame(one.stderr)
            guilty -= self.tree.taken_out
            if failed and not guilty:
                raise SystemExit(f"mutate: {failed[0][0]} does not compile, and no mutant is to blame:\n" + failed[0][1].stderr[:6000])
            self.say(f"round {rounds}: {len(todo)} files, {len(failed)} refused, {len(guilty)} mutants taken out")
            self.tree.take_out(guilty)
            todo = [s for s, _ in failed]
            if not todo:
                todo, rest = rest, []
        # What was accepted at first has seen other headers than those at the end: but only less was taken from them.
        accepted.write_text(self.stamp(sources))

    def stamp(self, sources):
        """Of all that an object is made of."""
        sum = hashlib.sha256(" ".join(self.command).encode())
        paths = [self.switch, *map(pathlib.Path, sources)]
        paths += [p for p in sorted(self.tree.folder.rglob("*.hpp"))]
        for pattern in self.plan.get("depends", []):
            paths += map(pathlib.Path, sorted(glob.glob(str(self.root / pattern), recursive=True)))
        for path in paths:
            sum.update(path.read_bytes())
            for other in re.findall(r'^#include "(/.*)"$', path.read_text(encoding="latin-1"), re.M):
                sum.update(pathlib.Path(other).read_bytes())
        return sum.hexdigest()

    # ---- building

    def build(self, programs):
        objects, todo = {}, []
        (self.folder / "objects").mkdir(parents=True, exist_ok=True)
        header = self.precompiled()
        for program in programs:
            sources = self.units(program)
            if self.plan.get("main"):
                sources.append(self.root / self.plan["main"])
            objects[program] = []
            for source in sources:
                made = self.folder / "objects" / (re.sub(r"\W", "_", str(source)) + ".o")
                objects[program].append(made)
                stamp = self.stamp([source]) if self.plan.get("main") is None or source != sources[-1] else self.stamp_of_main(source)
                mark = made.with_suffix(".stamp")
                if not made.exists() or not mark.exists() or mark.read_text() != stamp:
                    if (source, made) not in [t[:2] for t in todo]:
                        todo.append((source, made, stamp))

        def one(task):
            source, made, stamp = task
            result = self.compile(source, *header, "-c", "-o", str(made))
            if result.returncode != 0:
                raise SystemExit(f"mutate: {source}:\n{result.stderr[:6000]}")
            made.with_suffix(".stamp").write_text(stamp)
            self.say(f"compiled {pathlib.Path(source).name}")

        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(one, todo))
        made = {}
        for program in programs:
            made[program] = self.folder / f"sluice.mutated.{program}"
            if not made[program].exists() or any(o.stat().st_mtime > made[program].stat().st_mtime for o in objects[program]):
                subprocess.run([*self.command[:1], *map(str, objects[program]), "-o", str(made[program]), "-pthread"], check=True)
        return made

    def stamp_of_main(self, source):
        return hashlib.sha256(source.read_bytes() + " ".join(self.command).encode()).hexdigest()

    def precompiled(self):
        names = self.plan.get("precompiled", [])
        if not names or "clang" not in self.command[0]:
            return []
        source = self.folder / "precompiled.hpp"
        text = "".join(f"#include <{n}>\n" for n in names)
        if not source.exists() or source.read_text() != text:
            source.write_text(text)
        made, stamp = self.folder / "precompiled.pch", self.stamp([source])
        mark = self.folder / "precompiled.stamp"
        if not made.exists() or not mark.exists() or mark.read_text() != stamp:
            result = self.compile(source, "-xc++-header", "-o", str(made))
            if result.returncode != 0:
                raise SystemExit(f"mutate: {result.stderr[:6000]}")
            mark.write_text(stamp)
        return ["-include-pch", str(made)]

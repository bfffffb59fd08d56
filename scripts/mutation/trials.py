# SPDX-License-Identifier: Apache-2.0
"""Runs the test cases: records which mutants each one reaches, and whether it fails under a mutant."""
import json
import os
import re
import resource
import subprocess
import tempfile
import time

MEMORY = 8 << 30
IDLE = 10.0  # seconds without any work: it is deadlocked


def quoted(name):
    return re.sub(r"([\\,\[\"])", r"\\\1", name)


class Program:
    """A test program. A program that cannot list its test cases counts as a single case."""

    def __init__(self, name, path, catch, folder):
        self.name, self.path, self.catch, self.folder = name, str(path), catch, folder
        self.cases = {}  # name -> (seconds, set of numbers)

    def arguments(self, cases):
        return [self.path, "--abort", "--warn", "NoTests", ",".join(map(quoted, cases))] if self.catch else [self.path]

    def run(self, cases, environment, seconds):
        """Runs a case. Returns (outcome, CPU seconds); the outcome is passed, failed, crashed or endless. The time limit is on
        CPU time, since the machine may be shared."""
        limit = 10 * seconds + 2

        def limits():
            resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 2))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.nice(19)

        before = {k: v for k, v in os.environ.items() if not k.startswith("SLUICE_MUTANT")}
        with tempfile.TemporaryDirectory(dir=self.folder) as where:
            child = subprocess.Popen(self.arguments(cases), env={**before, **environment}, cwd=where, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, preexec_fn=limits)
            wait = Wait(child.pid)
            while True:
                code = wait.ended(child)
                if code is not None:
                    break
                if wait.used > limit or wait.idle > IDLE:
                    child.kill()
                    child.wait()
                    return "endless", wait.used
        if code == 0:
            return "passed", wait.used
        if -code in (24, 9) or wait.used > limit:  # SIGXCPU
            return "endless", wait.used
        return ("crashed" if code < 0 else "failed"), wait.used

    def look(self, say):
        """Fills `cases`: runs each case alone, without a mutant, and records its CPU time and the mutants that it reaches."""
        names = ["all"]
        if self.catch:
            listed = subprocess.run([self.path, "--list-test-names-only"], capture_output=True, text=True)
            names = [line.strip() for line in listed.stdout.splitlines() if line.strip()]
        for name in names:
            with tempfile.NamedTemporaryFile(dir=self.folder) as file:
                began = resource.getrusage(resource.RUSAGE_CHILDREN)
                outcome, _ = self.run([name], {"SLUICE_MUTANT_REACHED": file.name}, 600)
                ended = resource.getrusage(resource.RUSAGE_CHILDREN)
                if outcome != "passed":
                    raise SystemExit(f"mutate: {self.name}: \"{name}\" {outcome} without a mutant")
                with open(file.name, encoding="ascii") as text:
                    reached = {int(line) for line in text}
            seconds = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
            self.cases[name] = (seconds, reached)
        say(f"{self.name}: {len(names)} cases, {sum(s for s, _ in self.cases.values()):.1f} s, "
            f"reach {len(set().union(*[r for _, r in self.cases.values()]))} mutants")

    def load(self, say):
        """As `look`, or its stored result if the program has not changed."""
        file = os.path.join(self.folder, "reached.json")
        mark = os.stat(self.path).st_mtime
        if os.path.exists(file):
            with open(file, encoding="utf-8") as text:
                stored = json.load(text)
            if stored["mark"] == mark:
                self.cases = {n: (s, set(r)) for n, s, r in stored["cases"]}
                return
        self.look(say)
        with open(file, "w", encoding="utf-8") as text:
            json.dump({"mark": mark, "cases": [[n, s, sorted(r)] for n, (s, r) in self.cases.items()]}, text)


class Wait:
    """Polls a process: whether it has ended, its CPU time, and how long it has been idle."""

    def __init__(self, pid):
        self.pid, self.used, self.idle, self.pause = pid, 0.0, 0.0, 0.002

    def ended(self, child):
        time.sleep(self.pause)
        code = child.poll()
        if code is not None:
            return code
        self.pause = min(0.1, self.pause * 1.5)
        try:
            with open(f"/proc/{self.pid}/stat", encoding="latin-1") as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:
            return child.poll()
        used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        if used > self.used or fields[0] != "S":  # running, waiting for a processor, or stopped by a signal
            self.idle = 0
        else:
            self.idle += self.pause
        self.used = used
        return None


FIRST = (0.1, 0.5, 2.0, 8.0, 1e9)  # a process runs cases up to this total time


def trial(number, program):
    """Tries a mutant. Returns (outcome, the case that found it). The fastest cases that reach it run first."""
    reaching = sorted((s, n) for n, (s, r) in program.cases.items() if number in r)
    if not reaching:
        return "not reached", ""
    at = 0
    for most in FIRST:
        cases, total = [], 0.0
        while at < len(reaching) and (not cases or total + reaching[at][0] <= most):
            total += reaching[at][0]
            cases.append(reaching[at][1])
            at += 1
        outcome, _ = program.run(cases, {"SLUICE_MUTANT": str(number)}, total)
        if outcome != "passed":
            return outcome, cases[0] if len(cases) == 1 else f"{len(cases)} cases"
        if at == len(reaching):
            break
    return "survived", ""

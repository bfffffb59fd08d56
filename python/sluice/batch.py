# SPDX-License-Identifier: Apache-2.0
"""Lines of text through many workers, on one machine or many, over Ray: docs/clusters-of-machines.md.

    python -m sluice.batch translator:make --workers 16 --gpus 1 --address auto --input corpus.de --output corpus.en --resume

`make` is a function of the module translator. Each worker, an actor of Ray, calls it once: it loads the model, and returns a function from a
list of lines to the list of their answers, each a line. Answers come in the order of the lines. If a worker is killed, another takes
its place, and does again what it had not yet answered.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import importlib
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ._library import ArgumentError, Error, whole

__all__ = ["stream"]


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ImportError(f"sluice.batch needs Ray: pip install ray ({error})") from None


class _Worker:
    """An actor: what it decodes with is made once."""

    def __init__(self, make: Callable[[], Callable[[list[Any]], Sequence[Any]]]):
        self.function = make()

    def work(self, lines: list[Any]) -> list[Any]:
        answers = list(self.function(lines))
        if len(answers) != len(lines):
            raise ValueError(f"the worker's function gave {len(answers)} answers for {len(lines)} lines")
        return answers


class _Part:
    """Lines that one call of a worker gets."""

    def __init__(self, number: int, first: int, lines: list[Any]):
        self.number, self.first, self.lines, self.killed = number, first, lines, 0


class _Parts:
    """Parts that workers have, and answers that wait for those before them."""

    def __init__(self, ray: Any, make: Callable[[], Any], workers: int, retries: int, options: Mapping[str, Any]):
        self.ray, self.make, self.retries, self.options = ray, make, retries, options
        self.actor_class = ray.remote(_Worker)
        self.actors = [self._actor() for _ in range(workers)]
        self.given: list[collections.deque[tuple[Any, _Part]]] = [collections.deque() for _ in range(workers)]  # first the one that it works at
        self.again: collections.deque[_Part] = collections.deque()

    def _actor(self) -> Any:
        return self.actor_class.options(**self.options).remote(self.make)

    def give(self, worker: int, part: _Part) -> None:
        self.given[worker].append((self.actors[worker].work.remote(part.lines), part))

    def free(self) -> int | None:
        """The worker with least to do, if it has not two parts: the next one waits while it works at one."""
        worker = min(range(len(self.given)), key=lambda i: len(self.given[i]))
        return worker if len(self.given[worker]) < 2 else None

    def next(self) -> Iterator[tuple[int, list[Any]]]:
        """Waits for an answer, and gives those that are there."""
        first = {its[0][0]: worker for worker, its in enumerate(self.given) if its}
        done, _ = self.ray.wait(list(first), num_returns=1)
        for reference in done:
            worker = first[reference]
            part = self.given[worker][0][1]
            try:
                answers = self.ray.get(reference)
            except self.ray.exceptions.RayActorError as error:
                self._replace(worker, error)
                continue
            except self.ray.exceptions.RayTaskError as error:
                raise Error(f"sluice.batch: lines {part.first + 1} to {part.first + len(part.lines)}: {error}") from error
            self.given[worker].popleft()
            yield part.number, answers

    def _replace(self, worker: int, error: BaseException) -> None:
        """A worker has died: another does what it had."""
        part = self.given[worker][0][1]
        part.killed += 1
        if part.killed > self.retries:
            raise Error(f"sluice.batch: lines {part.first + 1} to {part.first + len(part.lines)}: {part.killed} workers have died at them: {error}") from error
        self.again.extend(part for _, part in self.given[worker])
        self.given[worker].clear()
        self.actors[worker] = self._actor()

    def close(self) -> None:
        for actor in self.actors:
            with contextlib.suppress(Exception):
                self.ray.kill(actor)


def stream(make: Callable[[], Callable[[list[Any]], Sequence[Any]]], lines: Iterable[Any], *, workers: int = 2, size: int = 64, ahead: int = 8,
           retries: int = 3, options: Mapping[str, Any] | None = None) -> Iterator[Any]:
    """The answers to lines, in their order, while later ones are worked at.

    make
        Called once in each worker; returns a function from a list of lines to their answers. Ray pickles it.
    lines
        Any objects, strings mostly; read as they are needed.
    workers
        Actors of Ray.
    size
        Lines that a worker gets at a time.
    ahead
        For each worker so many parts may be read and not yet returned: that bounds what is kept.
    retries
        So often lines are done again whose worker has died.
    options
        Of the actors: {"num_gpus": 1}, say.

    Ray must have been initialised, or is by its own defaults. An exception of the function ends all; it is in the error's message.
    """
    for name, value in ("workers", workers), ("size", size), ("ahead", ahead):
        whole(value, name, 1)
    whole(retries, "retries", 0)
    if not callable(make):
        raise TypeError(f"sluice.batch: make = {make!r}: must be a function")
    ray = _ray()
    if not ray.is_initialized():
        ray.init()
    parts = _Parts(ray, make, workers, retries, {} if options is None else options)
    try:
        yield from _ordered(parts, iter(lines), size, ahead * workers)
    finally:
        parts.close()


def _ordered(parts: _Parts, lines: Iterator[Any], size: int, most: int) -> Iterator[Any]:
    waiting: dict[int, list[Any]] = {}
    made = returned = read = 0
    over = False
    while True:
        while (worker := parts.free()) is not None:
            if parts.again:
                parts.give(worker, parts.again.popleft())
                continue
            if over or made - returned >= most:
                break
            its = list(itertools.islice(lines, size))
            over = len(its) < size
            if its:
                parts.give(worker, _Part(made, read, its))
                made, read = made + 1, read + len(its)
        if returned == made and over:
            return
        for number, answers in parts.next():
            waiting[number] = answers
        while returned in waiting:
            yield from waiting.pop(returned)
            returned += 1


def _done(file: str) -> int:
    """The whole lines of an output; what follows the last of them is cut off."""
    count = end = at = 0
    with contextlib.suppress(FileNotFoundError), open(file, "rb+") as output:
        for block in iter(lambda: output.read(1 << 20), b""):
            count += block.count(b"\n")
            if b"\n" in block:
                end = at + block.rindex(b"\n") + 1
            at += len(block)
        output.truncate(end)
    return count


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m sluice.batch", description="Lines of text through many workers, over Ray.")
    parser.add_argument("make", metavar="MODULE:FUNCTION", help="called once in each worker; returns a function from a list of lines to a list of lines")
    parser.add_argument("--input", metavar="FILE", help="lines (standard input)")
    parser.add_argument("--output", metavar="FILE", help="their answers (standard output)")
    parser.add_argument("--resume", action="store_true", help="go on behind the lines that the output has")
    parser.add_argument("--address", help="of a cluster of Ray: auto, or ray://host:10001 (a cluster of this machine)")
    for name, usual, what in (("workers", 2, "actors"), ("lines", 64, "lines that a worker gets at a time"), ("retries", 3, "times that lines are done again whose worker has died")):
        parser.add_argument(f"--{name}", metavar="N", type=int, default=usual, help=f"{what} ({usual})")
    for name in "cpus", "gpus":
        parser.add_argument(f"--{name}", metavar="X", type=float, help=f"{name.upper()} of each worker")
    parser.add_argument("--working-dir", metavar="FOLDER", help="whose files each machine gets, where they do not share them")
    given = parser.parse_args(arguments)
    module, colon, name = given.make.partition(":")
    if not colon or not module or not name:
        parser.error(f"{given.make!r} is not MODULE:FUNCTION")
    if given.resume and not given.output:
        parser.error("--resume: needs --output")
    if given.output and not given.resume and os.path.exists(given.output):
        parser.error(f"--output: {given.output}: is there already: remove it, or --resume")
    sys.path.insert(0, given.working_dir or os.getcwd())
    try:
        make = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        parser.error(f"{given.make}: {error}")
    ray = _ray()
    path = [os.getcwd(), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    environment = {"working_dir": given.working_dir} if given.working_dir else {"env_vars": {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, path))}}
    ray.init(address=given.address, runtime_env=environment, log_to_driver=False, logging_level="error")
    options = {key: value for key, value in (("num_cpus", given.cpus), ("num_gpus", given.gpus)) if value is not None}
    try:
        with contextlib.ExitStack() as files:
            source: Any = files.enter_context(open(given.input, encoding="utf-8", newline="\n")) if given.input else sys.stdin
            lines = (line.rstrip("\r\n") for line in source)
            skipped = _done(given.output) if given.resume else 0
            output: Any = files.enter_context(open(given.output, "a", encoding="utf-8", newline="\n")) if given.output else sys.stdout
            for answer in stream(make, itertools.islice(lines, skipped, None), workers=given.workers, size=given.lines, retries=given.retries,
                                 options=options):
                if not isinstance(answer, str) or "\n" in answer:
                    raise Error(f"sluice.batch: an answer is {answer!r}: must be one line")
                output.write(answer + "\n")
                output.flush()
    except (ArgumentError, Error) as error:
        print(f"sluice.batch: {str(error).removeprefix('sluice.batch: ')}", file=sys.stderr)
        return 1
    finally:
        ray.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())

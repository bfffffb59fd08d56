# SPDX-License-Identifier: Apache-2.0
"""A model whose scores pass through logits processors, which see what each row has decoded so far."""

from __future__ import annotations

import ctypes as C
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ._library import ArgumentError
from ._logits import Row as Input
from ._logits import log_softmax
from ._logits import over as said_over
from ._model import Limits, Row, Rows, Vocabulary
from ._scores import lines_of

if TYPE_CHECKING:
    from ._logits import Ids, Processor, Scores


def vocabulary_eos(vocabulary: Any) -> list[int]:
    return [int(vocabulary.eos)] if hasattr(vocabulary.eos, "__index__") else [int(token) for token in vocabulary.eos]


def lines(answer: Any, count: int, size: int, name: str = "the model's step") -> Scores:
    """A copy of the scores that a model answered, [count, size]."""
    import numpy

    address, stride, keep = lines_of(answer, count, size, name)
    if not count:
        return numpy.empty((0, size), numpy.float32)
    flat = numpy.ctypeslib.as_array((C.c_float * (stride * (count - 1) + size)).from_address(address))
    view = numpy.lib.stride_tricks.as_strided(flat, (count, size), (4 * stride, 4))
    return numpy.array(view, numpy.float32)


class Renamed:
    """A model with another vocabulary, and its own members for all else."""

    def __init__(self, model: Any, vocabulary: Vocabulary):
        self.model, self.vocabulary = model, vocabulary

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "model" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.__dict__["model"], name)


class Histories:
    """The tokens of every slot."""

    def __init__(self) -> None:
        import numpy

        self.tokens: Ids = numpy.zeros((64, 64), numpy.int64)
        self.inputs: dict[int, Input] = {}

    def start(self, inputs: Sequence[Input], slots: Sequence[int]) -> None:
        self.inputs.update(zip(slots, inputs))

    def advance(self, rows: Sequence[Row]) -> None:
        """As slots are: all forks copy first, then every row appends."""
        import numpy

        slots = 1 + max(max(row.from_, row.to) for row in rows)
        longest = max(row.length + len(row.tokens) for row in rows)
        had = self.tokens.shape
        if slots > had[0] or longest > had[1]:
            grown = numpy.zeros((max(had[0], 2 * slots if slots > had[0] else 0), max(had[1], 2 * longest if longest > had[1] else 0)),
                                numpy.int64)
            grown[:had[0], :had[1]] = self.tokens
            self.tokens = grown
        forks = [(row.from_, row.to) for row in rows if row.from_ != row.to]
        if forks:
            held = max(row.length for row in rows)
            self.tokens[[to for _, to in forks], :held] = self.tokens[[begin for begin, _ in forks], :held]
            self.inputs.update([(to, self.inputs[begin]) for begin, to in forks])
        for row in rows:
            self.tokens[row.to, row.length:row.length + len(row.tokens)] = row.tokens


class Guidance:
    """Classifier-free guidance: every slot has a twin, which has read the negative prompt, or the prompt's last token alone."""

    def __init__(self, model: Any, scale: float, negative: Sequence[Sequence[int]] | None):
        self.model, self.scale, self.negative = model, scale, negative
        able = getattr(model, "abilities", None)
        self.blocks, self.ragged = bool(getattr(able, "blocks", False)), bool(getattr(able, "ragged", False))
        self.held: dict[int, int] = {}  # tokens that precede the output in each twin

    def start(self, sources: list[Any], slots: list[int]) -> None:
        self.model.start(sources + sources, [2 * slot for slot in slots] + [2 * slot + 1 for slot in slots])

    def release(self, slots: list[int]) -> None:
        if hasattr(self.model, "release"):
            self.model.release([2 * slot + own for slot in slots for own in (0, 1)])

    def _ask(self, rows: Sequence[Row], size: int) -> Scores:
        import numpy

        answer = numpy.empty((sum(row.lines for row in rows), size), numpy.float32)
        groups: dict[Any, list[int]] = {}  # rows that the model takes together
        for i, row in enumerate(rows):
            groups.setdefault(None if self.ragged else (row.length, len(row.tokens)), []).append(i)
        ends = numpy.cumsum([row.lines for row in rows])
        for group in groups.values():
            made = Rows.of([rows[i] for i in group])
            at = [line for i in group for line in range(ends[i] - rows[i].lines, ends[i])]
            answer[at] = lines(self.model.step(made), made.line_count, size)
        return answer

    def step(self, rows: Sequence[Row], histories: Histories, size: int) -> tuple[Scores, Scores]:
        """The scores of the rows, guided, and as the model gave them."""
        found = self._ask([row._replace(from_=2 * row.from_, to=2 * row.to) for row in rows], size)
        twins: list[Row] = []
        guided: list[int] = []  # lines: those within a prompt are not
        line = 0
        for row in rows:
            its, end = histories.inputs[row.to], row.length + len(row.tokens)
            line += row.lines
            wanted = min(row.lines, end - its.prompt + 1)
            if wanted <= 0:
                continue
            guided += range(line - wanted, line)
            tokens, length = row.tokens, row.length - its.prompt + self.held.get(its.number, 0)
            if row.length < its.prompt:  # the first line: the twin reads what is its prompt
                own = list(self.negative[its.number]) if self.negative is not None else [row.tokens[its.prompt - row.length - 1]]
                self.held[its.number], length = len(own), 0
                tokens = own + row.tokens[its.prompt - row.length:]
            twins.append(Row(2 * row.from_ + 1, 2 * row.to + 1, length, wanted, tokens))
        if not self.blocks:  # one token a row
            last = []
            for twin in twins:
                for i, token in enumerate(twin.tokens[:-1]):
                    self._ask([twin._replace(from_=twin.to if i else twin.from_, length=twin.length + i, lines=1, tokens=[token])], size)
                more = len(twin.tokens) - 1
                last.append(twin._replace(from_=twin.to if more else twin.from_, length=twin.length + more, tokens=twin.tokens[-1:]))
            twins = last
        answer = log_softmax(found)
        other = log_softmax(self._ask(twins, size))
        answer[guided] = self.scale * (answer[guided] - other) + other
        return answer, found


class Drafts:
    """Guesses of an assistant model: its own best tokens, one after the other."""

    def __init__(self, assistant: Any, most: int | None):
        self.assistant, self.most = assistant, most
        self.held: dict[int, list[int]] = {}

    def start(self, sources: list[Any], slots: list[int]) -> None:
        self.assistant.start(sources, slots)
        for slot in slots:
            self.held[slot] = []

    def release(self, slots: list[int]) -> None:
        if hasattr(self.assistant, "release"):
            self.assistant.release(slots)

    def propose(self, asked: Sequence[tuple[int, list[int], int]]) -> list[list[int]]:
        """asked: slot, the tokens so far, the maximum number of guesses."""
        size = self.assistant.vocabulary.size
        guesses: list[list[int]] = [[] for _ in asked]
        at = [i for i, (_, _, wanted) in enumerate(asked) if wanted > 0]
        for step in range(max((wanted for _, _, wanted in asked), default=0)):
            rows = []
            for i in at:
                slot, before, _ = asked[i]
                tokens, held = before + guesses[i], self.held[slot]
                same = next((k for k, (one, other) in enumerate(zip(tokens, held)) if one != other), min(len(tokens), len(held)))
                same = min(same, len(tokens) - 1)  # the line is that of the last token
                rows.append(Row(slot, slot, same, 1, tokens[same:]))
                self.held[slot] = tokens
            if not rows:
                break
            for i, line in zip(at, lines(self.assistant.step(Rows.of(rows)), len(rows), size, "the assistant's step")):
                guesses[i].append(int(line.argmax()))
            at = [i for i in at if step + 1 < asked[i][2]]
        return guesses


class Processed:
    """A model whose scores pass through processors; sources are Inputs.

    processors
        In their order.
    beams, plain
        They see log-probabilities, as in a beam; else the model's scores, as everywhere else. plain: there are none.
    stops
        Functions (input_ids, scores) that say which outputs are over. They, and the deadline, end an output by a token of their own,
        which is the last one of the vocabulary here.
    """

    def __init__(self, model: Any, vocabulary: Vocabulary, processors: Sequence[Processor] = (), *, beams: bool = False, plain: bool = False,
                 stops: Sequence[Callable[..., Any]] = (), deadline: float | None = None, guidance: Guidance | None = None,
                 drafts: Drafts | None = None, lookup: int | None = None, scores: bool = False, logits: bool = False, top: int = 0):
        self.model, self.processors, self.stops, self.deadline = model, processors, stops, deadline
        self.guidance, self.drafts, self.beams = guidance, drafts, beams
        self.size = int(vocabulary.size)
        its = getattr(model, "kind", "logits")
        self.kind = its if plain else "log_probs" if beams else "logits"
        self.normalises = beams and its == "logits" and guidance is None
        self.ends = bool(stops) or deadline is not None
        self.end = self.size  # the token that ends an output
        self.vocabulary = vocabulary if not self.ends else Vocabulary(
            self.size + 1, vocabulary.bos, [*vocabulary_eos(vocabulary), self.end], vocabulary.never)
        self.limits = getattr(model, "limits", Limits())
        if guidance is not None and self.limits.slot_count is not None:
            if self.limits.slot_count < 2:
                raise ArgumentError("generate: guidance_scale: needs a model of at least two slots")
            self.limits = Limits(self.limits.slot_count // 2, self.limits.length)
        self.abilities = getattr(model, "abilities", None)
        if self.abilities is None:
            del self.abilities
        if getattr(model, "token_bytes", None) is not None:
            self.token_bytes = [*model.token_bytes, b""] if self.ends else model.token_bytes
        if drafts is not None:
            self.propose = self._propose
        self.lookup = getattr(model, "lookup", 0) if lookup is None else lookup
        self.kept_scores, self.kept_logits, self.top = scores, logits, top
        self.record: dict[tuple[int, bytes], tuple[Any, Any, Any]] = {}  # by input and output so far
        self.histories = Histories()

    def start(self, sources: list[Input], slots: list[int]) -> None:
        self.histories.start(sources, slots)
        given = [source.source for source in sources]
        (self.model if self.guidance is None else self.guidance).start(given, slots)
        if self.drafts is not None:
            self.drafts.start(given, slots)

    def release(self, slots: list[int]) -> None:
        if self.guidance is not None:
            self.guidance.release(slots)
        elif hasattr(self.model, "release"):
            self.model.release(slots)
        if self.drafts is not None:
            self.drafts.release(slots)

    def _propose(self, drafts: Sequence[Any]) -> list[list[int]]:
        assert self.drafts is not None
        most = self.drafts.most
        return self.drafts.propose([
            (draft.slot, [*self.histories.tokens[draft.slot, :draft.length].tolist(), *draft.pending],
             draft.wanted if most is None else min(draft.wanted, most)) for draft in drafts])

    def step(self, rows: Rows) -> Any:
        import numpy

        listed = list(rows)
        self.histories.advance(listed)
        count = rows.line_count
        if self.guidance is not None:
            found, logits = self.guidance.step(listed, self.histories, self.size)
        else:
            found = lines(self.model.step(rows), count, self.size)
            logits = found.copy() if self.kept_logits else found
        if self.normalises:
            found = log_softmax(found, own=True)
        places: dict[int, list[tuple[int, int]]] = {}  # by length: line and slot
        line = 0
        for row in listed:
            prompt = self.histories.inputs[row.to].prompt
            for length in range(row.length + len(row.tokens) - row.lines + 1, row.length + len(row.tokens) + 1):
                if length >= prompt:  # lines within it are of no use to anybody
                    places.setdefault(length, []).append((line, row.to))
                line += 1
        answer = found
        if self.ends:
            answer = numpy.full((count, self.size + 1), -numpy.inf, numpy.float32)
            answer[:, :self.size] = found
        for length, group in places.items():
            at: Any = [place for place, _ in group]
            ids = self.histories.tokens[[slot for _, slot in group], :length]
            inputs = [self.histories.inputs[slot] for _, slot in group]
            if len(at) == count:
                at = slice(None)  # all lines, in their order
            scores = found[at]
            for processor in self.processors:
                scores = processor(ids, scores, inputs)
            if self.kept_scores or self.kept_logits or self.top:
                self._keep(ids, scores, logits[at], inputs)
            if self.ends:
                over = self._over(ids, scores, inputs)
                scores[over] = -numpy.inf
                answer[numpy.arange(count)[at][over], self.end] = 0
                answer[at, :self.size] = scores
            elif scores.base is not found and scores is not found:
                answer[at] = scores
        return answer

    def _over(self, ids: Ids, scores: Scores, inputs: Sequence[Input]) -> Any:
        """Which of these outputs are over."""
        import numpy

        begun = numpy.array([ids.shape[1] > its.prompt for its in inputs])
        over = numpy.zeros(len(inputs), bool)
        if begun.any():
            if self.deadline is not None and time.monotonic() >= self.deadline:
                over[:] = True
            over |= said_over(self.stops, ids)
        return over & begun

    def _keep(self, ids: Ids, scores: Scores, logits: Scores, inputs: Sequence[Input]) -> None:
        tops: list[Any] = [None] * len(inputs)
        if self.top:
            logs = log_softmax(scores)
            order = (-logs).argsort(-1, kind="stable")[:, :self.top]
            tops = [[(int(token), float(logs[i, token])) for token in order[i]] for i in range(len(inputs))]
        for i, its in enumerate(inputs):
            self.record[its.number, ids[i, its.prompt:].tobytes()] = (
                scores[i].copy() if self.kept_scores else None, logits[i].copy() if self.kept_logits else None, tops[i])

    def finish(self, number: int, hypothesis: Any) -> bool:
        """Takes off a hypothesis what is not of the caller's model, and gives it what was kept. Whether its end was taken off."""
        import numpy

        cut = bool(self.ends and hypothesis.tokens and hypothesis.tokens[-1] == self.end)
        if cut:
            hypothesis.tokens, hypothesis.log_probs = hypothesis.tokens[:-1], hypothesis.log_probs[:-1]
            hypothesis.finished = bool(self.stops)  # else the deadline cut it off
        if self.kept_scores or self.kept_logits or self.top:
            tokens = numpy.array(hypothesis.tokens, numpy.int64)
            seen = [self.record[number, tokens[:i].tobytes()] for i in range(len(tokens))]
            if self.kept_scores:
                hypothesis.scores = numpy.array([one[0] for one in seen])
            if self.kept_logits:
                hypothesis.logits = numpy.array([one[1] for one in seen])
            if self.top:
                hypothesis.top_log_probs = [one[2] for one in seen]
        return cut

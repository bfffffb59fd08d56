# SPDX-License-Identifier: Apache-2.0
"""Logits processors and warpers of Hugging Face transformers, in NumPy; its own objects and functions of the user beside them.

Each is called once a step for all rows whose histories have the same length: `processor(ids, scores, rows)`, with the tokens so far
[n, length], prompt included, scores [n, V], which it may change and returns, and what each row belongs to. The rules are those of
transformers 5.24, generation/logits_process.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy
    import numpy.typing

    Ids = numpy.typing.NDArray[numpy.int64]
    Scores = numpy.typing.NDArray[numpy.float32]


@dataclass
class Row:
    """What one input of `generate` is to its processors."""

    source: Any
    """The model's."""
    number: int
    """Among the inputs."""
    prompt: int
    """Tokens before its output, at least 1."""
    least: int
    """Length of prompt and output below which no eos comes."""
    most: int
    """The maximum length of prompt and output."""
    encoded: Any = None
    """The tokens of its source, or its prompt: an array."""


if TYPE_CHECKING:
    Processor = Callable[[Ids, Scores, Sequence[Row]], Scores]


def log_softmax(scores: Scores, own: bool = False) -> Scores:
    """own: the scores may be written to."""
    import numpy

    made = scores if own else numpy.array(scores, numpy.float32)
    some = max(1, 2**18 // max(made.shape[-1], 1))  # lines that stay in a cache
    raised = numpy.empty((min(some, len(made)), made.shape[-1]), numpy.float32)
    with numpy.errstate(divide="ignore", invalid="ignore"):
        for begin in range(0, len(made), some):
            part = made[begin:begin + some]
            part -= part.max(-1, keepdims=True)
            part -= numpy.log(numpy.exp(part, out=raised[:len(part)]).sum(-1, keepdims=True))
    return made


def _softmax(scores: Scores) -> Scores:
    import numpy

    raised = numpy.exp(scores - scores.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)  # type: ignore[no-any-return]


# ---- what changes scores -----------------------------------------------------------------------------------------------


def _penalised(ids: Ids, scores: Scores, penalty: float) -> Scores:
    import numpy

    seen = numpy.take_along_axis(scores, ids, 1)
    numpy.put_along_axis(scores, ids, numpy.where(seen < 0, seen * penalty, seen / penalty), 1)
    return scores


def repetition(penalty: float) -> Processor:
    return lambda ids, scores, rows: _penalised(ids, scores, penalty)


def encoder_repetition(penalty: float) -> Processor:
    def process(ids: Ids, scores: Scores, rows: Sequence[Row]) -> Scores:
        for i, row in enumerate(rows):
            scores[i:i + 1] = _penalised(row.encoded[None, :], scores[i:i + 1], 1 / penalty)
        return scores

    return process


def sequence_bias(bias: Mapping[tuple[int, ...], float], size: int, name: str) -> Processor:
    import numpy

    alone, by_length = numpy.zeros(size, numpy.float32), {}  # type: ignore[var-annotated]
    for phrase, added in bias.items():
        outside = [token for token in phrase if not 0 <= token < size]
        if outside or not phrase:
            raise ValueError(f"generate: {name}: {list(phrase)}: must be tokens of the vocabulary of {size}, at least one")
        if len(phrase) == 1:
            alone[phrase[0]] = added
        else:
            by_length.setdefault(len(phrase) - 1, []).append((phrase, added))
    groups = [(numpy.array([phrase[:-1] for phrase, _ in group]), numpy.array([phrase[-1] for phrase, _ in group]),
               numpy.array([added for _, added in group], numpy.float32)) for group in by_length.values()]

    def process(ids: Ids, scores: Scores, rows: Sequence[Row]) -> Scores:
        scores += alone
        for begins, ends, added in groups:
            length = begins.shape[1]
            if length <= ids.shape[1]:
                at, which = numpy.nonzero((ids[:, None, -length:] == begins).all(-1))
                numpy.add.at(scores, (at, ends[which]), added[which])
        return scores

    return process


def exponential_decay(start: int, factor: float, eos: Sequence[int]) -> Processor:
    import numpy

    at = numpy.array(eos)

    def process(ids: Ids, scores: Scores, rows: Sequence[Row]) -> Scores:
        for i, row in enumerate(rows):
            beyond = ids.shape[1] - start - row.prompt
            if beyond > 0:
                its = scores[i, at]
                added = numpy.abs(its) * numpy.float32(factor**beyond - 1)
                scores[i, at] = its + numpy.where(numpy.isfinite(its), added, numpy.float32(0))
        return scores

    return process


def remove_invalid(ids: Ids, scores: Scores, rows: Sequence[Row]) -> Scores:
    import numpy

    most = float(numpy.finfo(numpy.float32).max)
    return numpy.nan_to_num(scores, copy=False, nan=0.0, posinf=most, neginf=-most)


def renormalize(ids: Ids, scores: Scores, rows: Sequence[Row]) -> Scores:
    return log_softmax(scores)


# ---- what is impossible ------------------------------------------------------------------------------------------------


def _banned(scores: Scores, which: Any, tokens: Sequence[int]) -> Scores:
    import numpy

    if len(which):
        scores[numpy.ix_(which, tokens)] = -numpy.inf
    return scores


def minimum(eos: Sequence[int]) -> Processor:
    def process(ids: Ids, scores: Scores, rows: Sequence[Row]) -> Scores:
        return _banned(scores, [i for i, row in enumerate(rows) if ids.shape[1] < row.least], eos)

    return process


def suppress(tokens: Sequence[int]) -> Processor:
    return lambda ids, scores, rows: _banned(scores, range(len(rows)), tokens)


def suppress_at_begin(tokens: Sequence[int], bos_is_forced: bool) -> Processor:
    def process(ids: Ids, scores: Scores, rows: Sequence[Row]) -> Scores:
        at = [i for i, row in enumerate(rows) if ids.shape[1] == row.prompt + (bos_is_forced and row.prompt == 1)]
        return _banned(scores, at, tokens)

    return process


def no_repeat_ngram(n: int) -> Processor:
    import numpy

    def process(ids: Ids, scores: Scores, rows: Sequence[Row]) -> Scores:
        length = ids.shape[1]
        if length >= n:
            seen = numpy.lib.stride_tricks.sliding_window_view(ids, n, axis=1)
            at, where = numpy.nonzero((seen[:, :, :-1] == ids[:, None, length + 1 - n:]).all(-1))
            scores[at, seen[at, where, -1]] = -numpy.inf
        return scores

    return process


def encoder_no_repeat_ngram(n: int) -> Processor:
    import numpy

    def process(ids: Ids, scores: Scores, rows: Sequence[Row]) -> Scores:
        length = ids.shape[1]
        for i, row in enumerate(rows):
            if n <= len(row.encoded) and length + 1 >= n:
                seen = numpy.lib.stride_tricks.sliding_window_view(row.encoded, n)
                where = (seen[:, :-1] == ids[i, length + 1 - n:]).all(-1)
                scores[i, seen[where, -1]] = -numpy.inf
        return scores

    return process


def prefix_allowed(function: Callable[[int, Any], Sequence[int]]) -> Processor:
    import numpy

    def process(ids: Ids, scores: Scores, rows: Sequence[Row]) -> Scores:
        mask = numpy.full_like(scores, -numpy.inf)
        for i, (row, tokens) in enumerate(zip(rows, as_theirs(ids))):
            allowed = list(function(row.number, tokens))
            if not allowed:
                raise ValueError(f"generate: prefix_allowed_tokens_fn: returned no token for input {row.number}")
            mask[i, allowed] = 0
        scores = scores + mask
        possible: dict[int, bool] = {}
        for row, best in zip(rows, scores.max(-1)):
            possible[row.number] = possible.get(row.number, False) or best > -numpy.inf
        for i, row in enumerate(rows):  # as in transformers: they hold though all beams say they are impossible
            if not possible[row.number]:
                scores[i] = mask[i]
        return scores

    return process


def _forced(scores: Scores, which: Sequence[int], tokens: Sequence[int]) -> Scores:
    import numpy

    if which:
        scores[which] = -numpy.inf
        scores[numpy.ix_(which, tokens)] = 0
    return scores


def forced_bos(token: int) -> Processor:
    return lambda ids, scores, rows: _forced(scores, range(len(rows)) if ids.shape[1] == 1 else (), [token])


def forced_eos(tokens: Sequence[int]) -> Processor:
    def process(ids: Ids, scores: Scores, rows: Sequence[Row]) -> Scores:
        return _forced(scores, [i for i, row in enumerate(rows) if ids.shape[1] == row.most - 1], tokens)

    return process


# ---- warpers: what samples are drawn from --------------------------------------------------------------------------------


def _cut(scores: Scores, removed: Any) -> Scores:
    import numpy

    scores[removed] = -numpy.inf
    return scores


def temperature(value: float) -> Processor:
    def process(ids: Ids, scores: Scores, rows: Sequence[Row]) -> Scores:
        scores /= value
        return scores

    return process


def top_k(k: int) -> Processor:
    import numpy

    def process(ids: Ids, scores: Scores, rows: Sequence[Row]) -> Scores:
        kept = min(k, scores.shape[1])
        return _cut(scores, scores < numpy.partition(scores, -kept, -1)[:, -kept, None])

    return process


def top_p(mass: float) -> Processor:
    import numpy

    def process(ids: Ids, scores: Scores, rows: Sequence[Row]) -> Scores:
        order = numpy.argsort(scores, -1, kind="stable")
        removed = numpy.cumsum(_softmax(numpy.take_along_axis(scores, order, 1)), -1) <= 1 - mass
        removed[:, -1] = False
        at = numpy.zeros_like(removed)
        numpy.put_along_axis(at, order, removed, 1)
        return _cut(scores, at)

    return process


def min_p(share: float) -> Processor:
    def process(ids: Ids, scores: Scores, rows: Sequence[Row]) -> Scores:
        p = _softmax(scores)
        return _cut(scores, p < share * p.max(-1, keepdims=True))

    return process


def typical(mass: float) -> Processor:
    import numpy

    def process(ids: Ids, scores: Scores, rows: Sequence[Row]) -> Scores:
        logs = log_softmax(scores)
        p = numpy.exp(logs)
        with numpy.errstate(invalid="ignore"):
            off = numpy.abs(-logs - -numpy.nansum(logs * p, -1, keepdims=True))
        order = numpy.argsort(off, -1, kind="stable")
        summed = numpy.cumsum(numpy.take_along_axis(p, order, 1), -1)
        last = numpy.minimum((summed < mass).sum(-1), scores.shape[1] - 1)
        nearest = numpy.take_along_axis(off, order, 1)
        removed = off > numpy.take_along_axis(nearest, last[:, None], 1)
        removed[numpy.arange(len(rows)), order[:, 0]] = False
        return _cut(scores, removed)

    return process


def epsilon(least: float) -> Processor:
    def process(ids: Ids, scores: Scores, rows: Sequence[Row]) -> Scores:
        return _cut(scores, (_softmax(scores) < least) & (scores < scores.max(-1, keepdims=True)))

    return process


def _entropy(logs: Scores, p: Scores) -> Scores:
    import numpy

    return -numpy.where(p > 0, p * logs, numpy.float32(0)).sum(-1, keepdims=True)  # type: ignore[no-any-return]


def eta(least: float) -> Processor:
    import numpy

    def process(ids: Ids, scores: Scores, rows: Sequence[Row]) -> Scores:
        logs = log_softmax(scores)
        p = numpy.exp(logs)
        with numpy.errstate(invalid="ignore"):
            limit = numpy.minimum(numpy.float32(least), numpy.sqrt(numpy.float32(least)) * numpy.exp(-_entropy(logs, p)))
        return _cut(scores, (p < limit) & (scores < scores.max(-1, keepdims=True)))

    return process


def top_h(share: float) -> Processor:
    import numpy

    def process(ids: Ids, scores: Scores, rows: Sequence[Row]) -> Scores:
        order = numpy.argsort(-scores, -1, kind="stable")[:, :100]
        logs = log_softmax(numpy.take_along_axis(scores, order, 1))
        p = numpy.exp(logs)
        with numpy.errstate(invalid="ignore"):
            terms = numpy.where(p > 0, -p * logs, numpy.float32(0))
        kept = numpy.cumsum(terms, -1) <= terms.sum(-1, keepdims=True) * share
        kept[:, 0] = True
        removed = numpy.ones(scores.shape, bool)
        numpy.put_along_axis(removed, order, ~kept, 1)
        return _cut(scores, removed)

    return process


# ---- those of others -----------------------------------------------------------------------------------------------------


def as_theirs(array: Any) -> Any:
    """An array as a tensor where torch has been imported, else as it is."""
    torch = sys.modules.get("torch")
    return array if torch is None else torch.from_numpy(array)


def as_ours(answer: Any, name: str) -> Any:
    """An array of what a function of theirs answered."""
    import numpy

    if hasattr(answer, "detach"):
        answer = answer.detach().cpu().float().numpy()
    try:
        return numpy.asarray(answer)
    except (TypeError, ValueError) as error:
        raise TypeError(f"generate: {name} returned {answer!r}: must be an array or a tensor") from error


def theirs(processor: Callable[[Any, Any], Any], name: str = "logits_processor") -> Processor:
    """A logits processor of transformers, or any function (input_ids, scores) -> scores."""
    import numpy

    def process(ids: Ids, scores: Scores, rows: Sequence[Row]) -> Scores:
        answer = as_ours(processor(as_theirs(ids), as_theirs(scores)), name)
        if answer.shape != scores.shape:
            raise ValueError(f"generate: {name} returned scores of shape {answer.shape}: must be {scores.shape}")
        return numpy.array(answer, numpy.float32)  # a copy: it may be the caller's own

    return process


def over(criteria: Sequence[Callable[..., Any]], ids: Ids) -> Any:
    """Of which of these outputs, prompts included, criteria of transformers say that they are over."""
    import numpy

    found = numpy.zeros(len(ids), bool)
    for criterion in criteria:
        said = as_ours(criterion(as_theirs(ids), None), "stopping_criteria").astype(bool)
        if said.shape not in ((), found.shape):
            raise ValueError(f"generate: stopping_criteria returned an array of shape {said.shape}: must be {found.shape}, or one bool")
        found |= said
    return found


def over_one(criteria: Sequence[Callable[..., Any]], prompt: Sequence[int]) -> Callable[[Sequence[int]], bool]:
    """The same for one output behind its prompt."""
    import numpy

    begin = list(prompt)
    return lambda tokens: bool(over(criteria, numpy.array([[*begin, *tokens]], numpy.int64))[0])


def functions(given: Any, name: str) -> list[Callable[..., Any]]:
    """A list of them, or one."""
    listed = list(given) if isinstance(given, Iterable) else [given]
    for one in listed:
        if not callable(one):
            raise TypeError(f"generate: {name}: {one!r}: must be called with (input_ids, scores)")
    return listed

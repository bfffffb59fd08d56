# SPDX-License-Identifier: Apache-2.0
"""What a model is, and how the library sees it."""

from __future__ import annotations

import array
import ctypes as C
import re
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, overload, runtime_checkable

from ._library import (BLOCKS, RAGGED, ROLL_BACK, CModelFunctions, CRow, Propose, Release, SourceLength, Start, StepView, Tokens,
                       create, need_numpy, token_array, whole)
from ._scores import lines_of


@dataclass(frozen=True)
class Vocabulary:
    """A model's tokens, which are numbers in [0, size)."""

    size: int
    """V; tokens are 0 .. V - 1."""
    bos: int = 0
    """Fed first if a request has no prompt."""
    eos: int | Sequence[int] = ()
    """Each of these ends an output; none: outputs have a fixed length."""
    never: Sequence[int] = ()
    """Never generated (padding, bos); may still stand in a prompt."""


@dataclass(frozen=True)
class Abilities:
    """What a model claims to support: docs/model.md. Nothing by default: then every row of a step has the same length and one token."""

    ragged: bool = False
    """Rows of one step may differ in length and in number of tokens."""
    blocks: bool = False
    """A row may have several tokens and ask for several lines."""
    roll_back: bool = False
    """`Row.length` may be less than the slot holds."""


@dataclass(frozen=True)
class Limits:
    """How much a model can hold."""

    slot_count: int | None = None
    """Slots at once; slot numbers stay below. None: no limit."""
    length: int | None = None
    """Tokens in one slot, prompt included. None: no limit."""


class Row(NamedTuple):
    """One row of a step: continue slot `from_` in slot `to`, after its first `length` tokens, with `tokens`, and answer after each
    of the last `lines` of them."""

    from_: int
    to: int
    length: int
    lines: int
    tokens: list[int]


_ROW = struct.Struct("@iiiiPN")  # CRow
assert _ROW.size == C.sizeof(CRow)


class Rows(Sequence[Row]):
    """The rows of a step: a sequence of Row, and the same as arrays of NumPy (`rows.to`, `rows.tokens` and so on).

    All forks of a step (from_ != to) copy first, then every row is cut to its length, then every row appends its tokens.
    """

    def __init__(self, address: int, count: int):
        self._raw = C.string_at(address, count * _ROW.size)  # a copy: it may be kept
        self._rows = list(_ROW.iter_unpack(self._raw))  # from_, to, length, lines, address of tokens, their number
        self._tokens = C.string_at(self._rows[0][4], 4 * sum(row[5] for row in self._rows)) if count else b""
        self._table: Any = None

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Rows:
        """The same for rows that Python asks a model for."""
        made = cls(0, 0)
        made._rows = [(row.from_, row.to, row.length, row.lines, 0, len(row.tokens)) for row in rows]
        made._raw = b"".join(_ROW.pack(*row) for row in made._rows)
        made._tokens = array.array("i", [token for row in rows for token in row.tokens]).tobytes()
        return made

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        tokens, at = memoryview(self._tokens).cast("i"), 0
        for from_, to, length, lines, _, count in self._rows:
            yield Row(from_, to, length, lines, tokens[at:at + count].tolist())
            at += count

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...

    def __getitem__(self, index: Any) -> Any:
        return list(self)[index]

    def _column(self, name: str) -> Any:
        if self._table is None:
            numpy = need_numpy("an array of the rows of a step")
            self._table = numpy.frombuffer(self._raw, _row_type())
        return self._table[name]

    @property
    def line_count(self) -> int:
        """The number of lines to answer with: those of all rows."""
        return sum(row[3] for row in self._rows)

    @property
    def from_(self) -> Any:
        """[rows]: the slot that each row continues."""
        return self._column("from")

    @property
    def to(self) -> Any:
        """[rows]: the slot that each row continues in."""
        return self._column("to")

    @property
    def length(self) -> Any:
        """[rows]: how many tokens of its slot each row keeps."""
        return self._column("length")

    @property
    def lines(self) -> Any:
        """[rows]: lines asked of each row."""
        return self._column("lines")

    @property
    def count(self) -> Any:
        """[rows]: tokens of each row."""
        return self._column("count")

    @property
    def tokens(self) -> Any:
        """The tokens of all rows behind each other: [rows] if each has one."""
        numpy = need_numpy("an array of the rows of a step")
        return numpy.frombuffer(self._tokens, numpy.int32)


def _row_type() -> Any:
    global _row_dtype
    if _row_dtype is None:
        numpy = need_numpy("an array of the rows of a step")
        _row_dtype = numpy.dtype(CRow)
    return _row_dtype


_row_dtype: Any = None


class Draft(NamedTuple):
    """An output of a Blockwise search whose next tokens may be guessed."""

    slot: int
    """Its slot."""
    length: int
    """The first `length` tokens of the slot stay."""
    pending: list[int]
    """Tokens chosen since, not yet in the slot."""
    wanted: int
    """The maximum number of guesses."""


@runtime_checkable
class Model(Protocol):
    """What a model has: any object with these. docs/model.md has the contract.

    It may also have

    - `abilities: Abilities`, `limits: Limits`;
    - `kind: str`: "logits" (the default) or "log_probs", what its scores are;
    - `token_bytes: Sequence[bytes]`, of every token, for grammars; empty for control tokens;
    - `token_names: Mapping[str, int]`, the names of control tokens, for grammars and calls of tools: {"<|im_end|>": 7}, as
      `get_added_vocab()` of Hugging Face's tokenizers;
    - `release(slots)`: these slots are no longer needed;
    - `source_length(source) -> int`, for limits that are a factor of it;
    - `propose(drafts: list[Draft]) -> list[Sequence[int]]`: guesses for Blockwise, each following the one before;
    - `lookup: int`: prompt lookup with the last so many tokens, before `propose`;
    - `is_encoder_decoder: bool`, for `generate`: inputs are sources, not prompts.
    """

    @property
    def vocabulary(self) -> Vocabulary:
        """Its tokens."""

    def start(self, sources: list[Any], slots: list[int], /) -> None:
        """Begins sources[i] in slots[i], which then holds no token."""

    def step(self, rows: Rows, /) -> Any:
        """The scores of all tokens after each line asked for: float32 [lines of all rows, V], -inf for impossible tokens.

        Arrays of NumPy, tensors with `__dlpack__` on the CPU and buffers are read where they lie: they must stay as they are
        until the next call.
        """


class FunctionModel:
    """A model made of a function from all tokens so far (bos or prompt included) to the scores of the next one; no cache.

    For first experiments: every line runs the function over all its tokens.

    function
        `function(tokens) -> scores`, [V], or with `takes_source` `function(tokens, source) -> scores`.
    batched
        The function gets a list of token lists (and a list of sources), and returns [lines, V].
    """

    function: Callable[..., Any]
    vocabulary: Vocabulary
    kind: Literal["logits", "log_probs"]
    batched: bool
    takes_source: bool
    token_bytes: Sequence[bytes] | None
    token_names: Mapping[str, int]
    lookup: int
    is_encoder_decoder: bool
    abilities: Abilities = Abilities(ragged=True, blocks=True, roll_back=True)

    def __init__(self, function: Callable[..., Any], vocabulary: Vocabulary, *, kind: Literal["logits", "log_probs"] = "logits", batched: bool = False,
                 takes_source: bool = False, token_bytes: Sequence[bytes] | None = None, lookup: int = 0,
                 is_encoder_decoder: bool = False, token_names: Mapping[str, int] | None = None):
        if not callable(function):
            raise TypeError(f"sluice: function = {function!r}: must be a function from tokens to scores")
        self.function, self.vocabulary, self.kind, self.batched = function, vocabulary, kind, batched
        self.takes_source, self.token_bytes, self.lookup = takes_source, token_bytes, lookup
        self.is_encoder_decoder, self.token_names = is_encoder_decoder, token_names or {}
        self._slots: dict[int, tuple[Any, list[int]]] = {}

    def start(self, sources: list[Any], slots: list[int]) -> None:
        for source, slot in zip(sources, slots):
            self._slots[slot] = source, []

    def step(self, rows: Rows) -> Any:
        before = {row.from_: self._slots[row.from_] for row in rows}
        contexts, sources = [], []
        for row in rows:
            source, held = before[row.from_]
            tokens = held[:row.length] + row.tokens
            self._slots[row.to] = source, tokens
            for end in range(len(tokens) - row.lines + 1, len(tokens) + 1):
                contexts.append(tokens[:end])
                sources.append(source)
        if self.batched:
            return self.function(contexts, sources) if self.takes_source else self.function(contexts)
        numpy = need_numpy("FunctionModel without batched=True")
        scores = numpy.empty((len(contexts), self.vocabulary.size), numpy.float32)
        for line, tokens, source in zip(scores, contexts, sources):
            found = numpy.asarray(self.function(tokens, source) if self.takes_source else self.function(tokens))
            if found.shape != line.shape:
                raise ValueError(f"the function gave scores of shape {found.shape}: must be {line.shape}")
            line[:] = found
        return scores

    def release(self, slots: list[int]) -> None:
        for slot in slots:
            self._slots.pop(slot, None)


def checked_vocabulary(vocabulary: Any) -> Any:
    """What has the members of a Vocabulary, whose numbers fit into C."""
    for member in ("size", "bos", "eos", "never"):
        if not hasattr(vocabulary, member):
            raise TypeError(f"sluice: vocabulary = {vocabulary!r}: must be Vocabulary(size, bos, eos, never)")
    whole(vocabulary.size, "vocabulary.size")
    whole(vocabulary.bos, "vocabulary.bos")
    return vocabulary


_ABILITIES = {"ragged": RAGGED, "blocks": BLOCKS, "roll_back": ROLL_BACK}


class State:
    """What the tables of one decoder share: sources by numbers, what models raised, whether one of them runs."""

    def __init__(self) -> None:
        self.sources: dict[int, Any] = {}  # by the number that stands for each; 0: None
        self.errors: dict[int, BaseException] = {}
        self.stops_at: type[BaseException] | tuple[type[BaseException], ...] = ()  # after such an error no model is called again
        self.stopped_by: BaseException | None = None
        self.in_model = False  # whether a model's code runs now
        self._lock = threading.Lock()
        self._next = self._error_count = 0

    def add_source(self, source: Any) -> int | None:
        """The number that stands for a source; None for None."""
        if source is None:
            return None
        with self._lock:
            self._next += 1
            self.sources[self._next] = source
            return self._next

    def remove_source(self, number: int | None) -> None:
        if number is not None:
            self.sources.pop(number, None)

    def failed(self, error: BaseException) -> int:
        """Keeps an error; the number that stands for it."""
        with self._lock:
            self._error_count += 1
            number = self._error_count % 2**30 + 1
            self.errors[number] = error
            if len(self.errors) > 256:
                del self.errors[next(iter(self.errors))]
            if self.stopped_by is None and isinstance(error, self.stops_at):
                self.stopped_by = error
        return number

    def cause_of(self, message: str) -> BaseException | None:
        """The exception behind a result whose message is this."""
        found = re.search(r"the (?:model's \w+|processor|stopping criterion) returned (-?\d+)$", message)
        if found is None:
            return None
        number = int(found[1])
        return self.stopped_by if number == Table.STOPPED else self.errors.get(number)


def demand_model(model: Any, name: str) -> None:
    """Raises what a model lacks, and what makes one of what is none."""
    lacks = [what for what, member in (("start(sources, slots)", "start"), ("step(rows)", "step"))
             if isinstance(model, type) or not callable(getattr(model, member, None))]
    if not hasattr(model, "vocabulary"):
        lacks.insert(0, "vocabulary")
    if lacks:
        raise TypeError(f"sluice: {name} = {model!r}: has no {', '.join(lacks)}: must be an object with vocabulary, start(sources, slots) and "
                        "step(rows); a function becomes one by FunctionModel(function, Vocabulary(...)), n-grams by NGramModel(ngrams), a model of "
                        "transformers by sluice.huggingface.CausalLM(model)")


class Table:
    """A model as the library's table of functions. What the model raises is kept, and returned as a number."""

    STOPPED = -1

    def __init__(self, model: Any, state: State | None = None, name: str = "model"):
        self.model = model
        self.state = State() if state is None else state
        self._kept: Any = None  # the scores of the last step
        demand_model(model, name)
        vocabulary = checked_vocabulary(model.vocabulary)
        self.size = int(vocabulary.size)
        eos = [vocabulary.eos] if hasattr(vocabulary.eos, "__index__") else vocabulary.eos
        kind = getattr(model, "kind", "logits")
        if kind not in ("logits", "log_probs"):
            raise ValueError(f'sluice: kind = {kind!r}: must be "logits" or "log_probs"')
        abilities = getattr(model, "abilities", Abilities())
        limits = getattr(model, "limits", Limits())
        for member in ("ragged", "blocks", "roll_back"):
            if not hasattr(abilities, member):
                raise TypeError(f"sluice: abilities = {abilities!r}: must be Abilities(...)")
        most = {}
        for member in ("slot_count", "length"):
            if not hasattr(limits, member):
                raise TypeError(f"sluice: limits = {limits!r}: must be Limits(...)")
            value = getattr(limits, member)
            most[member] = 0 if value is None else whole(value, f"limits.{member}", 1)
        eos_array, eos_count = token_array(eos, "vocabulary.eos")
        never_array, never_count = token_array(vocabulary.never, "vocabulary.never")
        self.functions = CModelFunctions(
            size=C.sizeof(CModelFunctions), vocabulary=self.size, bos=int(vocabulary.bos), eos=eos_array, eos_count=eos_count,
            never=never_array, never_count=never_count,
            abilities=sum(bit for name, bit in _ABILITIES.items() if getattr(abilities, name, False)),
            log_probs=kind == "log_probs", max_slots=most["slot_count"], max_length=most["length"],
            start=Start(self._start), step_view=StepView(self._step), lookup=whole(getattr(model, "lookup", 0), "lookup", 0))
        if hasattr(model, "release"):
            self.functions.release = Release(self._release)
        if hasattr(model, "source_length"):
            self.functions.source_length = SourceLength(self._source_length)
        if hasattr(model, "propose"):
            self.functions.propose = Propose(self._propose)

    def create(self) -> int:
        """A sluice_model over it. It does not keep this table alive."""
        return create("model_create", C.byref(self.functions))

    def _start(self, _user: Any, count: int, sources: Any, slots: Any) -> int:
        try:
            if self.state.stopped_by is not None:
                return self.STOPPED
            self.state.in_model = True
            self.model.start([self.state.sources.get(source) for source in sources[:count]], slots[:count])
            return 0
        except BaseException as error:
            return self.state.failed(error)
        finally:
            self.state.in_model = False

    def _step(self, _user: Any, count: int, address: Any, scores: Any, stride: Any) -> int:
        try:
            if self.state.stopped_by is not None:
                return self.STOPPED
            rows = Rows(address, count)
            self.state.in_model = True
            answer = self.model.step(rows)
            self.state.in_model = False
            found, stride[0], self._kept = lines_of(answer, rows.line_count, self.size, "the model's step")
            scores[0] = found
            return 0
        except BaseException as error:
            return self.state.failed(error)
        finally:
            self.state.in_model = False

    def _release(self, _user: Any, count: int, slots: Any) -> None:
        try:
            if self.state.stopped_by is None:
                self.state.in_model = True
                self.model.release(slots[:count])
        except BaseException as error:
            self.state.failed(error)
        finally:
            self.state.in_model = False

    def _source_length(self, _user: Any, source: Any) -> int:
        try:
            self.state.in_model = True
            return whole(self.model.source_length(self.state.sources.get(source)), "the model's source_length")
        except BaseException as error:
            self.state.failed(error)
            return -1
        finally:
            self.state.in_model = False

    def _propose(self, _user: Any, count: int, drafts: Any) -> int:
        try:
            if self.state.stopped_by is not None:
                return self.STOPPED
            asked = [Draft(d.slot, d.length, d.pending[:d.pending_count], d.wanted) for d in drafts[:count]]
            self.state.in_model = True
            answers = self.model.propose(asked)
            self.state.in_model = False
            if not hasattr(answers, "__len__"):
                raise TypeError(f"the model's propose answered {answers!r}: must be a list of guesses for each draft")
            if len(answers) != count:
                raise ValueError(f"the model's propose answered {len(answers)} of {count} drafts")
            for i, guesses in enumerate(answers):
                draft = drafts[i]
                draft.made = min(len(guesses), draft.wanted)
                for k in range(draft.made):
                    draft.guesses[k] = whole(guesses[k], "a guess")
            return 0
        except BaseException as error:
            return self.state.failed(error)
        finally:
            self.state.in_model = False

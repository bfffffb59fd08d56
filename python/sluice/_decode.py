# SPDX-License-Identifier: Apache-2.0
"""Requests, results, and decoding them together."""

from __future__ import annotations

import contextlib
import ctypes as C
import html
import math
import signal
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ._language import AnyModel, Native, native
from ._library import (ArgumentError, CBytes, CHypothesis, CRequest, Error, bytes_array, bytes_of, call, create, expect, library, listed,
                       size_t, text_bytes, token_array, u64, whole)
from ._model import FunctionModel, State
from ._search import Grammar, Search, SearchHandle
from ._trace import Trace
from .options import Greedy

_GRAMMARS = "Grammar.gbnf(text), Grammar.regex(pattern) or Grammar.json_schema(schema)"


@dataclass
class Request:
    """What one output is decoded from."""

    source: Any = None
    """Any object: only the model interprets it (encoder input, an image, nothing)."""
    prompt: Sequence[int] = ()
    """Fed, not part of the output; none: bos."""
    prefix: Sequence[int] = ()
    """The output begins with these."""
    search: Search | None = None
    """Replaces the call's (or the server's) search, of the same kind."""
    seed: int | None = None
    """For its random numbers. None: the request's number, from 0: the same call draws the same again."""
    trace: bool | str = False
    """Whether the result has a `trace`; a string is what its page says of the request."""
    remember: bool = True
    """Whether it takes part in what a SuffixCache holds. False: its prompt and output are not stored, and its guesses do not come from
    what others left."""


@dataclass
class Hypothesis:
    """One output sequence."""

    tokens: list[int]
    """Forced prefix and generated tokens, final eos included; the prompt is not."""
    log_probs: list[float]
    """Of each token given those before it; natural logarithm."""
    log_prob: float
    """Their sum."""
    score: float
    """Hypotheses are ranked by this: log_prob after length penalty and the like."""
    finished: bool
    """Ended by eos, or, without eos, at its fixed length; else cut off."""
    constraints_met: int = 0
    """Demanded phrases that are in it."""
    constraints_total: int = 0
    """Of how many."""
    blocks: list[int] = field(default_factory=list)
    """Of Blockwise: tokens settled in each round."""
    stop: int = -1
    """Which stop ended it: those of `stop_tokens` in their order, then those of `stop`; -1: none. Its tokens are all that were
    generated, the stop included: Decoder.text cuts it off."""
    weight: float = math.nan
    """Of ParticleSample: the estimated probability of this output among those that match; they add up to 1. Else NaN."""
    scores: Any = field(default=None, compare=False, repr=False)
    """Of `generate(output_scores=True)`: [tokens, V], after all processors."""
    logits: Any = field(default=None, compare=False, repr=False)
    """Of `generate(output_logits=True)`: [tokens, V], as the model gave them."""
    top_log_probs: list[list[tuple[int, float]]] = field(default_factory=list, compare=False, repr=False)
    """Of `generate(top_logprobs=k)`: for each token of the output the k best there, with their log-probabilities."""


@dataclass
class Result:
    """The outcome of one request."""

    id: int
    """The request's number, from 0."""
    hypotheses: list[Hypothesis]
    """Best first (samples: in their order); those so far if it failed."""
    failure: str = "none"
    """"none", or why there is no, or no complete, result: "bad_request", "source", "search", "model", "not_a_number",
    "no_token_left", "late", "refused", "cancelled", "schedule", "no_room"."""
    message: str = ""
    """What failed, with names and values."""
    cause: BaseException | None = None
    """What the model raised, with its traceback, if that was why."""
    trace: Trace | None = None
    """If Request.trace asked for it."""
    log_z: float = math.nan
    """Of ParticleSample: an estimate of the logarithm of the probability that the model's output matches. Else NaN."""
    log_z_error: float = math.nan
    """An estimate of the standard deviation of log_z."""

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return self.failure == "none"

    @property
    def best(self) -> Hypothesis:
        """The first hypothesis."""
        if not self.hypotheses:
            raise DecodingError(self)
        return self.hypotheses[0]

    @property
    def tokens(self) -> list[int]:
        """Of the first hypothesis."""
        return self.best.tokens

    @property
    def score(self) -> float:
        """Of the first hypothesis."""
        return self.best.score

    def __iter__(self) -> Iterator[Hypothesis]:
        return iter(self.hypotheses)

    def __len__(self) -> int:
        return len(self.hypotheses)

    def __getitem__(self, index: int) -> Hypothesis:
        return self.hypotheses[index]

    def __bool__(self) -> bool:
        return True

    def error(self) -> BaseException | None:
        """What `decode` raises for this result: what the model raised, or a DecodingError; None if nothing failed."""
        if self.ok:
            return None
        return self.cause if self.cause is not None else DecodingError(self)

    def _repr_html_(self) -> str:
        """A table of the hypotheses, for notebooks."""
        head = "" if self.ok else f"<p><b>{html.escape(self.failure)}</b>: {html.escape(self.message)}</p>"
        rows = "".join(
            f"<tr><td>{h.score:.3f}</td><td>{h.log_prob:.3f}</td><td>{'yes' if h.finished else 'no'}</td><td style='text-align:left'>"
            + " ".join(f"<span title='{p:.3f}' style='background:rgba(214,120,40,{max(0.0, min(0.7, -p / 8)):.2f})'>{t}</span>"
                       for t, p in zip(h.tokens, h.log_probs)) + "</td></tr>"
            for h in self.hypotheses)
        return (f"{head}<table><thead><tr><th>score</th><th>log_prob</th><th>finished</th><th>tokens</th></tr></thead>"
                f"<tbody>{rows}</tbody></table>")


class DecodingError(Error):
    """A request failed: `result` has its failure, its message and its hypotheses so far."""

    result: Any
    """The Result, or of CTC the FramesResult."""

    def __init__(self, result: Any):
        super().__init__(f"request {result.id}: {result.failure}: {result.message}" if not result.ok else
                         f"request {result.id} has no hypotheses: {result.message}")
        self.result = result


def to_request(item: Any) -> Request:
    return item if isinstance(item, Request) else Request(source=item)


class TraceHandle:
    """A sluice_trace."""

    def __init__(self, about: bool | str):
        self.handle = create("trace_create", text_bytes(about, "trace") if isinstance(about, (str, bytes)) else None)
        weakref.finalize(self, library.sluice_trace_free, self.handle)

    def read(self) -> Trace:
        seen = CBytes()
        call("trace_lines", self.handle, C.byref(seen))
        lines = bytes_of(seen)
        call("trace_page", self.handle, C.byref(seen))
        return Trace(lines, bytes_of(seen))


def to_result(seen: Any, state: State, trace: TraceHandle | None = None) -> Result:
    """A copy of a sluice_result, and the exception behind it."""
    hypotheses = []
    for i in range(seen.count):
        h = seen.hypotheses[i]
        tokens, log_probs = (h.tokens[:h.count], h.log_probs[:h.count]) if h.count else ([], [])
        hypotheses.append(Hypothesis(tokens, log_probs, h.log_prob, h.score, bool(h.finished), h.constraints_met,
                                     h.constraints_total, h.blocks[:h.block_count] if h.block_count else [], h.stop,
                                     seen.weights[i] if seen.weights else math.nan))
    message = seen.message.decode(errors="replace")
    return Result(seen.id, hypotheses, seen.failure.decode(), message, state.cause_of(message),
                  None if trace is None else trace.read(), seen.log_z, seen.log_z_error)


def _free(model: Native, grammars: dict[Grammar, int]) -> None:
    for handle in grammars.values():
        library.sluice_grammar_free(handle)
    model.free()


@contextlib.contextmanager
def _interruptible(state: State) -> Iterator[None]:
    """Ctrl-C ends the decoding. Between calls of the model it would be lost: no Python runs there that could raise it further."""
    if (threading.current_thread() is not threading.main_thread()
            or signal.getsignal(signal.SIGINT) is not signal.default_int_handler):
        yield
        return

    def handler(number: int, frame: Any) -> None:
        if state.in_model:
            signal.default_int_handler(number, frame)
        state.stopped_by = state.stopped_by or KeyboardInterrupt()

    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


Errors = Literal["raise", "return"]


@contextlib.contextmanager
def calling(state: State, errors: Errors) -> Iterator[None]:
    """Around a call of the library that calls what Python has written. With "raise", the first thing that raises ends it."""
    if errors not in ("raise", "return"):
        raise ValueError(f'sluice: errors = {errors!r}: must be "raise" or "return"')
    state.errors, state.stopped_by = {}, None
    state.stops_at = BaseException if errors == "raise" else (KeyboardInterrupt, SystemExit)
    with _interruptible(state):
        yield


def checked(state: State, results: list[Any], errors: Errors) -> list[Any]:
    """The results of such a call, or what ended it, or with "raise" the first that failed."""
    if state.stopped_by is not None:
        stopped, state.stopped_by, state.errors = state.stopped_by, None, {}
        raise stopped
    if errors == "raise":
        for result in results:
            if not result.ok:
                raise DecodingError(result)
    return results


class Decoder:
    """A model, ready to decode: keeps what `decode` would make for each call, above all compiled grammars.

    One thread at a time uses the model; other threads wait. Freed by itself.
    """

    def __init__(self, model: AnyModel):
        self.model: Any = model
        """The model that it was made of."""
        self._state = State()
        self._native = native(model, self._state)
        self._handle = self._native.handle
        self._grammars: dict[Grammar, int] = {}
        self._has_bytes = False
        self._lock = threading.Lock()
        self._served = False  # a server has it
        weakref.finalize(self, _free, self._native, self._grammars)  # whose tables the library calls until then

    def check(self, grammar: Grammar) -> list[str]:
        """Compiles a grammar for this model; raises what is wrong with it, with line and column. Returns what a JSON schema holds that is
        ignored: names that are no keywords, formats that are none."""
        names, count = C.POINTER(CBytes)(), size_t()
        call("grammar_ignored", self._compiled(grammar), C.byref(names), C.byref(count))
        return [bytes_of(names[i]).decode() for i in range(count.value)]

    def to_bytes(self, grammar: Grammar) -> bytes:
        """The compiled grammar, for `Grammar.from_bytes`, here or elsewhere and for any model: reading it takes a fraction of what compiling
        a large schema does."""
        handle, size = self._compiled(grammar), size_t()
        call("grammar_to_bytes", handle, None, 0, C.byref(size))
        data = C.create_string_buffer(size.value)
        call("grammar_to_bytes", handle, data, size.value, C.byref(size))
        return data.raw

    def captures(self, grammar: Grammar, tokens: Iterable[int]) -> list[tuple[str, bytes]]:
        """What rules that are captured (`name[capture]` in Lark) have matched in a finished output: names and texts, in the order in
        which they begin, outer ones first."""
        output, count = token_array(tokens, "tokens")
        names, texts, found = C.POINTER(CBytes)(), C.POINTER(CBytes)(), size_t()
        call("grammar_captures", self._compiled(grammar), output, count, C.byref(names), C.byref(texts), C.byref(found))
        return [(bytes_of(names[i]).decode(), bytes_of(texts[i])) for i in range(found.value)]

    def _set_bytes(self) -> None:
        if self._has_bytes:
            return
        texts = getattr(self.model, "token_bytes", None)
        if texts is None:
            raise TypeError("sluice: model: needs token_bytes, the bytes of each token, before it takes a grammar or stop strings")
        array = bytes_array(texts, "token_bytes")
        size = int(self.model.vocabulary.size)
        if len(array) != size:
            raise ArgumentError(f"sluice: token_bytes has {len(array)} entries: must be {size}, one for each token of the vocabulary")
        names = getattr(self.model, "token_names", None) or {}
        if not hasattr(names, "items"):
            raise TypeError(f"sluice: token_names = {names!r}: must be a dict from names to tokens")
        spelt = bytes_array(list(names), "token_names")
        tokens, count = token_array(list(names.values()), "token_names")
        call("model_set_bytes", self._handle, array, len(array))
        if count:
            call("model_set_token_names", self._handle, tokens, spelt, count)
        self._has_bytes = True

    def _compiled(self, grammar: Grammar) -> int:
        expect(grammar, Grammar, "grammar", _GRAMMARS)
        if grammar not in self._grammars:
            self._set_bytes()
            self._grammars[grammar] = grammar._create(self._handle)
        return self._grammars[grammar]

    def _search(self, search: Search) -> SearchHandle:
        if not isinstance(search, Search):
            raise TypeError(f"sluice: search = {search!r}: must be Greedy, BeamSearch, Sample, StochasticBeam, "
                            "ParticleSample or Blockwise")
        if search._stop_bytes():
            self._set_bytes()
        return search._create(self._compiled, self._state)

    def text(self, hypothesis: Hypothesis, search: Search | None = None, *, include_stop: bool = False) -> bytes:
        """The bytes of an output, up to the stop that ended it, or, with `include_stop`, up to that one's end.

        search
            The one that found it, if it has stops.
        """
        expect(hypothesis, Hypothesis, "hypothesis")
        self._set_bytes()
        handle = self._search(Greedy() if search is None else search)
        tokens, count = token_array(hypothesis.tokens, "hypothesis.tokens")
        found, size = CHypothesis(tokens=tokens, count=count, stop=whole(hypothesis.stop, "hypothesis.stop")), size_t()
        arguments = handle.handle, self._handle, C.byref(found), bool(include_stop)
        call("search_text", *arguments, None, 0, C.byref(size))
        text = C.create_string_buffer(size.value + 1)
        call("search_text", *arguments, text, size.value, C.byref(size))
        return text.raw[:size.value]

    def spelling(self, tokens: Iterable[int]) -> bytes:
        """The bytes of tokens, one behind another, and the names (`token_names` of the model) of those that have none: for
        ToolCallParser."""
        texts, names = getattr(self.model, "token_bytes", None), getattr(self.model, "token_names", None) or {}
        if texts is None:
            raise TypeError("sluice: model: needs token_bytes, the bytes of each token, to spell some")
        named = {token: name.encode() if isinstance(name, str) else bytes(name) for name, token in names.items()}
        made = []
        for token in listed(tokens, "tokens", "tokens"):
            number = whole(token, "tokens", 0, len(texts) - 1)
            text = texts[number]
            made.append((text.encode() if isinstance(text, str) else bytes(text)) or named.get(number, b""))
        return b"".join(made)

    def _refuse_prompt(self, request: Request, number: int) -> None:
        """A source that nobody reads, and that looks like a prompt."""
        source = request.source
        if (type(self.model) is not FunctionModel or self.model.takes_source or source is None
                or not isinstance(source, (list, tuple)) and not hasattr(source, "tolist")):
            return
        tokens = source.tolist() if hasattr(source, "tolist") else source
        if isinstance(tokens, (list, tuple)) and len(tokens) > 0 and all(hasattr(token, "__index__") for token in tokens):
            raise TypeError(f"sluice: requests[{number}]: the source {source!r} looks like tokens, and the model does not read sources: "
                            "Request(prompt=...) has a prompt, and FunctionModel(..., takes_source=True) reads sources")

    def _fill(self, to: Any, request: Request,
              searches: dict[int, SearchHandle]) -> tuple[int | None, TraceHandle | None, Any]:
        """Fills a sluice_request. Returns the number of its source, its trace, and what has to live during the call."""
        prompt, prompt_count = token_array(request.prompt, "prompt")
        prefix, prefix_count = token_array(request.prefix, "prefix")
        to.forget = not request.remember
        to.size, to.prompt_count, to.prefix_count = C.sizeof(CRequest), prompt_count, prefix_count
        if prompt_count:
            to.prompt = prompt
        if prefix_count:
            to.prefix = prefix
        if request.search is not None:
            if id(request.search) not in searches:
                searches[id(request.search)] = self._search(request.search)
            to.search = searches[id(request.search)].handle
        seed = None
        if request.seed is not None:
            seed = u64(whole(request.seed, "seed", 0, 2**64 - 1))
            to.seed = C.pointer(seed)
        trace = None
        if request.trace is not False:
            if not self._has_bytes and not self._served and getattr(self.model, "token_bytes", None) is not None:
                self._set_bytes()  # so that it shows texts
            trace = TraceHandle(request.trace)
            to.trace = trace.handle
        to.source = number = self._state.add_source(request.source)
        return number, trace, (prompt, prefix, seed)

    def decode(self, requests: Iterable[Any], search: Search | None = None, *, batch: int = 64,
               errors: Errors = "raise") -> list[Result]:
        """Decodes requests, `batch` of them together, and returns their results in order. The batch changes speed, never results.

        requests
            Requests; anything else is the source of one.
        search
            Greedy() if none is given.
        errors
            "raise": what the model raises is raised, once and at once, and so is the first failure of a request, at the end
            (DecodingError). "return": each result says what failed.
        """
        batch = whole(batch, "batch", 1)
        if self._served:
            raise Error("sluice: the model belongs to a server until that is closed")
        if isinstance(requests, Request):
            raise TypeError("sluice: requests = a Request: must be a list of them: [Request(...)]")
        asked = [to_request(item) for item in listed(requests, "requests", "Requests, or of sources")]
        for i, request in enumerate(asked):
            self._refuse_prompt(request, i)
        its_search = self._search(Greedy() if search is None else search)
        state = self._state
        with self._lock:
            searches: dict[int, SearchHandle] = {}
            filled, kept, numbers, traces = (CRequest * len(asked))(), [], [], []
            try:
                for i, request in enumerate(asked):
                    number, trace, keep = self._fill(filled[i], request, searches)
                    numbers.append(number)
                    traces.append(trace)
                    kept.append(keep)
                with calling(state, errors):
                    handle = create("decode", self._handle, its_search.handle, filled, len(asked), batch)
                try:
                    results = [to_result(library.sluice_results_at(handle, i).contents, state, traces[i])
                               for i in range(len(asked))]
                finally:
                    library.sluice_results_free(handle)
            finally:
                for number in numbers:
                    state.remove_source(number)
                self._native.forget()
            return checked(state, results, errors)


def decode(model: AnyModel | Decoder, requests: Iterable[Any], search: Search | None = None, *, batch: int = 64,
           errors: Errors = "raise") -> list[Result]:
    """Decodes requests with a model and a search: see Decoder.decode, which saves making the same things again.

        sluice.decode(model, [sluice.Request(prompt=[1, 4])], sluice.BeamSearch(width=4, n_best=2))[0].tokens
    """
    decoder = model if isinstance(model, Decoder) else Decoder(model)
    return decoder.decode(requests, search, batch=batch, errors=errors)

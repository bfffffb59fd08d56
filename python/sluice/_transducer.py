# SPDX-License-Identifier: Apache-2.0
"""Transducers: RNN-T, TDT, multi-blank, over a network in Python."""

from __future__ import annotations

import ctypes as C
import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, Union, runtime_checkable

from ._ctc import AnyLanguageModel, CtcDecoder, FramesResult, FusionWeights, Text, TextStream
from ._decode import Errors, calling, checked
from ._library import (ArgumentError, CTransducerFunctions, Error, Frames, Parts, Release, Start, StepView, create, library, listed, need_numpy,
                       token_array, void_p, whole)
from ._model import State
from ._scores import lines_of
from ._search import Grammar
from .options import TransducerBeam, TransducerGreedy

AnyTransducerSearch = Union[TransducerBeam, TransducerGreedy]


class PredictorRows(NamedTuple):
    """Steps of a predictor, as arrays of int32 [rows]."""

    from_: Any
    """The state that each continues: one that an earlier call wrote; -1: none."""
    to: Any
    """The state that each writes. States never change once they are written, and no row of a call reads one that the call writes."""
    label: Any
    """The label that each is fed; the blank where a text begins."""


class JoinerRows(NamedTuple):
    """Lines of a joiner, as arrays of int32 [rows]."""

    utterance: Any
    frame: Any
    state: Any
    """Of the predictor."""


@runtime_checkable
class TransducerNetwork(Protocol):
    """What a network has: any object with these. docs/transducers.md has the contract.

    It may also have

    - `durations: Sequence[int]`, of a TDT: how many frames each of its durations moves on; `join` then gives logits of the labels, and
      behind them of the durations;
    - `big_blanks: Mapping[int, int]`, of a multi-blank transducer: labels that are blanks, and how many frames each moves on;
    - `label_frames = 1`, where labels move one frame on, too;
    - `kind: str`: "logits" (the default) or "log_probs", what `join` gives;
    - `release(utterances)`: these are no longer needed;
    - `append(source, more)`, of streams: adds to a source, and is the place for an encoder of pieces.
    """

    labels: int
    """V, the blanks among them."""
    blank: int

    def frames(self, source: Any, /) -> int:
        """How many frames the joiner will see of it; of a stream's source, how many have come."""

    def start(self, sources: list[Any], utterances: list[int], /) -> None:
        """From now on the frames of sources[i] are those of utterances[i]: the place for an encoder."""

    def predict(self, rows: PredictorRows, /) -> None:
        """Writes states of the predictor."""

    def join(self, rows: JoinerRows, /) -> Any:
        """A line for each row: float32 [rows, V], read where it lies; it must stay until the next call."""


class Transducer:
    """A transducer, ready to decode: a network, and what its labels write.

    network
        An object with `labels`, `blank`, `frames`, `start`, `predict` and `join` (TransducerNetwork).
    labels
        A string for each label, as of CtcDecoder, which says what the other arguments are. None: texts are numbers.

    One thread at a time uses it and its streams; others wait.
    """

    network: Any

    def __init__(self, network: TransducerNetwork, labels: Sequence[str] | Mapping[str, int] | None = None, *,
                 lexicon: Any = None, language_model: AnyLanguageModel | str | os.PathLike[str] | None = None,
                 weights: FusionWeights | None = None, language_model_of: Literal["words", "labels"] = "words",
                 language_model_tokens: Sequence[int] | None = None, hotwords: Iterable[Text] | Mapping[str, float] | None = None,
                 hotword_boost: float = 4.0, grammar: Grammar | None = None, separator: str | None = None):
        lacks = [name for name in ("labels", "blank", "frames", "start", "predict", "join") if not hasattr(network, name)]
        if lacks or isinstance(network, type):
            raise TypeError(f"sluice: network = {network!r}: has no {', '.join(lacks) or 'state'}: must be an object with labels, blank, frames(source), "
                            "start(sources, utterances), predict(rows) and join(rows)")
        size, blank = whole(network.labels, "network.labels", 1), whole(network.blank, "network.blank")
        named: Any = [f" {i}" for i in range(size)] if labels is None else labels
        if len(named) != size:
            raise ArgumentError(f"sluice: labels has {len(named)} entries: must be {size}, one for each of the network's")
        self.network = network
        self._hotwords, self._default = hotwords, TransducerGreedy()
        self._texts = CtcDecoder(named, blank, lexicon=lexicon, language_model=language_model, weights=weights, language_model_of=language_model_of,
                                 language_model_tokens=language_model_tokens, hotword_boost=hotword_boost, grammar=grammar, separator=separator)
        self._table = _Network(network, size, self._texts._state)  # what a language model raises is kept in the same place
        self._lock = self._texts._lock
        self._handle = create("transducer_create", C.byref(self._table.functions))
        weakref.finalize(self, _free, self._handle, self._table)  # whose functions the library calls until then

    def decode(self, sources: Iterable[Any], search: AnyTransducerSearch | None = None, *, batch: int = 32,
               hotwords: Iterable[Text] | Mapping[str, float] | None = None, errors: Errors = "raise") -> list[FramesResult]:
        """The texts of utterances, `batch` of them together: a result of each, in order. The batch changes speed, never results.

        sources
            Objects that only the network interprets.
        search
            TransducerGreedy() (also if none is given) or TransducerBeam(...).
        """
        handle = self._search(search, hotwords)
        batch, given, state = whole(batch, "batch", 1), listed(sources, "sources", "what the network reads"), self._table.state
        with self._lock:
            numbers = [state.add_source(source) for source in given]
            try:
                with calling(state, errors):
                    made = create("transducer_decode", self._handle, handle.handle, self._texts._handle,
                                  (void_p * len(numbers))(*numbers), len(numbers), batch)
                results = self._texts._results(made, len(given))
            finally:
                for number in numbers:
                    state.remove_source(number)
                self._table.kept = None
            return checked(state, results, errors)

    def stream(self, source: Any, search: AnyTransducerSearch | None = None, *,
               hotwords: Iterable[Text] | Mapping[str, float] | None = None) -> TransducerStream:
        """A text with frames that come while it is decoded.

        source
            An object that the network interprets: `network.frames(source)` says how many frames have come.
        """
        return TransducerStream(self, source, self._search(search, hotwords))

    def _search(self, search: AnyTransducerSearch | None, hotwords: Any) -> Any:
        search = self._default if search is None else search
        if not isinstance(search, (TransducerBeam, TransducerGreedy)):
            raise TypeError(f"sluice: search = {search!r}: must be TransducerGreedy(...) or TransducerBeam(...)")
        return self._texts._search_handle(search, self._hotwords if hotwords is None else hotwords)


class TransducerStream(TextStream):
    """A text with frames that come while it is decoded, of Transducer.stream(). Any number of them may be open.

        stream = transducer.stream(Sound())
        for piece in microphone:
            stream.append(piece)            # network.append(source, piece)
            print(stream.settled)           # what is certain so far
        print(stream.finish().text)         # as decode() of the whole, bit for bit

    Where the search has an Endpoint, append() returns the results of utterances that it has ended; what follows is the next one, for which the
    network is told to start the same source again, and whose frames keep their numbers. One that is dropped before its end does not call `release`.
    """

    def __init__(self, transducer: Transducer, source: Any, search: Any):
        self._transducer, self._source, state = transducer, source, transducer._table.state
        number = state.add_source(source)
        try:
            handle = create("transducer_stream", transducer._handle, search.handle, transducer._texts._handle, number)
        except BaseException:
            state.remove_source(number)
            raise
        super().__init__(transducer._texts, handle, transducer, lambda: state.remove_source(number))

    def append(self, more: Any = None) -> list[FramesResult]:
        """Gives the network more of the source (`network.append(source, more)`), and decodes the frames that have come. None: the source has grown
        by itself. Returns the results of utterances that an endpoint has ended."""
        if self._over:
            raise Error("sluice: the stream has ended")
        network = self._transducer.network
        if more is not None:
            if not hasattr(network, "append"):
                raise TypeError(f"sluice: network = {network!r}: has no append(source, more): needed for what comes, unless the source grows by itself")
            with self._transducer._lock:
                network.append(self._source, more)
        return self._decode(None, False)

    def _left(self) -> int:
        return whole(self._transducer.network.frames(self._source), "the network's frames", 0) - self._done


class _Network:
    """A network as the library's table of functions. What it raises is kept, and returned as a number."""

    STOPPED = -1

    def __init__(self, network: Any, size: int, state: State):
        self.network, self.state, self.kept = network, state, None
        kind = getattr(network, "kind", "logits")
        if kind not in ("logits", "log_probs"):
            raise ArgumentError(f'sluice: network.kind = {kind!r}: must be "logits" or "log_probs"')
        durations, duration_count = token_array(getattr(network, "durations", ()), "network.durations")
        big = dict(getattr(network, "big_blanks", {}))
        blanks, blank_count = token_array(list(big), "network.big_blanks")
        blank_frames, _ = token_array(list(big.values()), "network.big_blanks")
        self.columns = size + duration_count
        self.functions = CTransducerFunctions(
            size=C.sizeof(CTransducerFunctions), labels=size, blank=int(network.blank), durations=durations, duration_count=duration_count,
            blanks=blanks, blank_frames=blank_frames, blank_count=blank_count,
            label_frames=whole(getattr(network, "label_frames", 0), "network.label_frames"), log_probs=kind == "log_probs",
            frames=Frames(self._frames), start=Start(self._start), predict=Parts(self._predict), join=StepView(self._join))
        if hasattr(network, "release"):
            self.functions.release = Release(self._release)

    def _run(self, part: Any) -> int:
        try:
            if self.state.stopped_by is not None:
                return self.STOPPED
            self.state.in_model = True
            part()
            return 0
        except BaseException as error:
            return self.state.failed(error)
        finally:
            self.state.in_model = False

    def _frames(self, _user: Any, source: Any) -> int:
        found = [-1]

        def ask() -> None:
            found[0] = whole(self.network.frames(self.state.sources.get(source)), "the network's frames", 0)
        self._run(ask)
        return found[0]

    def _start(self, _user: Any, count: int, sources: Any, utterances: Any) -> int:
        return self._run(lambda: self.network.start([self.state.sources.get(source) for source in sources[:count]], utterances[:count]))

    def _predict(self, _user: Any, count: int, address: int) -> int:
        return self._run(lambda: self.network.predict(PredictorRows(*_columns(address, count))))

    def _join(self, _user: Any, count: int, address: int, scores: Any, stride: Any) -> int:
        def join() -> None:
            answer = self.network.join(JoinerRows(*_columns(address, count)))
            self.state.in_model = False
            scores[0], stride[0], self.kept = lines_of(answer, count, self.columns, "the network's join")
        return self._run(join)

    def _release(self, _user: Any, count: int, utterances: Any) -> None:
        self._run(lambda: self.network.release(utterances[:count]))


def _columns(address: int, count: int) -> Any:
    """Rows of three numbers, by column; a copy: it may be kept."""
    return need_numpy("Transducer").frombuffer(C.string_at(address, 12 * count), "i4").reshape(count, 3).T


def _free(handle: int, table: _Network) -> None:
    library.sluice_transducer_free(handle)

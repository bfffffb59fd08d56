# SPDX-License-Identifier: Apache-2.0
"""CTC: texts of matrices of frames, with words, n-grams, boosted words and grammars; streams; forced alignment."""

from __future__ import annotations

import contextlib
import ctypes as C
import html
import math
import os
import pathlib
import struct
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Union

from ._decode import DecodingError, Errors, calling, checked
from ._language import AnyModel, Native, NGrams, native
from ._library import (ArgumentError, CCtcMatrix, CCtcOptions, CFramesHypothesis, CFramesResult, CFramesWord, Error, Tokens, bytes_array, call, create, expect,
                       i32, library, listed, need_numpy, real, size_t, text_bytes, token_array, void_p, whole)
from ._model import FunctionModel, State, Vocabulary
from ._search import Bias, BiasedPhrase, Grammar, Search, SearchHandle
from .options import CtcBeamSearch

Text = Union[str, Sequence[Union[str, int]]]
"""A text of labels: a string, which is spelt with the longest labels that fit, or its labels one by one, as strings or numbers."""

AnyLanguageModel = Union[NGrams, AnyModel, Callable[[list[int]], Any]]
"""What counts beside frames: n-grams, or a model, which is run, or a function from the labels so far to the scores of the next one."""

_HYPOTHESIS, _WORD, _RANGE = struct.Struct("@PPPNddPN"), struct.Struct("@iiiiif"), struct.Struct("@ii")
assert _HYPOTHESIS.size == C.sizeof(CFramesHypothesis) and _WORD.size == C.sizeof(CFramesWord)
_HYPOTHESES = CFramesResult.hypotheses.offset
_NUMBERS = "utf-32-le" if sys.byteorder == "little" else "utf-32-be"
BLANKS = ("", "<blank>", "[blank]", "<blk>", "<ctc>", "<pad>", "[PAD]")


@dataclass
class FusionWeights:
    """How much a language model counts: score = log p(text | frames) + weight * log p(text) + bonus * words."""

    weight: float = 0.3
    """Of the language model's log-probability (natural); >= 0. Mostly 0.2 to 0.6: with 1, one that does not fit wins over the frames."""
    bonus: float = 0.0
    """Added for each word (or label, of a language model of labels)."""
    unknown: float = 0.0
    """Added to the log-probability of each word that the language model has not."""


@dataclass(slots=True)
class FramesWord:
    """A word of a text."""

    word: str
    start: int
    """Its first frame."""
    end: int
    """The frame after its last."""
    confidence: float
    """The geometric mean of the probabilities of its labels, each at its best frame."""


class FramesHypothesis:
    """A text. What is not asked for is not made."""

    __slots__ = ("log_prob", "score", "_tokens", "_frames", "_log_probs", "_words", "_texts", "_lexicon")
    log_prob: float
    """Of the text, over the alignments that the beam has kept."""
    score: float
    """That, and what language model and boosted words add."""

    def __init__(self, tokens: bytes, frames: bytes, log_probs: bytes, words: bytes, log_prob: float, score: float, texts: list[str],
                 lexicon: list[tuple[str, list[int]]]):
        self._tokens, self._frames, self._log_probs, self._words = tokens, frames, log_probs, words  # as the library has them
        self._texts, self._lexicon, self.log_prob, self.score = texts, lexicon, log_prob, score

    @property
    def text(self) -> str:
        """Without space at its ends."""
        return self._spelt().strip()

    def _spelt(self) -> str:
        """What its labels write. Their numbers are read as characters, which str.translate replaces without a loop of Python's."""
        return self._tokens.decode(_NUMBERS, "surrogatepass").translate(self._texts)

    @property
    def tokens(self) -> list[int]:
        """Its labels."""
        return list(struct.unpack(f"{len(self._tokens) // 4}i", self._tokens))

    @property
    def frames(self) -> list[tuple[int, int]]:
        """Of each label the first frame, and the one after its last, on the best alignment."""
        return [(first, end) for first, end in _RANGE.iter_unpack(self._frames)]

    @property
    def log_probs(self) -> list[float]:
        """Of each label at its best frame: they do not add up to log_prob."""
        return list(struct.unpack(f"{len(self._log_probs) // 4}f", self._log_probs))

    @property
    def words(self) -> list[FramesWord]:
        """Empty if nothing says what a word is: neither a separator among the labels, nor pieces of words, nor a lexicon."""
        parts, lexicon = [self._texts[token] for token in self.tokens], self._lexicon
        return [FramesWord(lexicon[spelling][0] if spelling >= 0 else "".join(parts[begin:end]).strip(), first, last, confidence)
                for begin, end, first, last, spelling, confidence in _WORD.iter_unpack(self._words)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FramesHypothesis) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self._tokens, self._frames, self._log_probs, self._words, self.log_prob, self.score, self.text

    def __repr__(self) -> str:
        return f"FramesHypothesis({self.text!r}, log_prob={self.log_prob:.4f}, score={self.score:.4f})"


@dataclass
class FramesResult:
    """What was found in a matrix: a sequence of hypotheses."""

    hypotheses: list[FramesHypothesis]
    """Best first."""
    frames: int
    """That it is of."""
    failure: str = "none"
    """"none", or why there is no text: "no_token_left", "not_a_number", "bad_request", ..."""
    message: str = ""
    """What failed, with the frame."""
    id: int = 0
    """The number of the matrix in its call."""
    cause: BaseException | None = field(default=None, compare=False)
    """What a network raised, if that was why."""

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return self.failure == "none"

    @property
    def best(self) -> FramesHypothesis:
        """The first hypothesis."""
        if not self.hypotheses:
            raise DecodingError(self)
        return self.hypotheses[0]

    @property
    def text(self) -> str:
        """Of the first hypothesis."""
        return self.best.text

    @property
    def words(self) -> list[FramesWord]:
        """Of the first hypothesis."""
        return self.best.words

    def __iter__(self) -> Iterator[FramesHypothesis]:
        return iter(self.hypotheses)

    def __len__(self) -> int:
        return len(self.hypotheses)

    def __getitem__(self, index: int) -> FramesHypothesis:
        return self.hypotheses[index]

    def __bool__(self) -> bool:
        return True

    def _repr_html_(self) -> str:
        """A table of the hypotheses, for notebooks."""
        rows = "".join(f"<tr><td>{h.score:.3f}</td><td>{h.log_prob:.3f}</td><td style='text-align:left'>{html.escape(h.text)}</td></tr>"
                       for h in self.hypotheses)
        return f"<table><thead><tr><th>score</th><th>log_prob</th><th>text</th></tr></thead><tbody>{rows}</tbody></table>"


@dataclass
class CtcAlignment:
    """Where the labels of a given text are."""

    log_prob: float
    """Of the likeliest alignment; -inf: there is none."""
    tokens: list[int]
    frames: list[tuple[int, int]] = field(default_factory=list)
    """Of each label the first frame, and the one after its last."""
    log_probs: list[float] = field(default_factory=list)
    """Of each label: the mean over its frames."""


class CtcDecoder:
    """The texts of matrices of frames [frames, labels], as a recogniser of speech or handwriting that was trained with CTC gives them.

    labels
        What each column means: a list of strings, or a dictionary {string: column}. " ", or else "|", stands between words; pieces of
        SentencePiece begin words with "\u2581", those of WordPiece go on with "##".
    blank
        The label that means "nothing here", as a string or a column. None: it is looked for among "", "<blank>", "<pad>" and the like.
    search
        CtcBeamSearch(...), with its rules.
    kind
        What the numbers are: "logits", which log-probabilities may be too, "log_probs" (nothing is normalised), or "probs".
    lexicon
        Texts consist of these words: a list of words, a dictionary of words with a spelling or a list of spellings of each (a spelling is a
        string, or a list of labels), or a file with a word and its labels in each line.
    language_model
        NGrams, or a file of them; of words, or with language_model_of = "labels" of labels. Or any model (as decode takes them), which is run: a row
        for each new text, those of all matrices in one call of a step. Or a function from the labels so far, blank first, to the scores
        (logits) of all labels; that of the blank is the end's. Then one thread at a time uses the decoder and its streams; others wait.
    language_model_tokens
        The model's token for each label; -1: none, so the label is impossible. None: they are those with the same token_bytes, if the model has
        these, or else the labels.
    weights
        FusionWeights of it.
    hotwords
        Words and phrases that texts should rather contain, as whole words: a list, or a dictionary with the boost of each, in nats.
    hotword_boost
        Where no dictionary says it.
    grammar
        Texts match it.
    separator
        The label between words, if it is another one; "": none is.
    """

    labels: list[str]
    blank: int
    search: CtcBeamSearch

    def __init__(self, labels: Sequence[str] | Mapping[str, int], blank: str | int | None = None, search: CtcBeamSearch | None = None, *,
                 kind: Literal["logits", "log_probs", "probs"] = "logits",
                 lexicon: Mapping[str, Any] | Iterable[str] | str | os.PathLike[str] | None = None,
                 language_model: AnyLanguageModel | str | os.PathLike[str] | None = None, weights: FusionWeights | None = None,
                 language_model_of: Literal["words", "labels"] = "words", language_model_tokens: Sequence[int] | None = None,
                 hotwords: Iterable[Text] | Mapping[str, float] | None = None, hotword_boost: float = 4.0, grammar: Grammar | None = None,
                 separator: str | None = None):
        self.labels = _labels(labels)
        self._numbers = {label: i for i, label in reversed(list(enumerate(self.labels)))}
        self.blank = self._blank(blank)
        if kind not in ("logits", "log_probs", "probs"):
            raise ArgumentError(f'sluice: kind = {kind!r}: must be "logits", "log_probs" or "probs"')
        self._kind = kind
        self.search = CtcBeamSearch() if search is None else expect(search, CtcBeamSearch, "search", "CtcBeamSearch(...)")
        self._separator = self._find_separator(separator)
        self._texts = self._written()
        self._lexicon = [] if lexicon is None else self._spellings(lexicon)
        self._boost, self._hotwords, self._grammar = real(hotword_boost, "hotword_boost"), hotwords, grammar
        self._grammars: dict[Grammar, int] = {}
        self._state, self._lock = State(), threading.Lock()
        self._model: Native | None = None  # a language model that is run
        self._handle = self._create(language_model, FusionWeights() if weights is None else expect(
            weights, FusionWeights, "weights", "FusionWeights(...)"), language_model_of, language_model_tokens)
        weakref.finalize(self, _free, self._handle, self._grammars, self._model)
        self._default = self._search_handle(self.search, hotwords)

    def decode(self, matrices: Any, lengths: Sequence[int] | None = None, *, hotwords: Iterable[Text] | Mapping[str, float] | None = None,
               search: CtcBeamSearch | None = None, threads: int = 0, errors: Errors = "raise") -> list[FramesResult]:
        """The texts of matrices: a result of each, in order.

        matrices
            A matrix, a list of matrices of any numbers of frames, or an array [B, T, V]; NumPy's, or what NumPy takes.
        lengths
            Of a list or array: how many frames of each count.
        hotwords, search
            In place of the decoder's.
        threads
            Over which matrices are spread; 0: as many as there are processors. Their number changes speed, never results.
        errors
            "raise": the first failure of a matrix is raised (DecodingError). "return": each result says what failed.
        """
        arrays = self._arrays(matrices, lengths, "matrices")
        handle = self._default if hotwords is None and search is None else self._other(search, hotwords)
        return self._decode(arrays, handle, threads, errors)

    def _decode(self, arrays: list[Any], handle: SearchHandle, threads: int, errors: Errors) -> list[FramesResult]:
        count = len(arrays)
        threads = whole(threads, "threads", 0)
        threads = 1 if count == 1 else min(count, threads or _processors())
        if count == 0:
            return []
        arguments = self._handle, handle.handle, (CCtcMatrix * count)(*map(self._matrix, arrays)), count, threads
        if self._model is None:
            return checked(self._state, self._results(create("ctc_decode", *arguments), count), errors)
        with self._lock:
            with calling(self._state, errors):
                made = create("ctc_decode", *arguments)
            self._model.forget()
            return checked(self._state, self._results(made, count), errors)

    def stream(self, *, hotwords: Iterable[Text] | Mapping[str, float] | None = None, search: CtcBeamSearch | None = None) -> CtcStream:
        """A text with frames that come while it is decoded."""
        if hotwords is None and search is None:
            return CtcStream(self, self._default)
        return CtcStream(self, self._other(search, hotwords))

    def align(self, matrix: Any, text: Text) -> CtcAlignment:
        """Where the labels of a text are, on its likeliest alignment (forced alignment)."""
        arrays = self._arrays(matrix, None, "matrix")
        if len(arrays) != 1:
            raise ArgumentError(f"sluice: matrix: {len(arrays)} of them: must be one")
        tokens, count = token_array(self.spell(text), "text")
        frames, log_probs, log_prob = (i32 * (2 * count))(), (C.c_double * count)(), C.c_double()
        call("ctc_align", self._handle, C.byref(self._matrix(arrays[0])), tokens, count, frames, log_probs, C.byref(log_prob))
        found = CtcAlignment(log_prob.value, list(tokens) if count else [])
        if log_prob.value > -math.inf:
            found.frames, found.log_probs = list(zip(frames[::2], frames[1::2])), list(log_probs)
        return found

    def spell(self, text: Text) -> list[int]:
        """The labels of a text: the longest that fit, from its beginning on. Spaces are the separator."""
        return self._spell(text, "text")

    # What follows is not for users.

    def _spell(self, text: Text, name: str) -> list[int]:
        if not isinstance(text, (str, bytes)):
            return [self._label(label, name) for label in listed(text, name, "labels")]
        if isinstance(text, bytes):
            raise TypeError(f"sluice: {name} = {text!r}: must be a string")
        if self._pieces and not text.startswith(" "):
            text = " " + text
        tokens, at = [], 0
        while at < len(text):
            for length in range(min(self._longest, len(text) - at), 0, -1):
                token = self._by_text.get(text[at:at + length])
                if token is not None:
                    break
            else:
                raise ArgumentError(f"sluice: {name} = {text!r}: no label is {text[at]!r}")
            tokens.append(token)
            at += length
        return tokens

    def _blank(self, blank: str | int | None) -> int:
        if blank is None:
            for name in BLANKS:
                if name in self._numbers:
                    return self._numbers[name]
            raise ArgumentError("sluice: blank = None: none of the labels is " + ", ".join(map(repr, BLANKS)) + ": say which one it is")
        return self._label(blank, "blank")

    def _label(self, label: Any, name: str) -> int:
        if isinstance(label, str):
            if label not in self._numbers:
                raise ArgumentError(f"sluice: {name} = {label!r}: is not among the {len(self.labels)} labels")
            return self._numbers[label]
        return whole(label, name, 0, len(self.labels) - 1)

    def _find_separator(self, separator: str | None) -> int | None:
        if separator == "":
            return None
        if separator is not None:
            return self._label(separator, "separator")
        for name in (" ", "|"):
            if name in self._numbers:
                return self._numbers[name]
        return None

    def _written(self) -> list[str]:
        """What each label writes."""
        word_piece = self._separator is None and any(label.startswith("##") and len(label) > 2 for label in self.labels)
        texts = []
        for i, label in enumerate(self.labels):
            if i == self.blank:
                texts.append("")
            elif i == self._separator:
                texts.append(" ")
            elif word_piece:
                texts.append(label[2:] if label.startswith("##") and len(label) > 2 else " " + label)
            else:
                texts.append(label.replace("\u2581", " "))
        self._pieces = self._separator is None and any(text.startswith(" ") for text in texts)
        self._by_text = {text: i for i, text in reversed(list(enumerate(texts))) if text}
        self._longest = max(map(len, texts))
        return texts

    def _spellings(self, lexicon: Any) -> list[tuple[str, list[int]]]:
        if isinstance(lexicon, (str, os.PathLike)):
            return self._lexicon_file(pathlib.Path(lexicon))
        if not isinstance(lexicon, Mapping):
            return [(expect(word, str, "lexicon", "a list of words"), self._spell(word, "lexicon")) for word in listed(lexicon, "lexicon", "words")]
        made = []
        for word, given in lexicon.items():
            several = not isinstance(given, str) and len(given) > 0 and not isinstance(given[0], (str, int)) and not hasattr(given[0], "__index__")
            made += [(expect(word, str, "lexicon", "a dictionary of words"), self._spell(one, "lexicon")) for one in (given if several else [given])]
        return made

    def _lexicon_file(self, file: pathlib.Path) -> list[tuple[str, list[int]]]:
        """A word, and its labels, in each line; a separator behind them is left out."""
        made = []
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            fields = line.split()
            if not fields:
                continue
            try:
                tokens = [self._label(label, "label") for label in fields[1:]] if len(fields) > 1 else self.spell(fields[0])
            except ArgumentError as error:
                raise ArgumentError(f"{error} ({file}, line {number})") from None
            if len(tokens) > 1 and tokens[-1] == self._separator:
                tokens.pop()
            made.append((fields[0], tokens))
        return made

    def _create(self, language_model: Any, weights: FusionWeights, of: str, tokens: Any) -> int:
        options = CCtcOptions(size=C.sizeof(CCtcOptions), labels=len(self.labels), blank=self.blank, log_probs=self._kind != "logits",
                              bonus=real(weights.bonus, "weights.bonus"), unknown=real(weights.unknown, "weights.unknown"))
        weight = C.c_double(real(weights.weight, "weights.weight"))
        options.weight = C.pointer(weight)
        options.texts = texts = bytes_array(self._texts, "labels")
        kept: list[Any] = [texts]
        if self._separator is not None:
            options.separators, options.separator_count = token_array([self._separator], "separator")
        if self._lexicon:
            options.words = words = bytes_array([word for word, _ in self._lexicon], "lexicon")
            options.tokens, _ = token_array([token for _, tokens in self._lexicon for token in tokens], "lexicon")
            options.lengths = (size_t * len(self._lexicon))(*(len(tokens) for _, tokens in self._lexicon))
            options.spellings = len(self._lexicon)
            kept.append(words)
        if of not in ("words", "labels"):
            raise ArgumentError(f'sluice: language_model_of = {of!r}: must be "words" or "labels"')
        if isinstance(language_model, (NGrams, str, os.PathLike)):
            table = language_model if isinstance(language_model, NGrams) else NGrams.open(language_model)
            options.ngrams = table._handle
            kept.append(table)
            if of == "labels":
                options.ngram_words, _ = token_array(table.find(self.labels), "labels")
        elif language_model is not None:
            return self._create_with(options, language_model, tokens)
        if tokens is not None:
            raise ArgumentError("sluice: language_model_tokens: given: needs a language_model that is run: a model, or a function")
        return create("ctc_create", C.byref(options))

    def _create_with(self, options: Any, model: Any, tokens: Any) -> int:
        """With a language model that is run."""
        size = len(self.labels)
        if not hasattr(model, "vocabulary") and callable(model) and not isinstance(model, type) and not hasattr(model, "forward"):
            model = FunctionModel(model, Vocabulary(size, self.blank, self.blank))
        if tokens is None and getattr(model, "token_bytes", None) is not None:
            found = {bytes(text, "utf-8") if isinstance(text, str) else bytes(text): i for i, text in reversed(list(enumerate(model.token_bytes)))}
            tokens = [found.get(text.encode(), -1) for text in self._texts]
        if tokens is not None:
            options.model_tokens, count = token_array(tokens, "language_model_tokens")
            if count != size:
                raise ArgumentError(f"sluice: language_model_tokens has {count} entries: must be {size}, one for each label")
        elif (its := getattr(getattr(model, "vocabulary", None), "size", size)) != size:
            raise ArgumentError(f"sluice: language_model: has {its} tokens, and there are {size} labels: language_model_tokens says which is which")
        self._model = native(model, self._state, "language_model")
        options.model = self._model.handle
        try:
            return create("ctc_create", C.byref(options))
        except BaseException:
            self._model.free()
            raise

    def _compiled(self, grammar: Grammar) -> int:
        expect(grammar, Grammar, "grammar", "Grammar.gbnf(...), Grammar.regex(...) or Grammar.json_schema(...)")
        if grammar not in self._grammars:
            self._grammars[grammar] = grammar._create(self._handle, "ctc_grammar")
        return self._grammars[grammar]

    def _other(self, search: Any, hotwords: Any) -> SearchHandle:
        """What replaces the decoder's own search, or hotwords."""
        its = self.search if search is None else expect(search, CtcBeamSearch, "search", "CtcBeamSearch(...)")
        return self._search_handle(its, self._hotwords if hotwords is None else hotwords)

    def _search_handle(self, search: Search, hotwords: Any) -> SearchHandle:
        if self._grammar is not None:
            if search.grammar is not None:
                raise TypeError("sluice: grammar: the search has one, too")
            search = search.replace(grammar=self._grammar)
        if hotwords is not None and (bias := self._bias(hotwords)) is not None:
            if search.bias is not None:
                raise TypeError("sluice: hotwords: the search has a bias, too")
            search = search.replace(bias=bias)
        return search._create(self._compiled, State())

    def _bias(self, hotwords: Any) -> Bias | None:
        """Boosted phrases. A separator on both sides makes them whole words; so does the beginning of a piece."""
        if isinstance(hotwords, (str, bytes)):
            raise TypeError(f"sluice: hotwords = {hotwords!r}: must be a list of words")
        pairs = hotwords.items() if isinstance(hotwords, Mapping) else [(word, self._boost) for word in hotwords]
        phrases, seen = [], set()
        for word, boost in pairs:
            tokens = self._spell(" ".join(word.split()) if isinstance(word, str) else word, "hotwords")
            if not tokens:
                raise ArgumentError(f"sluice: hotwords: {word!r}: must not be empty")
            if self._separator is not None:
                tokens = [self._separator, *tokens, self._separator]
            if tuple(tokens) not in seen:
                seen.add(tuple(tokens))
                phrases.append(BiasedPhrase(spellings=[tokens], boost=real(boost, "hotword_boost")))
        return Bias(phrases, lead=1 if self._separator is not None else 0) if phrases else None

    def _arrays(self, matrices: Any, lengths: Any, name: str) -> list[Any]:
        """Matrices of float32 whose lines have no gaps."""
        numpy = need_numpy("CtcDecoder")
        if lengths is None and isinstance(matrices, numpy.ndarray) and matrices.ndim == 2:
            return [self._array(numpy, matrices, 0)]
        if isinstance(matrices, (list, tuple)) and len(matrices) > 0 and getattr(matrices[0], "ndim", 0) == 2:
            given = list(matrices)
        elif isinstance(matrices, (list, tuple)) and len(matrices) == 0:
            return []
        else:
            whole_array = _floats(numpy, matrices, name)
            if whole_array.ndim not in (2, 3):
                raise ArgumentError(f"sluice: {name}: an array of {whole_array.ndim} dimensions: must be [T, V], [B, T, V], or a list of [T, V]")
            given = [whole_array] if whole_array.ndim == 2 else list(whole_array)
        if lengths is not None:
            counts = [whole(one, f"lengths[{i}]", 0) for i, one in enumerate(lengths.tolist() if hasattr(lengths, "tolist") else lengths)]
            if len(counts) != len(given):
                raise ArgumentError(f"sluice: lengths has {len(counts)} entries: must be {len(given)}, one for each matrix")
            for i, (one, count) in enumerate(zip(given, counts)):
                if count > one.shape[0]:
                    raise ArgumentError(f"sluice: lengths[{i}] = {count}: the matrix has {one.shape[0]} frames")
            given = [one[:count] for one, count in zip(given, counts)]
        return [self._array(numpy, one, i) for i, one in enumerate(given)]

    def _array(self, numpy: Any, given: Any, number: int) -> Any:
        array = _floats(numpy, given, f"matrices[{number}]")
        if array.ndim != 2 or array.shape[1] != len(self.labels):
            raise ArgumentError(f"sluice: matrices[{number}] is {list(array.shape)}: must be [frames, {len(self.labels)}], a column for each label")
        if self._kind == "probs":
            if not (array >= 0).all():
                raise ArgumentError(f"sluice: matrices[{number}] has numbers below 0: these are no probabilities")
            with numpy.errstate(divide="ignore"):
                array = numpy.log(array)
        if array.strides[1] != 4 or array.strides[0] % 4 or array.strides[0] < 4 * array.shape[1]:
            array = numpy.ascontiguousarray(array)
        return array

    @staticmethod
    def _matrix(array: Any) -> Any:
        seen = array.__array_interface__
        return CCtcMatrix(seen["data"][0], seen["shape"][0], array.strides[0] // 4)

    def _results(self, made: int, count: int) -> list[FramesResult]:
        """Copies of all results of a handle, which is freed."""
        try:
            return [self._result(library.sluice_frames_results_at(made, i).contents, i) for i in range(count)]
        finally:
            library.sluice_frames_results_free(made)

    def _result(self, seen: Any, number: int) -> FramesResult:
        """A copy of a sluice_frames_result."""
        texts, lexicon, read = self._texts, self._lexicon, C.string_at
        address = void_p.from_buffer(seen, _HYPOTHESES).value or 0
        hypotheses = [FramesHypothesis(read(tokens, 4 * count), read(frames, 8 * count), read(log_probs, 4 * count),
                                       read(words, _WORD.size * word_count) if word_count else b"", log_prob, score, texts, lexicon)
                      if count else FramesHypothesis(b"", b"", b"", b"", log_prob, score, texts, lexicon)
                      for tokens, frames, log_probs, count, log_prob, score, words, word_count
                      in _HYPOTHESIS.iter_unpack(read(address, seen.count * _HYPOTHESIS.size) if seen.count else b"")]
        message = seen.message.decode(errors="replace")
        return FramesResult(hypotheses, seen.frames, seen.failure.decode(), message, number, self._state.cause_of(message) if message else None)


class TextStream:
    """What CtcStream and TransducerStream share. One thread at a time uses a stream."""

    def __init__(self, decoder: CtcDecoder, handle: int, needs: Any, end: Callable[[], None] | None = None):
        self._decoder, self._handle, self._over = decoder, handle, False
        self._calls = needs is not decoder or decoder._model is not None  # whether decoding calls what Python has written
        self._done = 0  # frames that results are of
        finalizer = weakref.finalize(self, _free_stream, handle, needs, end)
        finalizer.atexit = False

    @property
    def tokens(self) -> list[int]:
        """The labels that are certain so far."""
        tokens, count = Tokens(), size_t()
        call("ctc_stream_settled", self._handle, C.byref(tokens), C.byref(count))
        return tokens[:count.value] if count.value else []

    @property
    def settled(self) -> str:
        """The text that is certain so far; a space at its end, too."""
        return "".join([self._decoder._texts[token] for token in self.tokens]).lstrip()

    def finish(self) -> FramesResult:
        """The result, as nothing more will come; of the last utterance, where there are endpoints."""
        if self._over:
            raise Error("sluice: the stream has ended")
        left = self._left()
        self._over = True
        return self._decode(None, True)[-1] if left else FramesResult([], 0)

    def _left(self) -> int:
        """Frames that no result is of."""
        raise NotImplementedError

    def _decode(self, matrix: Any, last: bool) -> list[FramesResult]:
        results: list[FramesResult] = []
        state, ended, seen = self._decoder._state, i32(), C.POINTER(CFramesResult)()

        def append(frames: Any) -> None:
            try:
                with calling(state, "raise") if self._calls else contextlib.nullcontext():
                    call("ctc_stream_append", self._handle, frames, last, C.byref(ended))
            except Error:
                if self._calls:
                    checked(state, [], "raise")  # what a model raised is the reason
                raise

        with self._decoder._lock if self._calls else contextlib.nullcontext():
            append(matrix)
            while ended.value:
                call("ctc_stream_result", self._handle, C.byref(seen))
                result = self._decoder._result(seen.contents, 0)
                results.append(result)
                self._done += result.frames
                self._over = self._over or not result.ok
                checked(state, [result], "raise")
                if last:
                    break
                call("ctc_stream_next", self._handle)
                append(None)
        return results


class CtcStream(TextStream):
    """A text with frames that come while it is decoded, of CtcDecoder.stream(). One thread at a time uses it.

        stream = decoder.stream()
        for frames in microphone:           # [some, V]
            stream.append(frames)
            print(stream.settled)           # what is certain so far
        print(stream.finish().text)         # as decode() of the whole, bit for bit

    Where the search has an Endpoint, append() returns the results of utterances that it has ended; what follows is the next one.
    """

    def __init__(self, decoder: CtcDecoder, search: SearchHandle):
        super().__init__(decoder, create("ctc_stream_create", decoder._handle, search.handle), decoder)
        self._come = 0

    def append(self, frames: Any) -> list[FramesResult]:
        """Decodes more frames, [any, V]. Returns the results of utterances that an endpoint has ended."""
        if self._over:
            raise Error("sluice: the stream has ended")
        results = []
        for array in self._decoder._arrays(frames, None, "frames"):
            self._come += array.shape[0]
            results += self._decode(C.byref(self._decoder._matrix(array)), False)
        return results

    def _left(self) -> int:
        return self._come - self._done


def _free(handle: int, grammars: dict[Grammar, int], model: Native | None) -> None:
    for grammar in grammars.values():
        library.sluice_grammar_free(grammar)
    library.sluice_ctc_free(handle)
    if model is not None:
        model.free()


def _free_stream(handle: int, needs: Any, end: Callable[[], None] | None) -> None:
    library.sluice_ctc_stream_free(handle)  # which `needs` outlives
    if end is not None:
        end()


def _floats(numpy: Any, given: Any, name: str) -> Any:
    try:
        return numpy.asarray(given, dtype=numpy.float32)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"sluice: {name}: must be numbers, [T, V], [B, T, V], or a list of [T, V]: {error}") from None


def _labels(labels: Any) -> list[str]:
    if isinstance(labels, Mapping):
        made: list[Any] = [None] * len(labels)
        for label, column in labels.items():
            number = whole(column, f"labels[{label!r}]", 0, len(labels) - 1)
            if made[number] is not None:
                raise ArgumentError(f"sluice: labels[{label!r}] = {number}: two labels have this column")
            made[number] = label
    else:
        made = listed(labels, "labels", "strings")
    for i, label in enumerate(made):
        if not isinstance(label, str):
            raise TypeError(f"sluice: labels[{i}] = {label!r}: must be a string")
    if len(made) < 2:
        raise ArgumentError(f"sluice: labels = {made!r}: a blank and at least one label are needed")
    return made


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

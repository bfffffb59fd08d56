# SPDX-License-Identifier: Apache-2.0
"""Language models beside a model: n-grams and fusion."""

from __future__ import annotations

import ctypes as C
import os
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, Union

from ._library import (CBytes, CFusedOptions, CNgramOptions, bytes_array, bytes_of, call, create, expect, i32, library, listed, path_bytes,
                       real, token_array, whole)
from ._model import Model, State, Table, Vocabulary, checked_vocabulary


class NGrams:
    """A table of n-grams, from ARPA text or a file of `build_ngram`, whose memory processes share; docs/language-models.md.

    `NGrams.open(file)` makes one. Its words have numbers from 0; logarithms are natural.
    """

    def __init__(self, handle: int):
        self._handle = handle
        weakref.finalize(self, library.sluice_ngrams_free, handle)

    @classmethod
    def open(cls, file: str | os.PathLike[str]) -> NGrams:
        """The table in a file; what its first bytes are says which kind of file. A mapped one must not change."""
        return cls(create("ngrams_open", path_bytes(file)))

    def __len__(self) -> int:
        """The number of words, with <s>, </s> and <unk>."""
        return int(library.sluice_ngrams_size(self._handle))

    def find(self, spellings: Iterable[str | bytes]) -> list[int]:
        """The number of the word that each spelling is; -1: there is none."""
        given = bytes_array(spellings, "spellings")
        found = (i32 * len(given))()
        call("ngrams_find", self._handle, given, len(given), found)
        return list(found)

    def spelling(self, word: int) -> bytes:
        """The bytes of a word."""
        seen = CBytes()
        call("ngrams_spelling", self._handle, whole(word, "word"), C.byref(seen))
        return bytes_of(seen)

    def log_prob(self, words: str | bytes | Sequence[str | bytes | int]) -> float:
        """log p of a sentence: of its words and its end. Numbers, or spellings; of a string, what stands between its spaces."""
        given = words.split() if isinstance(words, (str, bytes)) else listed(words, "words", "spellings, or of numbers")
        if given and isinstance(given[0], (str, bytes)):
            given = self.find(given)
        array, count = token_array(given, "words")
        found = C.c_double()
        call("ngrams_score", self._handle, array, count, C.byref(found))
        return found.value


class NativeModel:
    """A model that the library has itself: it is never called from Python."""

    vocabulary: Vocabulary

    def _create(self, state: State) -> Native:
        raise TypeError("sluice: NativeModel is no model of its own: use NGramModel, Fused or WithSuffixCache")


class Native:
    """A sluice_model, and what it needs; freed by free()."""

    def __init__(self, handle: int, needs: Sequence[Native | Table] = ()):
        self.handle, self.needs = handle, needs

    def forget(self) -> None:
        """Lets go of the scores of the last step."""
        for one in self.needs:
            if isinstance(one, Native):
                one.forget()
            else:
                one._kept = None

    def free(self) -> None:
        library.sluice_model_free(self.handle)
        for one in self.needs:
            if isinstance(one, Native):
                one.free()


AnyModel = Union[Model, NativeModel]
"""What decode and generate take."""


def native(model: Any, state: State, name: str = "model") -> Native:
    """Any model as one of the library."""
    if isinstance(model, NativeModel):
        return model._create(state)
    table = Table(model, state, name)
    return Native(table.create(), [table])


class NGramModel(NativeModel):
    """N-grams as a model, to be fused (Fused) or decoded. Takes any source.

    ngrams
        NGrams.
    vocabulary
        Whose tokens it scores; each eos scores as the end of a sentence. None: the table's words are the tokens.
    words
        The word that each token stands for, -1 for those that count as <unk>: `ngrams.find(pieces)`, say.
    token_bytes
        Instead of `words`: tokens are parts of words, and this is what they write. A word is what stands between spaces; it is
        scored when it is over, and what it costs at least is charged before (docs/language-models.md).
    unknown
        Added to the log-probability of each <unk>.
    """

    vocabulary: Vocabulary
    ngrams: NGrams
    unknown: float

    def __init__(self, ngrams: NGrams, vocabulary: Vocabulary | None = None, *, words: Sequence[int] | None = None,
                 token_bytes: Sequence[str | bytes] | None = None, unknown: float = 0.0):
        expect(ngrams, NGrams, "ngrams", "NGrams.open(file)")
        unknown = real(unknown, "unknown")
        if vocabulary is None:
            if words is not None or token_bytes is not None or unknown:
                raise TypeError("sluice: NGramModel: words, token_bytes and unknown need a vocabulary")
            begin, end, none = ngrams.find(["<s>", "</s>", "<unk>"])
            self.vocabulary = Vocabulary(len(ngrams), begin, end, [begin, none])
        else:
            if (words is None) == (token_bytes is None):
                raise TypeError("sluice: NGramModel: needs words or token_bytes, not both")
            given: Any
            given, name = (words, "words") if words is not None else (token_bytes, "token_bytes")
            checked_vocabulary(vocabulary)
            if not hasattr(given, "__len__"):
                raise TypeError(f"sluice: NGramModel: {name} = {given!r}: must be a list, with an entry for each token")
            if len(given) != vocabulary.size:
                raise ValueError(f"sluice: NGramModel: {name} has {len(given)} entries: must be {vocabulary.size}, one for each token")
            self.vocabulary = vocabulary
        self.ngrams, self.unknown = ngrams, unknown
        self._all, self._words, self._bytes = vocabulary is None, words, token_bytes

    def _create(self, state: State) -> Native:
        if self._all:
            return Native(create("ngrams_model", self.ngrams._handle, None))
        v = self.vocabulary
        eos, eos_count = token_array([v.eos] if hasattr(v.eos, "__index__") else v.eos, "vocabulary.eos")
        never, never_count = token_array(v.never, "vocabulary.never")
        options = CNgramOptions(size=C.sizeof(CNgramOptions), vocabulary=int(v.size), bos=int(v.bos), eos=eos, eos_count=eos_count,
                                never=never, never_count=never_count, unknown=self.unknown)
        if self._words is not None:
            options.words, _ = token_array(self._words, "words")
        else:
            options.bytes = given = bytes_array(self._bytes, "token_bytes")
        return Native(create("ngrams_model", self.ngrams._handle, C.byref(options)))


class Fused(NativeModel):
    """A model and a language model (shallow fusion): log p of the model + weight * log p of the language model + word_bonus * words.

    model, language
        Models, of any kind; the language model gets the same sources and slots, and its own tokens.
    weight
        Of the language model; negative: it is subtracted.
    word_bonus
        Added for each token of `words`; those that begin a word are usual. No words: all tokens but eos.
    tokens
        The language model's token for each of the model's, -1: none. None: both have the same vocabulary.
    unknown
        The language model's token for those that it has not; None: these are impossible. `unknown_log_prob` is added.
    normalise
        A softmax of the sum: for sampling.
    """

    model: AnyModel
    language: AnyModel
    weight: float
    word_bonus: float
    words: Sequence[int]
    tokens: Sequence[int] | None
    unknown: int | None
    unknown_log_prob: float
    normalise: bool

    def __init__(self, model: AnyModel, language: AnyModel, *, weight: float = 0.3, word_bonus: float = 0.0, words: Sequence[int] = (),
                 tokens: Sequence[int] | None = None, unknown: int | None = None, unknown_log_prob: float = 0.0,
                 normalise: bool = False):
        self.model, self.language, self.weight, self.word_bonus, self.words = model, language, weight, word_bonus, words
        self.tokens, self.unknown, self.unknown_log_prob, self.normalise = tokens, unknown, unknown_log_prob, normalise

    def __getattr__(self, name: str) -> Any:
        if name in ("vocabulary", "token_bytes", "is_encoder_decoder"):  # the model's
            return getattr(self.__dict__["model"], name)
        raise AttributeError(f"Fused has no {name}")

    def _create(self, state: State) -> Native:
        words, word_count = token_array(self.words, "words")
        tokens, token_count = token_array(() if self.tokens is None else self.tokens, "tokens")
        options = CFusedOptions(size=C.sizeof(CFusedOptions), word_bonus=real(self.word_bonus, "word_bonus"), words=words,
                                word_count=word_count, tokens=tokens, token_count=token_count,
                                unknown_log_prob=real(self.unknown_log_prob, "unknown_log_prob"), normalise=bool(self.normalise))
        if self.unknown is not None:
            unknown = i32(whole(self.unknown, "unknown"))
            options.unknown = C.pointer(unknown)
        parts: list[Native] = []
        try:
            parts += [native(self.model, state)]
            parts += [native(self.language, state, "language")]
            return Native(create("model_fuse", parts[0].handle, parts[1].handle, real(self.weight, "weight"), C.byref(options)), parts)
        except BaseException:
            for part in parts:
                part.free()
            raise

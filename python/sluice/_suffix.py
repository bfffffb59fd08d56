# SPDX-License-Identifier: Apache-2.0
"""Suffix decoding: guesses from what was decoded before."""

from __future__ import annotations

import ctypes as C
import os
import weakref
from collections.abc import Sequence
from typing import Any

from ._language import AnyModel, Native, NativeModel, native
from ._library import ArgumentError, CSuffixOptions, call, create, library, path_bytes, real, token_array, whole
from ._model import State


class SuffixCache:
    """Remembers what was decoded, for WithSuffixCache: docs/blockwise.md#suffix-decoding. Any number of models, in any number of
    threads, may share one.

    tokens
        How many it may hold, at least 4096, of 8.6 bytes each; then those texts are forgotten that were not used for longest.
    longest
        How many last tokens of a text are compared, 1 to 256.
    """

    def __init__(self, tokens: int = 10_000_000, longest: int = 32):
        tokens, longest = whole(tokens, "SuffixCache: tokens"), whole(longest, "SuffixCache: longest")
        if tokens < 4096:
            raise ArgumentError(f"sluice: SuffixCache: tokens = {tokens}: must be from 4096 to 2147483647")
        if not 1 <= longest <= 256:
            raise ArgumentError(f"sluice: SuffixCache: longest = {longest}: must be from 1 to 256")
        self._handle = create("suffix_cache_create", tokens, longest)
        weakref.finalize(self, library.sluice_suffix_cache_free, self._handle)

    @property
    def tokens(self) -> int:
        """How many tokens it holds, with those that precede texts."""
        return int(library.sluice_suffix_cache_tokens(self._handle))

    @property
    def texts(self) -> int:
        """How many texts it holds."""
        return int(library.sluice_suffix_cache_texts(self._handle))

    @property
    def bytes(self) -> int:
        """The bytes that its arrays take."""
        return int(library.sluice_suffix_cache_bytes(self._handle))

    def insert(self, decoded: Sequence[int], before: Sequence[int] = ()) -> None:
        """Adds a text of yours; `before`: what precedes it, a prompt."""
        call("suffix_cache_insert", self._handle, *token_array(before, "before"), *token_array(decoded, "decoded"))

    def clear(self) -> None:
        """Forgets everything."""
        call("suffix_cache_clear", self._handle)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes a file, which replaces what was there. It holds outputs and ends of prompts as they are."""
        call("suffix_cache_save", self._handle, path_bytes(file))

    def load(self, file: str | os.PathLike[str]) -> None:
        """Replaces everything by what a file holds, which is mapped and checked. If that fails, nothing changes."""
        call("suffix_cache_load", self._handle, path_bytes(file))

    def __repr__(self) -> str:
        return f"<SuffixCache of {self.texts} texts, {self.tokens} tokens>"

    def __reduce__(self) -> Any:
        raise TypeError("a SuffixCache cannot be pickled: save() writes a file")


class WithSuffixCache(NativeModel):
    """A model that guesses, for Blockwise, what followed the same last tokens in earlier outputs, and stores the outputs of all searches
    in the cache (suffix decoding). Guesses never change an output. A Request with remember=False takes no part.

    model
        Any model; its `propose` and `lookup` are asked where they guess better.
    cache
        SuffixCache.
    shortest
        The shortest match, in tokens.
    factor
        Guesses on a path per token of the match, at most.
    least
        A guess is made if at least this fraction of what followed begins so; 0 to 1.
    samples
        How many places with a match are looked at, at most.
    own
        Also look in the request's own prompt and output.
    """

    model: AnyModel
    cache: SuffixCache
    shortest: int
    factor: float
    least: float
    samples: int
    own: bool

    def __init__(self, model: AnyModel, cache: SuffixCache, *, shortest: int = 1, factor: float = 1.0, least: float = 0.1,
                 samples: int = 16, own: bool = True):
        if not isinstance(cache, SuffixCache):
            raise TypeError(f"sluice: cache = {cache!r}: must be a SuffixCache")
        shortest, samples, factor = whole(shortest, "shortest"), whole(samples, "samples"), real(factor, "factor")
        for value, wrong in ((shortest, "shortest = 0: must be at least 1"), (samples, "samples = 0: must be at least 1"),
                             (factor, "factor = 0.000000: must be a number above 0")):
            if value == 0:  # which is the default in C
                raise ArgumentError(f"sluice: {wrong}")
        self.model, self.cache, self.shortest, self.factor = model, cache, shortest, factor
        self.least, self.samples, self.own = real(least, "least"), samples, own

    def __getattr__(self, name: str) -> Any:
        if name in ("vocabulary", "token_bytes", "is_encoder_decoder"):  # the model's
            return getattr(self.__dict__["model"], name)
        raise AttributeError(f"WithSuffixCache has no {name}")

    def _create(self, state: State) -> Native:
        least = C.c_double(self.least)
        options = CSuffixOptions(size=C.sizeof(CSuffixOptions), shortest=self.shortest, samples=self.samples, factor=self.factor,
                                 least=C.pointer(least), not_own=not self.own)
        inner = native(self.model, state)
        try:
            return Native(create("model_remember", inner.handle, self.cache._handle, C.byref(options)), [inner])
        except BaseException:
            inner.free()
            raise

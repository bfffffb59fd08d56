# SPDX-License-Identifier: Apache-2.0
"""Watermarks: keys, and whether a text carries a mark."""

from __future__ import annotations

import ctypes as C
import os
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ._library import (ArgumentError, CDetectionOptions, CWatermarkDetection, call, create, library, listed, path_bytes, token_array, u64,
                       whole)

if TYPE_CHECKING:
    from .options import Watermark


class WatermarkKey:
    """The secret of a Watermark: up to 32 words of 64 bits. Who knows it can detect the mark, and can forge it.

    `WatermarkKey(word)` and `WatermarkKey([word, ...])` take integers, `WatermarkKey.from_bytes(secret)` eight bytes for each word,
    `WatermarkKey.open(file)` a file. Nothing prints it; it cannot be read back, and is not pickled.
    """

    _is_watermark_key = True

    def __init__(self, words: int | Iterable[int]):
        made: list[Any] = [words] if hasattr(words, "__index__") else list(words) if isinstance(words, Iterable) else [None]
        if isinstance(words, (str, bytes)) or not all(hasattr(word, "__index__") for word in made):
            raise TypeError("sluice: watermark key: must be an integer, or a list of integers")
        if not all(0 <= int(word) < 2**64 for word in made):
            raise ArgumentError("sluice: watermark key: an integer is not in [0, 2^64)")  # which one is a secret
        self._own(create("watermark_key_create", (u64 * len(made))(*map(int, made)), len(made)))

    @classmethod
    def from_bytes(cls, secret: bytes) -> WatermarkKey:
        """The key of some bytes: 8 for each word, the lowest first."""
        if not isinstance(secret, (bytes, bytearray, memoryview)):  # bytes(5) would be five zeros
            raise TypeError("sluice: watermark key: must be bytes")
        given = bytes(secret)
        made = cls.__new__(cls)
        made._own(create("watermark_key_from_bytes", given, len(given)))
        return made

    @classmethod
    def open(cls, file: str | os.PathLike[str]) -> WatermarkKey:
        """The key in a file: integers, decimal or with 0x; `#` begins a comment."""
        made = cls.__new__(cls)
        made._own(create("watermark_key_open", path_bytes(file)))
        return made

    @classmethod
    def write_new(cls, file: str | os.PathLike[str], words: int = 1) -> WatermarkKey:
        """Writes a new key of random words to a new file, that only its owner may read, and returns it."""
        words = whole(words, "watermark key: words")
        if words < 1:
            raise ArgumentError(f"sluice: watermark key: words = {words}: must be in [1, 32]")
        made = cls.__new__(cls)
        made._own(create("watermark_key_write_new", path_bytes(file), words))
        return made

    def _own(self, handle: int) -> None:
        self._handle = handle
        weakref.finalize(self, library.sluice_watermark_key_free, handle)

    def __repr__(self) -> str:
        return "<WatermarkKey>"

    def __copy__(self) -> WatermarkKey:
        return self

    def __deepcopy__(self, _: Any) -> WatermarkKey:
        return self

    def __reduce__(self) -> Any:
        raise TypeError("a WatermarkKey cannot be pickled: it is a secret")


@dataclass
class WatermarkWindow:
    """The score of a part of a text."""

    begin: int
    end: int
    """Tokens begin .. end - 1."""
    scored: int
    """As in WatermarkDetection."""
    score: float
    p_value: float


@dataclass
class WatermarkDetection:
    """What detect_watermark() finds."""

    tokens: int
    """In the text."""
    scored: int
    """That count."""
    masked: int
    """Left out as the mask says."""
    repeated: int
    """Left out since their context has occurred before."""
    score: float
    """gumbel: sum of -log(1 - number), of mean `scored`; synthid: bits set; else green tokens."""
    expected: float
    """Its mean in a text without the mark."""
    p_value: float
    """The probability of this score or a higher one in a text without the mark."""
    windows: list[WatermarkWindow] = field(default_factory=list)
    """If asked for."""
    windows_p_value: float = 1.0
    """The smallest of the windows, times their number: at most 1, and never too small."""


def detect_watermark(tokens: Sequence[int], watermark: Watermark, *, mask: Iterable[Any] | None = None,
                     window: int = 0) -> WatermarkDetection:
    """Whether a text carries the mark of a Watermark: the same that marked it, key included; docs/watermarks.md.

    tokens
        Those of the model that wrote it, from the beginning of its output, without the prompt.
    mask
        One entry for each token: true for those that are left out (forced, quoted). None: all count.
    window
        Look also at parts of so many tokens, half of it apart. 0: not.

    The p-value is exact for any text that was made without the key. O(tokens).
    """
    from ._search import watermark_handle
    array, count = token_array(tokens, "tokens")
    left_out = b"" if mask is None else bytes(bool(one) for one in listed(mask, "mask", "entries, one for each token"))
    if mask is not None and len(left_out) != count:
        raise ArgumentError(f"sluice: mask: size = {len(left_out)}: must be that of the text, {count}")
    options = CDetectionOptions(size=C.sizeof(CDetectionOptions), mask=left_out or None, mask_count=len(left_out),
                                window=whole(window, "window"))
    found = C.POINTER(CWatermarkDetection)()
    with watermark_handle(watermark) as marks:
        call("detect_watermark", marks, array, count, C.byref(options), C.byref(found))
    try:
        seen = found.contents
        windows = [WatermarkWindow(w.begin, w.end, w.scored, w.score, w.p_value) for w in seen.windows[:seen.window_count]
                   ] if seen.window_count else []
        return WatermarkDetection(seen.tokens, seen.scored, seen.masked, seen.repeated, seen.score, seen.expected, seen.p_value,
                                  windows, seen.windows_p_value)
    finally:
        library.sluice_watermark_detection_free(found)

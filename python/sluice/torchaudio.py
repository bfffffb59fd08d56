# SPDX-License-Identifier: Apache-2.0
"""The names of torchaudio's CTC decoder (flashlight's) over CtcDecoder: `from sluice.torchaudio import ctc_decoder`. docs/ctc.md says what differs.

Neither torch nor torchaudio is needed: emissions may be arrays, and then so are tokens and timesteps.
"""

from __future__ import annotations

import math
import os
import pathlib
import sys
import tempfile
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from ._ctc import CtcDecoder, CtcStream, FramesHypothesis, FramesResult, FusionWeights
from ._language import NGrams
from ._library import ArgumentError, need_numpy, real, whole
from .options import CtcBeamSearch

__all__ = ["CTCDecoder", "CTCHypothesis", "ctc_decoder"]


class CTCHypothesis(NamedTuple):
    """A text, as torchaudio has it."""

    tokens: Any
    """int64: its labels, with the silence that torchaudio puts before the first frame and behind the last."""
    words: list[str]
    """Of a lexicon."""
    score: float
    timesteps: Any
    """int32: where each token begins; frame 0 is 1, since silence comes first."""


class CTCDecoder:
    """What ctc_decoder() returns."""

    def __init__(self, decoder: CtcDecoder, silence: int, silence_score: float, words: bool):
        self._decoder, self._silence, self._silence_score, self._words = decoder, silence, silence_score, words
        self._stream: CtcStream | None = None
        self._final: list[CTCHypothesis] = []
        self._torch = False

    def __call__(self, emissions: Any, lengths: Any = None) -> list[list[CTCHypothesis]]:
        """The texts of log-probabilities [B, T, N], of which `lengths` frames count."""
        array = self._emissions(emissions, 3)
        results = self._decoder.decode(array, None if lengths is None else [int(length) for length in lengths], errors="return")
        return [self._hypotheses(result) for result in results]

    def decode_begin(self) -> None:
        """Begins a text whose emissions come while it is decoded."""
        self._stream, self._final = self._decoder.stream(), []

    def decode_step(self, emissions: Any) -> None:
        """More of them, [T, N]."""
        if self._stream is None:
            raise ArgumentError("sluice: decode_step: decode_begin must come first")
        self._stream.append(self._emissions(emissions, 2))

    def decode_end(self) -> None:
        """Nothing more will come."""
        if self._stream is None:
            raise ArgumentError("sluice: decode_end: decode_begin must come first")
        self._final, self._stream = self._hypotheses(self._stream.finish()), None

    def get_final_hypothesis(self) -> list[CTCHypothesis]:
        """The texts, after decode_end()."""
        return self._final

    def idxs_to_tokens(self, idxs: Any) -> list[str]:
        """The labels as strings."""
        return [self._decoder.labels[int(i)] for i in idxs]

    def _emissions(self, emissions: Any, dimensions: int) -> Any:
        numpy = need_numpy("sluice.torchaudio")
        self._torch = type(emissions).__module__ == "torch"
        array = numpy.asarray(emissions, dtype=numpy.float32)
        if array.ndim != dimensions:
            raise ArgumentError(f"sluice: emissions has {array.ndim} dimensions: must be " + ("[B, T, N]" if dimensions == 3 else "[T, N]"))
        if self._silence_score:
            array = array.copy()
            array[..., self._silence] += self._silence_score
        return array

    def _hypotheses(self, result: FramesResult) -> list[CTCHypothesis]:
        return [self._hypothesis(h, result.frames) for h in result.hypotheses]

    def _hypothesis(self, h: FramesHypothesis, count: int) -> CTCHypothesis:
        """With silence around it, as one path of `count` + 2 frames, of which neighbours that are equal are joined."""
        numpy = need_numpy("sluice.torchaudio")
        labels, ranges = h.tokens, h.frames
        tokens, steps = [self._silence], [0]
        for i, (label, (begin, _)) in enumerate(zip(labels, ranges)):
            if not (i == 0 and label == self._silence and begin == 0):
                tokens.append(label)
                steps.append(begin + 1)
        if not (labels and labels[-1] == self._silence and ranges[-1][1] == count):
            tokens.append(self._silence)
            steps.append(count + 1)
        of_tokens, of_steps = numpy.array(tokens, numpy.int64), numpy.array(steps, numpy.int32)
        if self._torch:
            torch = sys.modules["torch"]
            of_tokens, of_steps = torch.from_numpy(of_tokens), torch.from_numpy(of_steps)
        return CTCHypothesis(of_tokens, [word.word for word in h.words] if self._words else [], h.score, of_steps)


def ctc_decoder(lexicon: str | os.PathLike[str] | None, tokens: str | os.PathLike[str] | Sequence[str],
                lm: str | os.PathLike[str] | None = None, lm_dict: None = None, nbest: int = 1, beam_size: int = 50,
                beam_size_token: int | None = None, beam_threshold: float = 50, lm_weight: float = 2, word_score: float = 0,
                unk_score: float = -math.inf, sil_score: float = 0, log_add: bool = False, blank_token: str = "-", sil_token: str = "|",
                unk_word: str = "<unk>") -> CTCDecoder:
    """A decoder with torchaudio's arguments.

    lexicon
        A file with a word and its labels in each line; None: any labels.
    tokens
        The labels: a list, or a file with one in each line.
    lm
        An ARPA file: of words, or without a lexicon of labels. Its scores are logarithms to base 10 to `lm_weight`, as KenLM gives them.
    """
    if lm_dict is not None:
        raise ArgumentError("sluice: lm_dict: is not there: the words of the language model are those of the lexicon")
    if lm is not None and not isinstance(lm, (str, os.PathLike)):
        raise ArgumentError(f"sluice: lm = {lm!r}: must be an ARPA file")
    if unk_score > -math.inf:
        raise ArgumentError(f"sluice: unk_score = {unk_score}: words that the lexicon has not are impossible here: must be -inf")
    labels = pathlib.Path(tokens).read_text(encoding="utf-8").split("\n") if isinstance(tokens, (str, os.PathLike)) else list(tokens)
    while labels and isinstance(tokens, (str, os.PathLike)) and not labels[-1]:
        labels.pop()  # the last line's end
    search = CtcBeamSearch(width=whole(beam_size, "beam_size", 1), n_best=min(whole(nbest, "nbest", 1), beam_size),
                           top_tokens=0 if beam_size_token is None else whole(beam_size_token, "beam_size_token", 1),
                           threshold=real(beam_threshold, "beam_threshold"), viterbi=not log_add)
    weights = FusionWeights(real(lm_weight, "lm_weight") / math.log(10), real(word_score, "word_score") if lexicon is not None else 0.0)
    of: Literal["words", "labels"] = "words" if lexicon is not None else "labels"
    model: Any = lm
    if lm is None and weights.bonus != 0:  # one that knows nothing, so that words are counted
        model, weights.weight = _nothing(), 0.0
    made = CtcDecoder(labels, blank_token, search, kind="log_probs", lexicon=lexicon, language_model=model, weights=weights,
                      language_model_of=of, separator=sil_token)
    return CTCDecoder(made, made._label(sil_token, "sil_token"), real(sil_score, "sil_score"), lexicon is not None)


def _nothing() -> NGrams:
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "nothing.arpa")
        file.write_text("\\data\\\nngram 1=3\n\n\\1-grams:\n-99 <s>\n-1 </s>\n-1 <unk>\n\n\\end\\\n", encoding="utf-8")
        return NGrams.open(file)

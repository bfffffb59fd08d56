# SPDX-License-Identifier: Apache-2.0
"""The names of pyctcdecode (0.5) over CtcDecoder: `from sluice.pyctcdecode import build_ctcdecoder`. docs/ctc.md says what differs."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple, Optional

from ._ctc import _WORD, CtcDecoder, FramesHypothesis, FusionWeights
from ._language import NGrams
from ._library import ArgumentError, need_numpy, real, whole
from .options import CtcBeamSearch

__all__ = ["BeamSearchDecoderCTC", "OutputBeam", "OutputBeamMPSafe", "build_ctcdecoder"]

Frames = tuple[int, int]


class OutputBeam(NamedTuple):
    """A text, as decode_beams() returns it: pyctcdecode's tuple, with names."""

    text: str
    last_lm_state: None
    """Not known here: a stream (CtcDecoder.stream) goes on where frames ended."""
    text_frames: list[tuple[str, Frames]]
    """Each word, its first frame, and the one after its last."""
    logit_score: float
    """log p of the text, given the frames."""
    lm_score: float
    """That, and what language model and hotwords add."""


class OutputBeamMPSafe(NamedTuple):
    """The same without a state, as decode_beams_batch() returns it."""

    text: str
    text_frames: list[tuple[str, Frames]]
    logit_score: float
    lm_score: float


class BeamSearchDecoderCTC:
    """What build_ctcdecoder() returns."""

    def __init__(self, labels: Sequence[str], blank: int, ngrams: NGrams | None, weights: FusionWeights):
        self._labels, self._blank, self._ngrams, self._weights = list(labels), blank, ngrams, weights
        self._make()

    def _make(self) -> None:
        self._decoder = CtcDecoder(self._labels, self._blank, language_model=self._ngrams, weights=self._weights)
        self._letters = all(len(text) == 1 for i, text in enumerate(self._decoder._texts) if i != self._blank)
        self._search: tuple[Any, Any] = None, None  # of the last call: its arguments, and what was made of them

    def decode(self, logits: Any, beam_width: int = 100, beam_prune_logp: float = -10.0, token_min_logp: float = -5.0,
               hotwords: Iterable[str] | None = None, hotword_weight: float = 10.0, lm_start_state: None = None) -> str:
        """The best text of a matrix [frames, labels] of logits, log-probabilities or probabilities."""
        _demand_no_state(lm_start_state)
        return self._texts([logits], beam_width, beam_prune_logp, token_min_logp, hotwords, hotword_weight)[0]

    def decode_beams(self, logits: Any, beam_width: int = 100, beam_prune_logp: float = -10.0, token_min_logp: float = -5.0,
                     prune_history: bool = False, hotwords: Iterable[str] | None = None, hotword_weight: float = 10.0,
                     lm_start_state: None = None) -> list[OutputBeam]:
        """The texts of a matrix, best first. `prune_history` is not needed, and changes nothing."""
        _demand_no_state(lm_start_state)
        return self._beams([logits], beam_width, beam_prune_logp, token_min_logp, hotwords, hotword_weight)[0]

    def decode_batch(self, pool: Any, logits_list: Sequence[Any], beam_width: int = 100, beam_prune_logp: float = -10.0,
                     token_min_logp: float = -5.0, hotwords: Iterable[str] | None = None, hotword_weight: float = 10.0) -> list[str]:
        """The best texts of matrices, over threads; `pool`, of processes, is not needed, and may be None."""
        return self._texts(logits_list, beam_width, beam_prune_logp, token_min_logp, hotwords, hotword_weight)

    def decode_beams_batch(self, pool: Any, logits_list: Sequence[Any], beam_width: int = 100, beam_prune_logp: float = -10.0,
                           token_min_logp: float = -5.0, prune_history: bool = False, hotwords: Iterable[str] | None = None,
                           hotword_weight: float = 10.0) -> list[list[OutputBeamMPSafe]]:
        """The texts of matrices, as decode_batch()."""
        return [[OutputBeamMPSafe(beam.text, beam.text_frames, beam.logit_score, beam.lm_score) for beam in beams]
                for beams in self._beams(logits_list, beam_width, beam_prune_logp, token_min_logp, hotwords, hotword_weight)]

    def reset_params(self, alpha: Optional[float] = None, beta: Optional[float] = None, unk_score_offset: Optional[float] = None,
                     lm_score_boundary: Optional[bool] = None) -> None:
        """Other weights of the language model."""
        if self._ngrams is None:
            return
        _demand_boundary(lm_score_boundary is not False)
        given = _weights(0 if alpha is None else alpha, 0 if beta is None else beta, 0 if unk_score_offset is None else unk_score_offset)
        self._weights = FusionWeights(self._weights.weight if alpha is None else given.weight,
                                      self._weights.bonus if beta is None else given.bonus,
                                      self._weights.unknown if unk_score_offset is None else given.unknown)
        self._make()

    def _found(self, matrices: Sequence[Any], beam_width: int, beam_prune_logp: float, token_min_logp: float, hotwords: Iterable[str] | None,
               hotword_weight: float) -> list[list[FramesHypothesis]]:
        numpy = need_numpy("sluice.pyctcdecode")
        words = tuple(hotwords or ())
        asked = beam_width, beam_prune_logp, token_min_logp, words, hotword_weight
        if self._search[0] != asked:
            width = whole(beam_width, "beam_width", 1)
            search = CtcBeamSearch(width=width, n_best=width, top_tokens=0, threshold=-real(beam_prune_logp, "beam_prune_logp"),
                                   token_floor=min(0.0, real(token_min_logp, "token_min_logp")))
            boosted = {word: real(hotword_weight, "hotword_weight") for phrase in words for word in phrase.split()}
            self._search = asked, self._decoder._other(search, boosted)
        arrays = [self._decoder._array(numpy, _log_probs(numpy, matrix), i) for i, matrix in enumerate(matrices)]
        return [result.hypotheses for result in self._decoder._decode(arrays, self._search[1], 0, "raise")]

    def _texts(self, *asked: Any) -> list[str]:
        return [max(_merged(hypotheses).items(), key=lambda one: one[1][2])[0] for hypotheses in self._found(*asked)]

    def _beams(self, *asked: Any) -> list[list[OutputBeam]]:
        made = []
        for hypotheses in self._found(*asked):
            ranked = sorted(_merged(hypotheses).items(), key=lambda one: -one[1][2])
            made.append([OutputBeam(text, None, self._words(h), logit_score, score) for text, (h, logit_score, score) in ranked])
        return made

    def _words(self, h: FramesHypothesis) -> list[tuple[str, Frames]]:
        if not self._letters:
            return [(word.word, (word.start, word.end)) for word in h.words]
        text = h._spelt()
        return [(text[begin:end], (first, last)) for begin, end, first, last, _, _ in _WORD.iter_unpack(h._words)]


def build_ctcdecoder(labels: Sequence[str], kenlm_model_path: str | os.PathLike[str] | None = None, unigrams: Collection[str] | None = None,
                     alpha: float = 0.5, beta: float = 1.5, unk_score_offset: float = -10.0,
                     lm_score_boundary: bool = True) -> BeamSearchDecoderCTC:
    """A decoder with pyctcdecode's arguments.

    kenlm_model_path
        An ARPA file, or a file of `build_ngram`. A binary of KenLM is refused.
    unigrams
        Need not be given: the words are the file's. A warning tells of words of the file that these lack, which pyctcdecode would penalise.
    alpha, beta, unk_score_offset
        The weight of the language model, what each word adds, and a logarithm to base 10 added for unknown words.
    """
    made, blank = _with_blank(list(labels))
    _demand_boundary(lm_score_boundary)
    ngrams = None if kenlm_model_path is None else NGrams.open(kenlm_model_path)
    if ngrams is not None and unigrams is not None:
        known = {ngrams.spelling(i) for i in range(len(ngrams))} - {b"<s>", b"</s>", b"<unk>", b"<UNK>"}
        if missing := known - {word.encode() for word in unigrams}:
            warnings.warn(f"sluice: unigrams lacks {len(missing)} words of the language model, such as "
                          f"{min(missing).decode(errors='replace')!r}: these count as known", stacklevel=2)
    return BeamSearchDecoderCTC(made, blank, ngrams, _weights(alpha, beta, unk_score_offset))


def _weights(alpha: float, beta: float, unk_score_offset: float) -> FusionWeights:
    return FusionWeights(real(alpha, "alpha"), real(beta, "beta"), real(unk_score_offset, "unk_score_offset") * math.log(10))


def _demand_boundary(value: bool) -> None:
    if not value:
        raise ArgumentError("sluice: lm_score_boundary = False: texts begin and end as sentences of the language model here")


def _with_blank(labels: list[str]) -> tuple[list[str], int]:
    """The blank as pyctcdecode finds it: "", <pad>, "_", or a label that is appended."""
    pads = [i for i, label in enumerate(labels) if label == "" or re.fullmatch(r"[<\[]pad[>\]]", label, re.I)]
    if not pads and "_" in labels:
        pads = [labels.index("_")]
    return (labels, pads[0]) if pads else ([*labels, ""], len(labels))


def _demand_no_state(lm_start_state: Any) -> None:
    if lm_start_state is not None:
        raise ArgumentError("sluice: lm_start_state: is not there: CtcDecoder.stream() goes on where frames ended")


def _log_probs(numpy: Any, matrix: Any) -> Any:
    """The logarithms of what are probabilities."""
    array = numpy.asarray(matrix)
    if array.ndim == 2 and array.size and 0.5 < array[0].sum() < 2 and math.isclose(array.sum(axis=1).mean(), 1, rel_tol=1e-6) and (array >= 0).all():
        return numpy.log(numpy.clip(array, 1e-15, 1))
    return array


def _merged(hypotheses: Sequence[FramesHypothesis]) -> dict[str, tuple[FramesHypothesis, float, float]]:
    """Texts that differ in their spaces only are one, with the sum of their probabilities: of each its best hypothesis, log p, and score."""
    beams: dict[str, tuple[FramesHypothesis, float, float]] = {}
    for h in hypotheses:
        text = " ".join(h._spelt().split())
        if (known := beams.get(text)) is None:
            beams[text] = h, h.log_prob, h.score
        else:
            first, log_prob, score = known
            more = max(0.0, h.log_prob - log_prob) + math.log1p(math.exp(-abs(h.log_prob - log_prob)))
            beams[text] = first, log_prob + more, score + more
    return beams

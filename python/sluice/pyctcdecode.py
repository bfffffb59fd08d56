# SPDX-License-Identifier: Apache-2.0
"""The names of pyctcdecode (0.5) over CtcDecoder: `from sluice.pyctcdecode import build_ctcdecoder`. docs/ctc.md says what differs."""

from __future__ import annotations

import json
import math
import os
import pathlib
import re
import shutil
import warnings
from collections.abc import Collection, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple, Optional, Union

from ._ctc import _WORD, CtcDecoder, FramesHypothesis, FusionWeights
from ._language import NGrams
from ._library import ArgumentError, need_numpy, real, whole
from .options import CtcBeamSearch

__all__ = ["Alphabet", "BeamSearchDecoderCTC", "LanguageModel", "OutputBeam", "OutputBeamMPSafe", "build_ctcdecoder"]

_UNKNOWN = {"<unk>", "<UNK>"}
Frames = tuple[int, int]
Path = Union[str, "os.PathLike[str]"]


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


class Alphabet:
    """Labels as pyctcdecode writes them: the blank is "", pieces of words are in SentencePiece's style."""

    labels: list[str]
    is_bpe: bool

    def __init__(self, labels: Sequence[str], is_bpe: bool):
        self.labels, self.is_bpe = list(labels), bool(is_bpe)

    @classmethod
    def build_alphabet(cls, labels: Sequence[str]) -> Alphabet:
        """Of the labels of a model."""
        made, word_pieces = list(labels), any(label.startswith("##") for label in labels)
        is_bpe = word_pieces or any(label.startswith("\u2581") for label in labels)
        if len(set(made)) != len(made):
            raise ArgumentError(f"sluice: labels: {next(label for i, label in enumerate(made) if label in made[:i])!r}: is there twice")
        if word_pieces:
            made = [_piece(label) for label in made]
        elif not is_bpe and " " not in made:
            made = [" " if label == "|" else label for label in made]
        made = ["" if re.fullmatch(r"[<\[]pad[>\]]", label, re.I) else label for label in made]
        if not is_bpe and "" not in made:
            made = ["" if label == "_" else label for label in made]
        unknown = "\u2581\u2047\u2581" if is_bpe else "\u2047"
        made = [unknown if re.fullmatch(r"[<\[]unk[>\]]", label, re.I) else label for label in made]
        return cls(made if "" in made else [*made, ""], is_bpe)

    def dumps(self) -> str:
        return json.dumps({"labels": self.labels, "is_bpe": self.is_bpe})

    @classmethod
    def loads(cls, s: str) -> Alphabet:
        return cls(**_members(s, ("labels", "is_bpe"), "alphabet"))


class LanguageModel:
    """N-grams of words and their weights, as pyctcdecode's; `kenlm_model` is their ARPA file, or what has it as `path`."""

    JSON_ATTRS: ClassVar[tuple[str, ...]] = ("alpha", "beta", "unk_score_offset", "score_boundary")
    alpha: float
    beta: float
    unk_score_offset: float
    score_boundary: bool

    def __init__(self, kenlm_model: Any, unigrams: Collection[str] | None = None, alpha: float = 0.5, beta: float = 1.5,
                 unk_score_offset: float = -10.0, score_boundary: bool = True):
        _demand_boundary(score_boundary)
        self._file = pathlib.Path(os.fsdecode(getattr(kenlm_model, "path", kenlm_model)))
        self.alpha, self.beta, self.unk_score_offset, self.score_boundary = alpha, beta, unk_score_offset, score_boundary
        self._unigrams = None if unigrams is None else sorted(set(unigrams))
        self._weights = _weights(alpha, beta, unk_score_offset)
        if self._is_binary():
            raise ArgumentError(f"sluice: {self._file}: is a binary of KenLM, which is not read here: put the ARPA file in its place that it was made of")
        self._ngrams = NGrams.open(self._file)
        if self._unigrams is not None:
            known = {self._ngrams.spelling(i) for i in range(len(self._ngrams))} - {b"<s>", b"</s>", b"<unk>", b"<UNK>"}
            if missing := known - {word.encode() for word in self._unigrams}:
                warnings.warn(f"sluice: unigrams lacks {len(missing)} words of the language model, such as "
                              f"{min(missing).decode(errors='replace')!r}: these count as known", stacklevel=3)

    def _is_binary(self) -> bool:
        try:
            with open(self._file, "rb") as file:
                return file.read(7) == b"mmap lm"
        except OSError:
            return False  # which NGrams.open says

    def reset_params(self, **params: Any) -> None:
        """Other weights; None: as it was."""
        given = {name: getattr(self, name) for name in self.JSON_ATTRS} | {name: value for name, value in params.items() if value is not None}
        if unknown := set(given) - set(self.JSON_ATTRS):
            raise TypeError(f"reset_params() got unexpected arguments: {', '.join(sorted(unknown))}")
        _demand_boundary(given["score_boundary"])
        self._weights = _weights(given["alpha"], given["beta"], given["unk_score_offset"])
        self.__dict__.update(given)

    @property
    def serializable_attrs(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.JSON_ATTRS}

    def save_to_dir(self, filepath: Path, unigram_encoding: str | None = None) -> None:
        """Writes attrs.json and unigrams.txt into a folder, and copies the ARPA file."""
        words, folder = _words_of_arpa(self._file), pathlib.Path(filepath)
        if self._unigrams is not None:
            known = {self._ngrams.spelling(i) for i in range(len(self._ngrams))}
            words = [word for word in self._unigrams if word.encode() in known and word not in _UNKNOWN]
        (folder / "attrs.json").write_text(json.dumps(self.serializable_attrs))
        (folder / "unigrams.txt").write_text("".join(word + "\n" for word in words), encoding=unigram_encoding)
        shutil.copy2(self._file, folder / self._file.with_suffix(".arpa").name)  # the name says what it is, there

    @staticmethod
    def parse_directory_contents(filepath: Path) -> dict[str, str]:
        """The files of a folder; ValueError, if they are not those that save_to_dir() writes."""
        found = _visible(filepath)
        models = [name for name in found if pathlib.Path(name).suffix in (".arpa", ".bin", ".binary")]
        if len(found) != 3 or len(models) != 1 or not {"attrs.json", "unigrams.txt"} <= set(found):
            raise ValueError(f"sluice: {filepath}: has {sorted(found)}: must have attrs.json, unigrams.txt and one .arpa file")
        return {name: os.path.join(filepath, file) for name, file in
                (("json_attrs", "attrs.json"), ("unigrams", "unigrams.txt"), ("kenlm", models[0]))}

    @classmethod
    def load_from_dir(cls, filepath: Path, unigram_encoding: str | None = None) -> LanguageModel:
        """What this or pyctcdecode saved, with an ARPA file."""
        files = cls.parse_directory_contents(filepath)
        attributes = _members(pathlib.Path(files["json_attrs"]).read_text(), cls.JSON_ATTRS, files["json_attrs"])
        words = pathlib.Path(files["unigrams"]).read_text(encoding=unigram_encoding).splitlines()
        with warnings.catch_warnings():  # pyctcdecode leaves words without a back-off weight out, and keeps no word's absence as a wish
            warnings.simplefilter("ignore")
            return cls(files["kenlm"], words, **attributes)


class BeamSearchDecoderCTC:
    """What build_ctcdecoder() returns."""

    def __init__(self, alphabet: Alphabet, language_model: LanguageModel | None = None):
        if not isinstance(alphabet, Alphabet):
            raise TypeError(f"sluice: alphabet = {alphabet!r}: must be an Alphabet: Alphabet.build_alphabet(labels)")
        self._alphabet, self._language_model = alphabet, language_model
        self._labels = alphabet.labels
        if "" not in self._labels:
            raise ArgumentError('sluice: alphabet: has no blank, "": Alphabet.build_alphabet(labels) adds one')
        self._blank = self._labels.index("")
        self._make()

    def save_to_dir(self, filepath: Path) -> None:
        """Writes alphabet.json, and language_model/ if there is one, into a folder, which pyctcdecode loads, too."""
        folder = pathlib.Path(filepath)
        (folder / "alphabet.json").write_text(self._alphabet.dumps())
        if self._language_model is not None:
            (folder / "language_model").mkdir()
            self._language_model.save_to_dir(folder / "language_model")

    @staticmethod
    def parse_directory_contents(filepath: Path) -> dict[str, str | None]:
        """The alphabet's file in a folder, and the language model's folder; ValueError, if they are not what save_to_dir() writes."""
        found = _visible(filepath)
        others = set(found) - {"alphabet.json"}
        if "alphabet.json" not in found or others and "language_model" not in others:
            raise ValueError(f"sluice: {filepath}: has {sorted(found)}: must have alphabet.json, and language_model if there is one")
        return {"alphabet": os.path.join(filepath, "alphabet.json"), "language_model": os.path.join(filepath, "language_model") if others else None}

    @classmethod
    def load_from_dir(cls, filepath: Path, unigram_encoding: str | None = None) -> BeamSearchDecoderCTC:
        """What this or pyctcdecode saved."""
        files = cls.parse_directory_contents(filepath)
        assert files["alphabet"] is not None
        alphabet, model = Alphabet.loads(pathlib.Path(files["alphabet"]).read_text()), files["language_model"]
        return cls(alphabet, None if model is None else LanguageModel.load_from_dir(model, unigram_encoding))

    @classmethod
    def load_from_hf_hub(cls, *arguments: Any, **others: Any) -> BeamSearchDecoderCTC:
        """Is not there."""
        raise NotImplementedError("sluice: load_from_hf_hub: huggingface_hub.snapshot_download(...) returns a folder for load_from_dir()")

    def _make(self) -> None:
        model = self._language_model
        if model is None:
            self._decoder = CtcDecoder(self._labels, self._blank)
        else:
            self._decoder = CtcDecoder(self._labels, self._blank, language_model=model._ngrams, weights=model._weights)
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
        if self._language_model is None:
            return
        self._language_model.reset_params(alpha=alpha, beta=beta, unk_score_offset=unk_score_offset, score_boundary=lm_score_boundary)
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


def build_ctcdecoder(labels: Sequence[str], kenlm_model_path: Path | None = None, unigrams: Collection[str] | None = None,
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
    _demand_boundary(lm_score_boundary)
    alphabet = Alphabet.build_alphabet(labels)
    if kenlm_model_path is None:
        return BeamSearchDecoderCTC(alphabet)
    return BeamSearchDecoderCTC(alphabet, LanguageModel(kenlm_model_path, unigrams, alpha, beta, unk_score_offset, lm_score_boundary))


def _weights(alpha: float, beta: float, unk_score_offset: float) -> FusionWeights:
    return FusionWeights(real(alpha, "alpha"), real(beta, "beta"), real(unk_score_offset, "unk_score_offset") * math.log(10))


def _demand_boundary(value: bool) -> None:
    if not value:
        raise ArgumentError("sluice: lm_score_boundary = False: texts begin and end as sentences of the language model here")


def _piece(label: str) -> str:
    """A piece of WordPiece in SentencePiece's style."""
    if label.startswith("##"):
        return label[2:]
    special = label in ("", "\u2581", "\u2581\u2047\u2581") or re.fullmatch(r"[<\[].+[>\]]", label)
    return label if special else "\u2581" + label


def _visible(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if not name.startswith((".", "__"))]


def _members(text: str, names: Sequence[str], what: str) -> dict[str, Any]:
    """A JSON object that has exactly these."""
    made = json.loads(text)
    if not isinstance(made, dict) or set(made) != set(names):
        raise ValueError(f"sluice: {what}: must be a JSON object with {', '.join(names)}")
    return made


def _words_of_arpa(path: pathlib.Path) -> list[str]:
    """The words that pyctcdecode takes from an ARPA file: those with a back-off weight."""
    words, inside = set(), False
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        if not any(line.strip() == "\\1-grams:" for line in file):
            raise ArgumentError(f"sluice: {path}: is no ARPA file, which pyctcdecode would read: save a decoder that has one")
        file.seek(0)
        for line in file:
            line = line.strip()
            if line == "\\1-grams:":
                inside = True
            elif inside and line.startswith("\\"):
                break
            elif inside and line.count("\t") == 2:
                words.add(line.split("\t")[1])
    return sorted(words - _UNKNOWN)


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

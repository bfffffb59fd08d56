# SPDX-License-Identifier: Apache-2.0
"""The beam searches of other engines: a BeamSearch with that engine's rules filled in. docs/algorithms.md#presets says what each
reproduces, and what not. Any option can be changed afterwards, by keywords or later."""

from __future__ import annotations

from typing import Any

from .options import (AtMaximum, BeamSearch, EarlyStopping, EarlyStoppingRule, FinishedHypotheses, LengthLimits, LengthPenalty,
                      LengthPenaltyKind, Pruning, Stage)


def fairseq(width: int, **changes: Any) -> BeamSearch:
    """fairseq's SequenceGenerator."""
    return BeamSearch(width=width, length=LengthLimits(min=1, max=201), penalty=LengthPenalty(alpha=1)).replace(**changes)


def ctranslate2(width: int, length_penalty: float = 1, **changes: Any) -> BeamSearch:
    """CTranslate2's BeamSearch with its Translator's defaults."""
    none = length_penalty == 0
    return BeamSearch(
        width=width, length=LengthLimits(min=1, max=256),
        penalty=LengthPenalty(kind=LengthPenaltyKind.none if none else LengthPenaltyKind.average, alpha=length_penalty),
        early_stopping=EarlyStopping(rule=EarlyStoppingRule.top_ended if none else EarlyStoppingRule.count),
        at_maximum=AtMaximum.truncate, surplus=True, prefix_scored=False, guard_prefix=True,
        stage=Stage.before_softmax).replace(**changes)


def huggingface(width: int, length_penalty: float = 1, early: EarlyStoppingRule | str = EarlyStoppingRule.heuristic,
                **changes: Any) -> BeamSearch:
    """Hugging Face transformers' beam search (4.50 and later). early: its early_stopping; False is heuristic, True count, "never"
    never_early."""
    return BeamSearch(width=width, penalty=LengthPenalty(alpha=length_penalty), early_stopping=EarlyStopping(rule=early),
                      at_maximum=AtMaximum.truncate, surplus=True, stop_at_once=True).replace(**changes)


def sockeye(width: int, alpha: float = 1, beta: float = 0, **changes: Any) -> BeamSearch:
    """Sockeye 3's BeamSearch."""
    return BeamSearch(width=width, penalty=LengthPenalty(kind=LengthPenaltyKind.gnmt, alpha=alpha, beta=beta),
                      finished=FinishedHypotheses.stay).replace(**changes)


def marian(width: int, normalize: float = 0, word_penalty: float = 0, **changes: Any) -> BeamSearch:
    """Marian's beam search."""
    return BeamSearch(width=width, penalty=LengthPenalty(alpha=normalize, word_penalty=word_penalty),
                      finished=FinishedHypotheses.shrink, at_maximum=AtMaximum.truncate).replace(**changes)


def varstream(width: int, threshold: float = 1.5, per_parent: int = 5, **changes: Any) -> BeamSearch:
    """The variable-width beam of VAR-STREAM and VAR-BATCH (Yang et al. 2020)."""
    return BeamSearch(width=width, pruning=Pruning(absolute_threshold=threshold, max_per_parent=per_parent),
                      finished=FinishedHypotheses.leave_first, at_maximum=AtMaximum.force_eos_free).replace(**changes)

# SPDX-License-Identifier: Apache-2.0
# Written by scripts/python-options from the C++ headers; do not edit.
"""The options of searches, with the names, the defaults and the descriptions of the C++ library."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field
from typing import ClassVar

from ._search import Search
from ._watermark import WatermarkKey

UNLIMITED = 2**31 - 1
"""Of a length: until the model's slots are full. Of a number: as many as there are."""


class LengthPenaltyKind(enum.IntEnum):
    """What the sum of log-probabilities is divided by."""

    none = 0
    """Score = log_prob - word_penalty * length."""
    average = 1
    """That / length^alpha (fairseq, CTranslate2, Marian, Hugging Face; alpha = 1: the mean per token)."""
    gnmt = 2
    """That / ((beta + length) / (beta + 1))^alpha (Wu et al. 2016, eq. 14; Sockeye)."""


class EarlyStoppingRule(enum.IntEnum):
    """When the search ends, besides at the maximum length."""

    count = 0
    """When `finished` hypotheses have ended."""
    top_ended = 1
    """When the best candidate of some step was an end and n_best have ended (CTranslate2 without penalty)."""
    exact = 2
    """When no live hypothesis can still enter the n-best list. Needs scores that only fall: see LengthPenalty."""
    heuristic = 3
    """When width have ended and the best live one, scored as if it ended now, is no better than the worst of the width
    best finished ones (Hugging Face, early_stopping = False).
    """
    never_early = 4
    """The same, but scored at the maximum length where alpha > 0 (Hugging Face, early_stopping = "never")."""


class FinishedHypotheses(enum.IntEnum):
    """What happens to a hypothesis that ends while its beam goes on."""

    set_aside = 0
    """Eos among the `width` best candidates goes to a list, and the beam is refilled (fairseq, CTranslate2, Hugging Face).
    """
    shrink = 1
    """It leaves, and its place stays empty (Marian)."""
    stay = 2
    """It keeps its place and competes with its final score (Sockeye)."""
    leave_first = 3
    """It stays and competes with its log_prob; once no live hypothesis is better, it leaves and its place stays empty
    (VAR-STREAM).
    """


class AtMaximum(enum.IntEnum):
    """What happens to hypotheses that are still alive at the maximum length."""

    force_eos = 0
    """Their last token is eos, with its own log-probability (fairseq, Sockeye)."""
    force_eos_free = 1
    """Their last token is eos, at no cost (VAR-STREAM)."""
    truncate = 2
    """They join the finished ones, without eos (CTranslate2, Hugging Face, Marian)."""
    best_unfinished = 3
    """The best of them joins the finished ones, without eos."""
    drop = 4
    """They are discarded."""


class Stage(enum.IntEnum):
    """When edits and `only` are applied."""

    before_softmax = 0
    """To the scores: the remaining probabilities sum to one."""
    after_softmax = 1
    """To the log-probabilities, which are not normalised again. Tokens are still ranked by scores: `add` is added to the
    score and rounded there; a penalised log-probability is converted back to a score.
    """


class Proposal(enum.IntEnum):
    """How ParticleSample draws a particle's next token. Each is corrected by weights, so that all of them sample the same
    distribution.
    """

    model = 0
    """From the model; the potential is asked about the token drawn. A token that is impossible ends the particle."""
    rejection = 1
    """From the model, until a token is possible: adaptive weighted rejection sampling. The potential is asked about 1 +
    `looks` tokens, and those rejected.
    """
    product = 2
    """From the product of model and potential, as masking does: the potential is asked about all tokens, or only for the
    set of those that may follow.
    """


class TransducerOrder(enum.IntEnum):
    """Which hypotheses of a TransducerBeam are compared with each other."""

    frames = 0
    """Those at the same frame (time-synchronous; Graves 2012): about two steps a frame."""
    alignment = 1
    """Those of equally many frames and labels together (ALSD; Saon et al. 2020): a step for each of them."""


class WatermarkScheme(enum.IntEnum):
    """How a token carries a mark."""

    none = 0
    gumbel = 1
    """The key's numbers take the place of the Gumbel noise by which a token is drawn (Aaronson 2022). Averaged over keys,
    a token has the model's own distribution.
    """
    synthid = 2
    """A tournament of `depth` rounds by the key's bits (SynthID-Text: Dathathri et al. 2024, two leaves, not distorting).
    Averaged over keys, a token has the model's own distribution.
    """
    red_green = 3
    """A share `gamma` of the tokens is green, and `delta` is added to their logits (Kirchenbauer et al. 2023). Changes the
    distribution.
    """
    sbw = 4
    """The same with green tokens by Ceppi and Sanchez 2026 (2609.03844), anchored minhash. Changes the distribution."""


class WatermarkPrf(enum.IntEnum):
    """The pseudorandom function that turns key, context and token into a number."""

    sluice = 0
    """HMAC-SHA256 of the context, then the library's own noise of each token: the expander draws, so that a mark costs
    nothing more per token of the vocabulary.
    """
    philox = 1
    """vLLM's "philox" (philox4x32-10-v1); the key is one word."""
    hmac_sha256 = 2
    """vLLM's "hmac_sha256" (hmac-sha256-v1), an HMAC for every token looked at; up to four words."""
    synthid_text = 3
    """google-deepmind/synthid-text's; the key has a word for each round of the tournament."""
    hugging_face = 4
    """That of transformers' SynthIDTextWatermarkLogitsProcessor (sampling_table_size 65536, seed 0). Its bits depend on 16
    bits of a hash, so that different contexts share them: only to read its marks.
    """


@dataclass
class LengthLimits:
    """Bounds on the number of generated tokens of one sentence. A forced prefix counts, the prompt does not."""

    min: int = 0
    """Minimum number generated before eos (eos is forbidden until then); >= 0."""
    max: int = 256
    """Maximum number generated, eos included; >= 0. (fairseq's max_len excludes eos: this is one more.)."""
    min_factor: float = 0
    """> 0: also at least this times the source's length, rounded up."""
    max_factor: float = 0
    """> 0: also at most this times the source's length, rounded up, plus."""
    extra: int = 0
    """This."""

    _options: ClassVar[dict[str, str]] = {"min": "min_length", "max": "max_length", "min_factor": "min_factor", "max_factor": "max_factor", "extra": "extra"}


@dataclass
class LengthPenalty:
    """The final score by which hypotheses are ranked. Lengths include the forced prefix and the final eos."""

    kind: LengthPenaltyKind | str = LengthPenaltyKind.average
    """See LengthPenaltyKind."""
    alpha: float = 1
    """0 = none; larger favours longer outputs; negative favours shorter ones."""
    beta: float = 5
    """For gnmt; > -1."""
    word_penalty: float = 0
    """Per token; negative rewards length."""

    _options: ClassVar[dict[str, str]] = {"kind": "penalty", "alpha": "alpha", "beta": "beta", "word_penalty": "word_penalty"}
    Kind: ClassVar[type[LengthPenaltyKind]] = LengthPenaltyKind


@dataclass
class Pruning:
    """Which candidates a beam drops even though it has room (Freitag and Al-Onaizan 2017, "Beam Search Strategies for
    Neural Machine Translation"). All are off by default: the beam has a fixed width. A candidate exactly at a threshold
    is dropped.
    """

    absolute_threshold: float = math.inf
    """Keep log_prob > best - this, where best is the best of the kept candidates and of the finished hypotheses (an empty
    output does not count); >= 0.
    """
    relative_threshold: float = 0
    """Keep probability > this times that of the same best; in [0, 1)."""
    relative_local_threshold: float = 0
    """Keep candidates whose last token alone is more than this times as probable as the most probable last token of all
    candidates; in [0, 1).
    """
    max_per_parent: int = UNLIMITED
    """Maximum number of children of one hypothesis, finished ones included; >= 1."""
    below_finished: float = math.inf
    """Drop hypotheses more than this below the best finished one, as Sockeye's beam_prune and Post and Vilar (2018,
    section 6.3) do: compares the log_prob of a live one, or the score of a finished one, with the best score of a
    finished one. With a length penalty that is nearly a bound on log_prob itself; >= 0.
    """

    _options: ClassVar[dict[str, str]] = {"absolute_threshold": "absolute_threshold", "relative_threshold": "relative_threshold", "relative_local_threshold": "relative_local_threshold", "max_per_parent": "max_per_parent", "below_finished": "below_finished"}


@dataclass
class EarlyStopping:
    """When a sentence ends before its beam is empty and before the maximum length."""

    rule: EarlyStoppingRule | str = EarlyStoppingRule.count
    """See EarlyStoppingRule."""
    patience: float = 1
    """(CTranslate2; Kasai et al. 2022); rounded, at least 1."""
    ended_first: bool = False
    """As Hugging Face before 4.50, and its group beam search: heuristic and never_early compare the best candidate of the
    step, even if it has just ended; at the maximum length the places of those that end are filled as at any other, and
    the live hypotheses join only if no rule stops the search.
    """

    _options: ClassVar[dict[str, str]] = {"rule": "early_stopping", "patience": "patience", "ended_first": "ended_first"}
    Rule: ClassVar[type[EarlyStoppingRule]] = EarlyStoppingRule


@dataclass
class Penalties:
    """Llama.cpp's penalties sampler (llama_sampler_init_penalties). If a token occurs n >= 1 times in the window, its
    score is divided by `repetition` (multiplied if it is not positive; Keskar et al. 2019), then reduced by n *
    frequency + presence. OpenAI's service and vLLM have the same frequency and presence penalties, over the whole
    output and without the prompt. Without prompt and window, `repetition` alone is RepetitionPenalty. Off by default.

    O(w log w) per line, with w the number of tokens in the window; one edit per distinct token; more than 64 edits cost
    a copy of the line.
    """

    repetition: float = 1
    """> 0; 1 = off; llama.cpp: penalty_repeat."""
    frequency: float = 0
    """Finite; llama.cpp: penalty_freq."""
    presence: float = 0
    """Finite; llama.cpp: penalty_present."""
    window: int = 64
    """Number of most recent tokens to look at; 0 = off; -1 = all; llama.cpp: penalty_last_n."""
    prompt: bool = True
    """Whether to include the prompt, as llama.cpp does."""

    _options: ClassVar[dict[str, str]] = {"repetition": "repetition_penalty", "frequency": "frequency_penalty", "presence": "presence_penalty", "window": "penalty_window", "prompt": "penalty_prompt"}


@dataclass
class NoRepeatNgram:
    """No n-gram occurs twice in one output, forced prefix included (Paulus et al. 2017; no_repeat_ngram_size)."""

    n: int = 0
    """0 = off; 1: no token twice."""

    _options: ClassVar[dict[str, str]] = {"n": "no_repeat_ngram"}


@dataclass
class Watermark:
    """How tokens are marked. Sample, acceptance::Sampling, acceptance::Rejection and the rule GreenList take one, and
    detect_watermark() takes the same. Off by default.

    The mark of a token depends on key, token and context: the `width` tokens of the output before it, a forced prefix
    included and the prompt not. A context that has occurred in this output before marks nothing: there a token is drawn
    as without a watermark, since the same numbers twice would change the distribution, and be no new evidence. Forced
    tokens are not marked, and where only one token is possible nothing can be.
    """

    scheme: WatermarkScheme | str = WatermarkScheme.none
    """See WatermarkScheme."""
    prf: WatermarkPrf | str = WatermarkPrf.sluice
    """See WatermarkPrf."""
    key: WatermarkKey | None = None
    """The secret."""
    width: int = 4
    """Of the context, in [1, 16]; with more, an edit destroys the marks of more tokens."""
    second: float = 0
    """Gumbel: the share of tokens that are drawn with a second key, derived from the first, so that outputs of one prompt
    vary (vLLM's dual_key_gumbel, alpha); 0, or in [0.01, 0.99].
    """
    gamma: float = 0.25
    """red_green, sbw: the share of green tokens, in (0, 1)."""
    delta: float = 2
    """red_green, sbw: added to the logits of green tokens; > 0."""
    depth: int = 30
    """Synthid: rounds of the tournament, in [1, 32]; with the last two prfs the key's words count."""

    _options: ClassVar[dict[str, str]] = {"prf": "prf", "width": "width", "second": "second", "gamma": "gamma", "delta": "delta", "depth": "depth"}


@dataclass(kw_only=True)
class Greedy(Search):
    """Takes the best token at every step (ties: the lower token) until eos or the maximum length; an output cut at the
    maximum length is not `finished`. One slot, one row per step.

    The score is log_prob, the plain sum, since nothing is ranked by it. Engines whose greedy search is a beam of one
    divide it by the length (CTranslate2: presets::ctranslate2_greedy; fairseq): set `penalty` to make scores comparable
    with a beam's.
    """

    length: LengthLimits = field(default_factory=LengthLimits)
    scores: bool = True
    """False: no softmax; log-probabilities and score are then NaN, and a rule's penalties (not its bans) act on the
    model's scores instead of on log-probabilities.
    """
    penalty: LengthPenalty = field(default_factory=lambda: LengthPenalty(kind=LengthPenaltyKind.none))
    """For the score."""
    stage: Stage | str = Stage.after_softmax
    """When eos (output too short) and tokens never generated are forbidden."""

    _options: ClassVar[dict[str, str]] = {"scores": "scores", "stage": "stage"}
    _kind: ClassVar[str] = "greedy"


@dataclass(kw_only=True)
class BeamSearch(Search):
    """Keeps the `width` best hypotheses of every length. There is one algorithm; engines differ in its options
    (presets.hpp). The default is fairseq's beam search: the width is fixed, finished hypotheses are set aside, and the
    search ends when `width` hypotheses have finished.

    At every step, the candidates are the best tokens of every live hypothesis, plus the finished hypotheses that are
    still in the beam. At most `candidates` of them are considered, in order of log-probability. Ties go to the better-
    ranked parent, then to the parent's own order (higher score, then lower token). Decisions for one sentence never
    depend on another sentence.

    A step costs O(width^2 log width) on top of the model; a fork costs one node. Nothing is allocated once warm.
    """

    width: int = 5
    """Maximum number of live hypotheses; >= 1."""
    n_best: int = 1
    """Maximum number of hypotheses returned; in [1, width], or up to the number that early_stopping.patience lets finish.
    """
    length: LengthLimits = field(default_factory=LengthLimits)
    penalty: LengthPenalty = field(default_factory=LengthPenalty)
    pruning: Pruning = field(default_factory=Pruning)
    finished: FinishedHypotheses | str = FinishedHypotheses.set_aside
    """See FinishedHypotheses."""
    early_stopping: EarlyStopping = field(default_factory=EarlyStopping)
    at_maximum: AtMaximum | str = AtMaximum.force_eos
    """See AtMaximum."""
    surplus: bool = False
    """set_aside, Rule::count: whether all hypotheses that end in the last step count, or only as many as the rule still
    needs, best first.
    """
    prefix_scored: bool = True
    """Whether the log-probabilities of a forced prefix count."""
    guard_prefix: bool = False
    """set_aside: right after a forced prefix only the best candidate may end; any other that ends is dropped, and its
    place stays empty for that step (CTranslate2).
    """
    one_end: bool = False
    """Of a hypothesis and its several end tokens only the best end is a candidate, so that no two hypotheses differ in the
    end token alone.
    """
    candidates: int = 0
    """Considered per step; 0 = as many as `finished` needs to keep the beam full."""
    sibling_penalty: float = 0
    """The i-th best child of a parent (from 0) is ranked i times this lower, and so are its own children (Li and Jurafsky
    2016: diverse beams); >= 0. Scores do not include it.
    """
    stop_at_once: bool = False
    """A candidate that completes a stop of a processor (StopSequences) ends in that step, as one in eos does, and its
    place is filled (Hugging Face); else it keeps its place until the next. Not beside processors that add to scores
    (Bias).
    """
    stage: Stage | str = Stage.after_softmax
    """When eos (output too short) and tokens never generated are forbidden."""

    _options: ClassVar[dict[str, str]] = {"width": "width", "n_best": "n_best", "finished": "finished", "at_maximum": "at_maximum", "surplus": "surplus", "prefix_scored": "prefix_scored", "guard_prefix": "guard_prefix", "one_end": "one_end", "candidates": "candidates", "sibling_penalty": "sibling_penalty", "stop_at_once": "stop_at_once", "stage": "stage"}
    _kind: ClassVar[str] = "beam"


@dataclass(kw_only=True)
class DiverseBeamSearch(Search):
    """Several beam searches of one sentence, one after the other at every step. A token costs each group `penalty` for
    every live hypothesis of an earlier group that has just taken it, also in the step in which that group ends
    (Vijayakumar et al. 2018, Hamming diversity; cumulative, as in fairseq and Hugging Face: log_prob and score of a
    hypothesis include the penalties of its tokens). The first group is the plain beam search of its width. Each group
    ends and keeps its finished hypotheses independently.

    Costs as much as one BeamSearch of the total width, with longer lists: group g asks for g * width more tokens.
    """

    search: BeamSearch = field(default_factory=BeamSearch)
    """For each group; without effect: stop_at_once."""
    groups: int = 2
    """>= 1."""
    penalty: float = 0.5
    """>= 0; 0: every group finds the same hypotheses."""
    n_best: int = 1
    """Across all groups; in [1, groups * width]."""
    padding: int = -1
    """What a group that is over takes at every further step, `width` times, as in Hugging Face, where its lines are
    padded; -1: nothing.
    """

    _options: ClassVar[dict[str, str]] = {"groups": "groups", "penalty": "diversity_penalty", "n_best": "n_best", "padding": "padding"}
    _kind: ClassVar[str] = "diverse"


@dataclass(kw_only=True)
class Sample(Search):
    """Draws outputs token by token from p(v) ~ exp(x(v) / temperature), where x are the model's scores, optionally
    restricted by its samplers to a part of the tokens, until eos or the maximum length. An output cut at the maximum
    length is not `finished`.

    The samplers act in `order`, each on the renormalised result of the one before. At least one token stays. Of equally
    probable tokens the lower one ranks first. A cut behind nothing but the temperature is made on the line, and of a
    large vocabulary nothing else is read. XTC, DynamicTemperature and AdaptiveP need all remaining tokens: without a
    cut before them, that is the whole line, sorted, O(V log V) per token; so does `typical` with `min_keep`.

    Tokens never generated, and eos while the output is too short, are forbidden before the softmax: the remaining
    tokens are normalised. `log_prob` and `score` are the log-probability of the output under that model, before any
    truncation. They include the temperature only if no active cut comes before it in `order` and it is not dynamic.

    Samplers that look at the tokens generated so far are logits processors: Penalties, Dry, TokenBias. Presets:
    presets.hpp.

    The n-th token of sample i of a sentence is the argmax of log p(v) + gumbel(noise(seed, i, n), v) over the remaining
    tokens. So the same seed gives the same text in any batch and under any schedule. A sample does not depend on the
    number of samples, and continues in the same way if its beginning is given as a prefix (except that Mirostat and
    AdaptiveP do not take a prefix into account).

    With a Watermark the argmax is over the key's numbers, or probabilities are changed by them, after all samplers;
    log_prob stays the model's. The scheme gumbel with the function `sluice` draws in the expander as without a
    watermark; any other needs a list of all remaining tokens: without truncation that is the whole line, sorted, O(V
    log V). Repeated contexts are looked for in the output, O(length) per token.

    The samples of one sentence share the prompt: it is run once, in one slot. One row per step for each sample that has
    not ended. Without truncation the expander draws; but several samples draw their first token from a list of the
    whole line, sorted once, O(V log V).
    """

    temperature: float = 1
    """> 0; the nearer to 0, the nearer to Greedy."""
    top_k: int = 0
    """The k most probable (Fan, Lewis and Dauphin 2018); 0 = all."""
    top_p: float = 1
    """The most probable that together hold this much (Holtzman et al. 2020); in (0, 1]; 1 = all."""
    min_p: float = 0
    """All that are at least this times as probable as the best (Nguyen et al. 2024); in [0, 1]; 0 = all."""
    typical: float = 1
    """Those whose information is nearest to the entropy and that together hold this much (Meister et al. 2023); in (0, 1];
    1 = all.
    """
    top_n_sigma: float = 0
    """Only tokens whose score is at most this many standard deviations of the line's scores below the best (Tang et al.
    2024; as llama.cpp's top-n-sigma); 0 = off.
    """
    min_keep: int = 1
    """Minimum number of tokens that top_p, min_p, typical and xtc leave (Hugging Face's min_tokens_to_keep); not more than
    top_k.
    """
    samples: int = 1
    """Per sentence; >= 1. Returned in their order; a sample that has no possible token left is omitted."""
    distinct: bool = False
    """Drop duplicates, and sort by log_prob (ties by tokens): up to `samples` different hypotheses, best first."""
    length: LengthLimits = field(default_factory=LengthLimits)

    _options: ClassVar[dict[str, str]] = {"temperature": "temperature", "top_k": "top_k", "top_p": "top_p", "min_p": "min_p", "typical": "typical", "top_n_sigma": "top_n_sigma", "min_keep": "min_keep", "samples": "samples", "distinct": "distinct"}
    _kind: ClassVar[str] = "sample"


@dataclass(kw_only=True)
class StochasticBeam(Search):
    """Draws `width` different outputs. The first is drawn from the model; each further one as if the earlier ones were
    impossible (Kool, van Hoof and Welling 2019, "Stochastic Beams and Where to Find Them").

    Every output y has a perturbed log-probability G(y) = log p(y) + a Gumbel variate of its own; the outputs with the k
    largest are the sample. They are found top-down, since the largest G among the completions of a partial output S
    with log_prob f(S) is itself distributed as f(S) + Gumbel. The children's values are drawn, then shifted so that
    their maximum equals the parent's value,

    G~(S') = -log(exp(-G(S)) - exp(-Z) + exp(-G(S'))), Z = max over the children S' of G(S').

    Computed as in the paper's appendix B. A beam ranked by G~ never loses one of the k largest.

    Hypotheses are sorted by G, which is their `score`; log_prob is that of the model at this temperature. The noise
    depends on the sentence's seed and a hypothesis's own tokens, not on rank or slot: the same seed gives the same
    sample in any batch, and a narrower beam gives the first hypotheses of a wider one. Tokens never generated, and eos
    while the output is too short, are forbidden before the softmax: the distribution is that of the restricted model.
    An output cut at the maximum length is an outcome like any other, and not `finished`. A forced prefix counts in
    log_prob and score.

    Averages over the sample need weights, and the weights need a threshold: the (k + 1)-th largest G. Search with width
    k + 1 and call importance_log_weights(hypotheses, k).

    A step costs what a BeamSearch step costs, plus the noise: a hash for each of `width` times V tokens.
    """

    width: int = 5
    """Outputs drawn; fewer if the model has fewer; >= 1."""
    temperature: float = 1
    """The model's scores are divided by it; > 0; larger: more diverse."""
    length: LengthLimits = field(default_factory=LengthLimits)

    _options: ClassVar[dict[str, str]] = {"width": "width", "temperature": "temperature"}
    _kind: ClassVar[str] = "stochastic"


@dataclass(kw_only=True)
class Blockwise(Search):
    """Predict, verify, accept (Stern, Shazeer and Uszkoreit 2018). Every round feeds the model, as one row, its own last
    token followed by a proposer's guesses, and looks at all lines. Guesses are kept up to the first that the rule
    rejects; the model's own token takes its place. The KV cache is rolled back by the next row's length. One model call
    per round, for any number of sentences; each sentence has its own accepted length.

    The model brings proposers (Speculated: DraftModel, DraftHeads, PromptLookup, SuffixDecoding), or has `propose`
    itself. Without one this is greedy decoding (or sampling) in steps of one token. Guesses outside the vocabulary, or
    beyond the number requested, are dropped, along with all that follow them.

    `block` counts as in the paper: the model's own token plus block - 1 guesses. A round settles 1 to `block` tokens;
    see Hypothesis::blocks.

    Guesses may form a tree (`branches` > 1; SpecInfer: Miao et al. 2024; Medusa: Cai et al. 2024; EAGLE-2: Li et al.
    2024): the rule then walks down the tree to the child that the model itself chooses. The whole tree is verified in
    one call: as one row where the model takes trees, otherwise with a fork for each path. If the accepted path is not
    the first, its tokens are fed again in the next round, before the guesses. With a rule that draws
    (acceptance::Rejection), the proposer is asked to draw its guesses.
    """

    block: int = 4
    """Maximum number of tokens verified in a round on one path; >= 1; 1: no guesses."""
    length: LengthLimits = field(default_factory=LengthLimits)
    adaptive: bool = False
    """Choose the block size of each round, up to `block`, by how many of this sentence's guesses have been right so far.
    """
    cost: float = 0
    """Adaptive: the cost of drafting and verifying one guess per sentence, as a fraction of a step; > 0, or 0: the decoder
    measures it at run time. A rule that is relaxed, or draws, needs a fixed value, since its output depends on the
    block sizes.
    """
    branches: int = 1
    """Maximum number of paths of guesses per round; >= 1. The sentence has as many slots."""
    nodes: int = 0
    """Maximum number of guesses per round, in a tree or a chain; 0: (block - 1) * branches."""

    _options: ClassVar[dict[str, str]] = {"block": "block", "adaptive": "adaptive", "cost": "cost", "branches": "branches", "nodes": "nodes"}
    _kind: ClassVar[str] = "blockwise"


@dataclass
class Endpoint:
    """When a search over frames ends an utterance by itself, for sound that does not end. Each rule is a number of frames;
    0: off. They look at the best hypothesis, after every frame, so where an utterance ends does not depend on how its
    frames come. The rules of Kaldi's online endpoint detection (and of sherpa-onnx: rule1, rule2, rule3) with silence
    counted in frames without a token.
    """

    silence: int = 0
    """So many frames since its last token ended."""
    nothing: int = 0
    """So many frames, and it has no token."""
    longest: int = 0
    """So many frames at most."""

    _options: ClassVar[dict[str, str]] = {"silence": "silence", "nothing": "nothing", "longest": "longest"}


@dataclass(kw_only=True)
class CtcBeamSearch(Search):
    """Connectionist temporal classification: the most probable texts of a model that scores frames (CtcFrames), each with
    the probability of all of its alignments together (prefix beam search, Hannun et al. 2014, "First-Pass Large
    Vocabulary Continuous Speech Recognition using Bi-Directional Recurrent DNNs"; Graves 2012). A text is the labels of
    the frames, equal neighbours joined and blanks dropped.

    Of a Hypothesis, `log_prob` is the sum over the alignments that the beam has kept, at full width that over all (with
    `viterbi`, that of the best one); `score` adds what rule and language model give; `frames` has the frames of each
    token on the best alignment, and `log_probs` the log-probability of each token at its best frame, as its confidence:
    unlike elsewhere they do not add up to log_prob.

    A frame costs O(width * log width), and the candidates that have a chance; nothing is allocated once warm. The
    memory grows with the text, not with the frames. Rows of up to `block` frames where the model takes blocks. There is
    neither a prompt nor a forced prefix.
    """

    width: int = 32
    """Prefixes kept at every frame; >= 1."""
    n_best: int = 1
    """Hypotheses returned, at most; in [1, width]."""
    top_tokens: int = 64
    """Labels that may stand on a frame: the most probable, and the blank; 0: all."""
    token_floor: float = -math.inf
    """Labels less probable than this on a frame do not stand there (pyctcdecode: token_min_logp), except for the best. A
    log-probability; -infinity: no limit.
    """
    threshold: float = math.inf
    """A prefix that scores so much less than the best is dropped (beam_prune_logp, beam threshold). >= 0; infinity: none
    is.
    """
    skip_blank: float = 2
    """Frames on which the blank has at least this probability are taken as blanks alone, which costs next to nothing. Over
    1: none.
    """
    block: int = 64
    """Frames in a row of the model, at most; >= 1."""
    endpoint: Endpoint = field(default_factory=Endpoint)
    """Where an utterance ends, although frames go on."""
    viterbi: bool = False
    """A text counts as its best alignment alone, not as all together (flashlight: without log_add)."""

    _options: ClassVar[dict[str, str]] = {"width": "width", "n_best": "n_best", "top_tokens": "top_tokens", "token_floor": "token_floor", "threshold": "threshold", "skip_blank": "skip_blank", "block": "block", "viterbi": "viterbi"}
    _kind: ClassVar[str] = "ctc"


@dataclass(kw_only=True)
class TransducerGreedy(Search):
    """Takes the best token of a transducer (Transducer: RNN-T, TDT, multi-blank) at every step, until the alignment has
    passed the last frame, or an Endpoint is reached (ties: the lower token). One slot (with FusionWeights, three), one
    row of one token a step, a step for each frame and each label.

    `log_prob` is that of the one alignment, with its blanks; Hypothesis::log_probs and `frames` are its labels'. Rule,
    language model, requests and frames that come while they are decoded: see TransducerBeam. An output that the rule
    does not let end where the frames end is returned all the same, and not `finished`.
    """

    most_symbols: int = 10
    """Labels at one frame, at most; then only blanks may follow. >= 1."""
    most_labels: int = 0
    """Labels of an output, at most; 0: no other bound."""
    candidates: int = 8
    """Labels of a line to which a language model is applied; >= 1."""
    endpoint: Endpoint = field(default_factory=Endpoint)
    """Where an utterance ends, although frames go on."""

    _options: ClassVar[dict[str, str]] = {"most_symbols": "most_symbols", "most_labels": "most_labels", "candidates": "candidates"}
    _kind: ClassVar[str] = "transducer_greedy"


@dataclass(kw_only=True)
class TransducerBeam(Search):
    """Finds the most probable outputs of a transducer (Transducer: RNN-T, TDT, multi-blank). Hypotheses of equal labels at
    equal frames are one, and its probability is the sum of theirs. So `log_prob` is the logarithm of the sum over all
    alignments that were kept; if `width` and `candidates` exclude nothing, that is the probability of the output.

    An output ends when its alignment has passed the last frame, or at an Endpoint. Blanks are no part of it, and
    invisible to rule and language model: both see outputs, of the vocabulary TransducerTokens::outputs(), where the
    blank stands for the end. Request::processors are refused: they would see alignments.

    Frames may come while they are decoded (Decoder::append). The result is that of the whole at once, bit for bit: a
    frame is read once so many frames have come after it as a token moves on at most (TransducerTokens::most_frames(): 1
    for an RNN-T), or nothing more will come. Memory grows with the outputs, not with the frames.

    Hypothesis::log_probs and `frames` are of the output's likeliest alignment: the log-probability of each label where
    it was written (so they do not add up to log_prob, which has blanks and other alignments too), and the frames that
    it lasts, at least one. log_prob and score hold what rule and language model add. Result::frames says how many
    frames it is of. A request can have no prompt and no prefix; Request::confidence tells nothing of use. A step has up
    to `width` rows of one token, and costs O(width * candidates * log).
    """

    width: int = 10
    """Hypotheses kept at a frame; >= 1."""
    n_best: int = 1
    """Hypotheses returned; in [1, width]."""
    candidates: int = 0
    """Labels (with durations) of a line that are considered, the likeliest ones; 0: as many as `width`."""
    most_symbols: int = 10
    """Labels at one frame, at most; then only blanks may follow. TransducerOrder::alignment: so many times the frames up
    to there in all. >= 1.
    """
    most_labels: int = 0
    """Labels of an output, at most; 0: no other bound."""
    threshold: float = math.inf
    """Hypotheses so much less probable (natural logarithm) than the best they are compared with are dropped; > 0."""
    within: float = math.inf
    """Labels so much less probable than the line's best token are not considered (modified AES: gamma); > 0."""
    order: TransducerOrder | str = TransducerOrder.frames
    """See TransducerOrder."""
    endpoint: Endpoint = field(default_factory=Endpoint)
    """Where an utterance ends, although frames go on; not with TransducerOrder::alignment."""
    penalty: LengthPenalty = field(default_factory=lambda: LengthPenalty(kind=LengthPenaltyKind.none))
    """For the score: labels count."""

    _options: ClassVar[dict[str, str]] = {"width": "width", "n_best": "n_best", "candidates": "candidates", "most_symbols": "most_symbols", "most_labels": "most_labels", "threshold": "threshold", "within": "within", "order": "order"}
    _kind: ClassVar[str] = "transducer"


@dataclass(kw_only=True)
class ParticleSample(Search):
    """Draws outputs from p(y) f(y) / Z, where p is the model and f a Potential: for an Indicator, the model's distribution
    restricted to the accepted outputs, which masking (Sample with a Structure) does not give. A population of
    particles, each an output in the making with a weight; they are the slots of one sentence. Sequential Monte Carlo
    (Lew et al. 2023, "Sequential Monte Carlo Steering of Large Language Models using Probabilistic Programs"; Loula et
    al. 2025): each token multiplies the weight by what its proposal left out and by the change of the potential. When
    the effective number of particles falls below a share of them, they are resampled.

    Hypothesis::weight estimates the probabilities of outputs, with an error that falls as `particles` rises;
    Result::log_z estimates log Z, and exp(log_z) is unbiased for any number of particles. For an Indicator, Z is the
    probability that the model by itself gives an accepted output. log_prob is the model's, at this temperature; score =
    log(weight).

    The model is the one of Sample: tokens never generated, and eos while the output is too short, are forbidden before
    the softmax; a rule around this search changes the model that is sampled. An output cut at the maximum length is an
    outcome, of which log_final decides. A forced prefix is a condition: Z is of what follows it. A result depends on
    the sentence, its options and its seed alone.

    `resample_below` = 0 is importance sampling, and with Proposal::model and an Indicator plain rejection sampling:
    weights are equal, and particles that fail have none.

    One slot for each particle, and one row a step for each that goes on. With Proposal::rejection, lists of `tries`
    tokens; product lists all tokens that may follow, O(V) for each row. States of the potential are copied at
    resampling.
    """

    particles: int = 16
    """>= 1."""
    proposal: Proposal | str = Proposal.rejection
    """How tokens are drawn."""
    resample_below: float = 0.5
    """Share of `particles`; in [0, 1]; 0: never."""
    tries: int = 64
    """Of rejection: tokens tried at most; then the particle ends, and the weights of the others make up for it; >= 1.
    """
    looks: int = 1
    """Of rejection: tokens tried after the one that is drawn, for its weight. More: less variance; >= 1."""
    temperature: float = 1
    """The model's scores are divided by it; > 0."""
    distinct: bool = True
    """Equal outputs are one hypothesis, with the sum of their weights, and the heaviest is first (ties by tokens); false:
    the particles in their order, but those without weight.
    """
    length: LengthLimits = field(default_factory=LengthLimits)

    _options: ClassVar[dict[str, str]] = {"particles": "particles", "proposal": "proposal", "resample_below": "resample_below", "tries": "tries", "looks": "looks", "temperature": "temperature", "distinct": "distinct"}
    _kind: ClassVar[str] = "particles"

# SPDX-License-Identifier: Apache-2.0
"""generate(): the arguments of Hugging Face's `generate`."""

from __future__ import annotations

import contextlib
import importlib
import math
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from . import _logits as logits
from . import presets
from ._decode import Decoder, Hypothesis, Request, Result
from ._language import NativeModel
from ._library import ArgumentError, Error, need_numpy, whole
from ._model import Vocabulary, demand_model
from ._processed import Drafts, Guidance, Processed, Renamed, vocabulary_eos
from ._search import Search
from .options import BeamSearch, Blockwise, DiverseBeamSearch, EarlyStopping, EarlyStoppingRule, Greedy, LengthLimits, NoRepeatNgram, Penalties, Sample, Stage

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._language import AnyModel

# Arguments of transformers that nothing here does: the values that ask for nothing (transformers 4.50), and what does it another way.
_UNSUPPORTED: dict[str, tuple[list[Any], str]] = {
    "cache_implementation": ([None], "the model has its own cache"),
    "constraints": ([None], "force_words_ids, or decode() with BeamSearch(demanded=...)"),
    "custom_generate": ([None], "decode() with a search of its own"),
    "decoder_attention_mask": ([None], "there is no padding: give a list of token lists"),
    "dola_layers": ([None], "logits_processor, or let the model's step answer with such scores"),
    "inputs_embeds": ([None], "let the model's start read them as its source"),
    "low_memory": ([None, False], "batch= bounds how many are decoded together"),
    "output_attentions": ([None, False], "the model has them: keep them in its step"),
    "output_hidden_states": ([None, False], "the model has them: keep them in its step"),
    "penalty_alpha": ([None], "let the model's step answer with such scores, or sample: do_sample=True"),
    "return_dict_in_generate": ([None, True], "a Result is returned: .tokens, or [h.tokens for h in result]"),
    "synced_gpus": ([None, False], "the model's step may do that"),
    "token_healing": ([None, False], "cut the prompt before its last token"),
    "use_cache": ([None, True], "the model decides by what it keeps in a slot"),
}
# There is no padding; stop strings need the model's token_bytes instead of a tokenizer; a model is given tokens alone.
_IGNORED = ("tokenizer", "token_type_ids", "negative_prompt_attention_mask", "assistant_tokenizer")
# Members of a GenerationConfig that say how an engine works, and never what comes out.
_OF_THE_ENGINE = ("transformers_version", "compile_config", "disable_compile", "return_legacy_cache", "cache_config", "prefill_chunk_size",
                  "is_assistant", "num_assistant_tokens_schedule", "assistant_confidence_threshold", "assistant_early_exit",
                  "assistant_lookbehind", "target_lookbehind", "continuous_batching_config", "trust_remote_code")
_SAMPLING = {"temperature": 1.0, "top_k": 50, "top_p": 1.0, "min_p": None, "typical_p": 1.0, "epsilon_cutoff": 0.0, "eta_cutoff": 0.0,
             "top_h": None}


class GenerateArguments(TypedDict, total=False):
    """The keyword arguments of generate(); docs/python.md says what each does."""

    input_ids: Any
    attention_mask: Any
    token_type_ids: Any
    decoder_input_ids: Any
    decoder_attention_mask: None
    inputs_embeds: None
    bos_token_id: int | None
    eos_token_id: int | Sequence[int] | None
    pad_token_id: int | None
    decoder_start_token_id: int | Sequence[int] | None
    generation_config: Any
    max_length: int | None
    max_new_tokens: int | None
    min_length: int | None
    min_new_tokens: int | None
    max_time: float | None
    stop_strings: str | Sequence[str] | None
    stopping_criteria: Any
    tokenizer: Any
    streamer: Any
    do_sample: bool | None
    num_beams: int | None
    num_return_sequences: int | None
    early_stopping: bool | Literal["never"] | None
    length_penalty: float | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    typical_p: float | None
    top_h: float | None
    epsilon_cutoff: float | None
    eta_cutoff: float | None
    logits_processor: Any
    prefix_allowed_tokens_fn: Callable[[int, Any], Sequence[int]] | None
    sequence_bias: Mapping[tuple[int, ...], float] | Sequence[Any] | None
    repetition_penalty: float | None
    encoder_repetition_penalty: float | None
    no_repeat_ngram_size: int | None
    encoder_no_repeat_ngram_size: int | None
    bad_words_ids: Sequence[Sequence[int]] | None
    force_words_ids: Sequence[Sequence[int]] | None
    suppress_tokens: Sequence[int] | None
    begin_suppress_tokens: Sequence[int] | None
    forced_bos_token_id: int | None
    forced_eos_token_id: int | Sequence[int] | None
    exponential_decay_length_penalty: tuple[int, float] | None
    remove_invalid_values: bool | None
    renormalize_logits: bool | None
    watermarking_config: Any
    guidance_scale: float | None
    negative_prompt_ids: Any
    negative_prompt_attention_mask: Any
    assistant_model: Any
    assistant_tokenizer: Any
    num_assistant_tokens: int | None
    prompt_lookup_num_tokens: int | None
    max_matching_ngram_size: int | None
    output_scores: bool | None
    output_logits: bool | None
    top_logprobs: int | None
    output_attentions: Literal[False] | None
    output_hidden_states: Literal[False] | None
    return_dict_in_generate: Literal[True] | None
    use_cache: Literal[True] | None
    cache_implementation: None
    constraints: None
    custom_generate: None
    diversity_penalty: float | None
    dola_layers: None
    low_memory: Literal[False] | None
    num_beam_groups: int | None
    penalty_alpha: None
    synced_gpus: Literal[False] | None
    token_healing: Literal[False] | None


def _lists(inputs: Any, name: str, mask: Any = None) -> list[list[int]]:
    listed = inputs.tolist() if hasattr(inputs, "tolist") else list(inputs) if isinstance(inputs, Iterable) else [inputs]
    if isinstance(inputs, (str, bytes)) or any(not isinstance(one, Iterable) or isinstance(one, (str, bytes)) for one in listed):
        raise TypeError(f"generate: {name}: must be a batch: a list of token lists, or an array [batch, tokens] without padding")
    made = [one.tolist() if hasattr(one, "tolist") else list(one) for one in listed]
    if mask is None:
        return made
    masks = _lists(mask, "attention_mask")
    if [len(one) for one in masks] != [len(one) for one in made]:
        raise ValueError(f"generate: attention_mask has lines of {[len(one) for one in masks]}: must be as {name}, "
                         f"{[len(one) for one in made]}")
    return [[token for token, kept in zip(tokens, its) if kept] for tokens, its in zip(made, masks)]


def _one_of(name: str, value: Any, allowed: Sequence[Any], instead: str) -> None:
    if not any(value is one or (type(value) in (int, float) and value == one) for one in allowed):
        raise NotImplementedError(f"generate: {name} = {value!r}: is not supported; instead: {instead}")


class _Arguments:
    """What is given, and is taken out one by one."""

    def __init__(self, given: dict[str, Any]):
        self.given = given

    def take(self, name: str) -> Any:
        return self.given.pop(name, None)

    def count(self, name: str, least: int) -> int | None:
        """A number of something; None if it is not given."""
        value = self.take(name)
        if value is None:
            return None
        try:
            return whole(value, name, least)
        except (TypeError, ArgumentError) as error:
            raise type(error)(str(error).replace("sluice:", "generate:", 1)) from None

    def real(self, name: str, least: float, most: float = math.inf) -> float | None:
        """A number in (least, most]."""
        value = self.take(name)
        if value is None:
            return None
        if not hasattr(value, "__float__"):
            raise TypeError(f"generate: {name} = {value!r}: must be a number")
        if not least < float(value) <= most:
            raise ArgumentError(f"generate: {name} = {value!r}: must be above {least:g}" + ("" if math.isinf(most) else f", up to {most:g}"))
        return float(value)

    def tokens(self, name: str, size: int) -> list[int] | None:
        """A token, or several."""
        value = self.take(name)
        if value is None:
            return None
        if hasattr(value, "tolist"):
            value = value.tolist()
        listed = [value] if hasattr(value, "__index__") else list(value) if isinstance(value, Iterable) and not isinstance(value, str) else None
        if listed is None or not all(hasattr(token, "__index__") for token in listed):
            raise TypeError(f"generate: {name} = {value!r}: must be a token, or a list of them")
        if not all(0 <= token.__index__() < size for token in listed):
            raise ArgumentError(f"generate: {name} = {value!r}: is outside the vocabulary of {size}")
        return [token.__index__() for token in listed]

    def token(self, name: str, size: int) -> int | None:
        found = self.tokens(name, size)
        if found is not None and len(found) != 1:
            raise TypeError(f"generate: {name} = {found!r}: must be one token")
        return None if found is None else found[0]


def _from_config(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments, and those that generation_config has beside them."""
    config = given.pop("generation_config", None)
    if config is None:
        return given
    if not isinstance(config, Mapping):
        for name in ("to_diff_dict", "to_dict"):
            if hasattr(config, name):
                config = getattr(config, name)()
                break
        else:
            raise TypeError(f"generate: generation_config = {config!r}: must be a GenerationConfig, or a dict of arguments")
    its = {name: value for name, value in config.items()
           if value is not None and not name.startswith("_") and name not in _OF_THE_ENGINE}
    for new, old in ("max_new_tokens", "max_length"), ("min_new_tokens", "min_length"):  # of the call's own, before the other of the config
        if given.get(old) is not None and given.get(new) is None:
            its.pop(new, None)
    return its | {name: value for name, value in given.items() if value is not None or name not in its}


class _Rules:
    """The rules on tokens: by the library, or, where it has not the same, by processors in the order of transformers."""

    def __init__(self, arguments: _Arguments, vocabulary: Vocabulary, eos: list[int], prompts: list[list[int]], *, beams: bool,
                 sampled: bool):
        take, size = arguments.take, int(vocabulary.size)
        self.beams, self.sampled, self.eos, self.size = beams, sampled, eos, size
        self.bias = self._bias(take("sequence_bias"))
        self.encoder_repetition = arguments.real("encoder_repetition_penalty", 0)
        self.repetition = take("repetition_penalty")
        if self.repetition is not None and not hasattr(self.repetition, "__float__"):
            raise TypeError(f"generate: repetition_penalty = {self.repetition!r}: must be a number")
        self.ngram = arguments.count("no_repeat_ngram_size", 0)
        self.encoder_ngram = arguments.count("encoder_no_repeat_ngram_size", 0)
        self.bad = [list(phrase) for phrase in take("bad_words_ids") or ()]
        self.bad = [phrase for phrase in self.bad if not (len(phrase) == 1 and phrase[0] in eos)]
        self.prefix = take("prefix_allowed_tokens_fn")
        if self.prefix is not None and not callable(self.prefix):
            raise TypeError(f"generate: prefix_allowed_tokens_fn = {self.prefix!r}: must be a function (input, tokens) -> tokens")
        self.forced_bos, self.forced_eos = arguments.token("forced_bos_token_id", size), arguments.tokens("forced_eos_token_id", size)
        self.remove_invalid, self.renormalize = bool(take("remove_invalid_values")), bool(take("renormalize_logits"))
        self.decay = take("exponential_decay_length_penalty")
        if self.decay is not None and (not isinstance(self.decay, Sequence) or len(self.decay) != 2):
            raise TypeError(f"generate: exponential_decay_length_penalty = {self.decay!r}: must be a pair: where it begins, and its factor")
        self.suppressed, self.at_begin = arguments.tokens("suppress_tokens", size), arguments.tokens("begin_suppress_tokens", size)
        given = take("logits_processor")
        self.theirs = [] if given is None else logits.functions(given, "logits_processor")
        self.watermark = self._watermark(take("watermarking_config"))
        sampling = {name: take(name) for name in _SAMPLING}
        self.sampling = {name: value for name, value in sampling.items() if value is not None}
        if sampled:
            for name in ("epsilon_cutoff", "eta_cutoff"):
                if not 0 <= self.sampling.get(name, 0.0) < 1:
                    raise ArgumentError(f"generate: {name} = {self.sampling[name]!r}: must be in [0, 1)")
            if not 0 < self.sampling.get("top_h", 1.0) <= 1:
                raise ArgumentError(f"generate: top_h = {self.sampling['top_h']!r}: must be in (0, 1]")
        else:
            for name, value in self.sampling.items():
                if value != _SAMPLING[name]:
                    raise ValueError(f"generate: {name} = {value!r}: needs do_sample=True")
        self.warped = sampled and any(self.sampling.get(name) for name in ("epsilon_cutoff", "eta_cutoff", "top_h"))
        self.prompts, self.vocabulary = prompts, vocabulary

    def _bias(self, given: Any) -> dict[tuple[int, ...], float] | None:
        if given is None:
            return None
        pairs = list(given.items()) if isinstance(given, Mapping) else [tuple(pair) for pair in given]
        if not pairs or any(len(pair) != 2 or not isinstance(pair[0], Iterable) or not hasattr(pair[1], "__float__") for pair in pairs):
            raise TypeError(f"generate: sequence_bias = {given!r}: must be a dict from tuples of tokens to numbers, or a list of such pairs")
        return {tuple(phrase): float(added) for phrase, added in pairs}

    def _watermark(self, config: Any) -> Any:
        if config is None:
            return None
        if isinstance(config, Mapping):
            try:
                theirs = importlib.import_module("transformers")
            except ImportError:
                raise NotImplementedError("generate: watermarking_config: transformers makes it; without: decode() with a search's "
                                          "watermark=Watermark(...)") from None
            config = theirs.WatermarkingConfig(**config)
        if not hasattr(config, "construct_processor") or hasattr(config, "ngram_len"):
            raise NotImplementedError(f"generate: watermarking_config = {config!r}: must be a WatermarkingConfig; for SynthID: decode() "
                                      "with a search's watermark=Watermark(scheme=\"synthid\", ...)")
        return config.construct_processor(self.size, "cpu")

    def needs_processors(self) -> bool:
        """Whether the library's own rules would do something else."""
        if (self.bias or self.encoder_repetition not in (None, 1.0) or self.encoder_ngram or self.prefix or self.forced_bos is not None
                or self.forced_eos is not None or self.remove_invalid or self.renormalize or self.decay is not None or self.at_begin
                or self.theirs or self.watermark is not None or self.warped):
            return True
        banned = [*self.bad, *([token] for token in self.suppressed or ())]
        if not self.beams:  # there they act on the model's scores
            return bool(self.repetition not in (None, 1.0) or self.ngram or banned)
        begins = {prompt[-1] for prompt in self.prompts if prompt} | {self.vocabulary.bos}
        if any(token in self.eos for phrase in banned for token in phrase) or any(
                len(phrase) > 1 and any(token in begins for token in phrase[:-1]) for phrase in banned):
            return True  # an eos is forbidden, or a phrase may begin in the prompt
        if not self.ngram:
            return False
        never = {*self.eos, *self.vocabulary.never}
        return self.ngram == 1 or any(len(prompt) > 1 or (prompt[0] if prompt else self.vocabulary.bos) not in never for prompt in self.prompts)

    def before_diversity(self) -> None:
        """Refuses what transformers applies behind the penalty of groups and would give something else before it."""
        for name, given in (("repetition_penalty", self.repetition not in (None, 1.0)),
                            ("encoder_repetition_penalty", self.encoder_repetition not in (None, 1.0)),
                            ("exponential_decay_length_penalty", self.decay is not None), ("renormalize_logits", self.renormalize),
                            ("remove_invalid_values", self.remove_invalid), ("forced_bos_token_id", self.forced_bos is not None),
                            ("forced_eos_token_id", self.forced_eos is not None), ("logits_processor", bool(self.theirs))):
            if given:
                raise NotImplementedError(f"generate: {name} with num_beam_groups: transformers applies it to scores that the other groups have "
                                          "changed, which are not known here yet: use decode() with DiverseBeamSearch and its own rules")

    def by_the_library(self) -> dict[str, Any]:
        rules: dict[str, Any] = {}
        forbidden = [*self.bad, *([token] for token in self.suppressed or ())]
        if forbidden:
            rules["forbidden"] = forbidden
        if self.repetition is not None:
            rules["penalties"] = Penalties(repetition=self.repetition, window=-1, prompt=True)
        if self.ngram:
            rules["no_repeat_ngram"] = NoRepeatNgram(n=self.ngram)
        return rules

    def processors(self, warp: bool) -> list[logits.Processor]:
        """In the order of transformers; the name of its class says where an object of the caller's takes its place."""
        if self.repetition is not None and not float(self.repetition) > 0:
            raise ArgumentError(f"generate: repetition_penalty = {self.repetition!r}: must be above 0")
        made: list[tuple[str, logits.Processor]] = []
        add = made.append
        if self.bias:
            add(("SequenceBiasLogitsProcessor", logits.sequence_bias(self.bias, self.size, "sequence_bias")))
        if self.encoder_repetition not in (None, 1.0):
            assert self.encoder_repetition is not None
            add(("EncoderRepetitionPenaltyLogitsProcessor", logits.encoder_repetition(self.encoder_repetition)))
        if self.repetition not in (None, 1.0):
            add(("RepetitionPenaltyLogitsProcessor", logits.repetition(float(self.repetition))))
        if self.ngram:
            add(("NoRepeatNGramLogitsProcessor", logits.no_repeat_ngram(self.ngram)))
        if self.encoder_ngram:
            add(("EncoderNoRepeatNGramLogitsProcessor", logits.encoder_no_repeat_ngram(self.encoder_ngram)))
        if self.bad:
            add(("NoBadWordsLogitsProcessor", logits.sequence_bias({tuple(one): -math.inf for one in self.bad}, self.size, "bad_words_ids")))
        if self.eos:
            add(("MinLengthLogitsProcessor", logits.minimum(self.eos)))
        if self.prefix is not None:
            add(("PrefixConstrainedLogitsProcessor", logits.prefix_allowed(self.prefix)))
        if self.forced_bos is not None:
            add(("ForcedBOSTokenLogitsProcessor", logits.forced_bos(self.forced_bos)))
        if self.forced_eos is not None:
            add(("ForcedEOSTokenLogitsProcessor", logits.forced_eos(self.forced_eos)))
        if self.remove_invalid:
            add(("InfNanRemoveLogitsProcessor", logits.remove_invalid))
        if self.decay is not None:
            add(("ExponentialDecayLengthPenalty", logits.exponential_decay(self.decay[0], self.decay[1], self.eos)))
        if self.suppressed:
            add(("SuppressTokensLogitsProcessor", logits.suppress(self.suppressed)))
        if self.at_begin:
            add(("SuppressTokensAtBeginLogitsProcessor", logits.suppress_at_begin(self.at_begin, self.forced_bos is not None)))
        names = [name for name, _ in made]
        for processor in self.theirs:
            one = type(processor).__name__, logits.theirs(processor)
            if one[0] in names:
                made[names.index(one[0])] = one
            else:
                add(one)
        if warp:
            for name, what in (("temperature", logits.temperature), ("top_h", logits.top_h), ("top_k", logits.top_k), ("top_p", logits.top_p),
                               ("min_p", logits.min_p), ("typical_p", logits.typical), ("epsilon_cutoff", logits.epsilon),
                               ("eta_cutoff", logits.eta)):
                value = self.sampling.get(name, 50 if name == "top_k" else None)
                if value and (value != _SAMPLING[name] or name == "top_k"):
                    add((name, what(value)))
        if self.watermark is not None:
            add(("WatermarkLogitsProcessor", logits.theirs(self.watermark, "watermarking_config")))
        if self.renormalize:
            add(("LogitNormalization", logits.renormalize))
        return [processor for _, processor in made]


def _groups(arguments: _Arguments, width: int, sampled: bool, eos: list[int]) -> tuple[int, float, int]:
    """Groups of beams, what a token of another group costs, and the padding that a group takes when it is over, as in transformers 4.51."""
    groups, penalty, padding = arguments.count("num_beam_groups", 1) or 1, arguments.take("diversity_penalty"), arguments.take("pad_token_id")
    if groups == 1:
        if penalty not in (None, 0.0):
            raise ValueError(f"generate: diversity_penalty = {penalty!r}: needs num_beam_groups > 1")
        return 1, 0.0, -1
    if sampled:
        raise ValueError(f"generate: num_beam_groups = {groups}: not with do_sample=True")
    if width % groups != 0:
        raise ValueError(f"generate: num_beams = {width}: must be a multiple of num_beam_groups = {groups}")
    if not hasattr(penalty, "__float__") or not 0 < float(penalty) < math.inf:
        raise ValueError(f"generate: diversity_penalty = {penalty!r}: must be above 0, or all groups find the same")
    return groups, float(penalty), padding if hasattr(padding, "__index__") and padding >= 0 else eos[0] if eos else -1


def _search(arguments: _Arguments, rules: dict[str, Any], sampling: dict[str, Any], width: int, count: int, sampled: bool,
            groups: tuple[int, float, int]) -> Search:
    """The search, without its length."""
    penalty, early = arguments.take("length_penalty"), arguments.take("early_stopping")
    demanded = arguments.take("force_words_ids")
    if sampled:
        if width > 1:
            raise NotImplementedError(f"generate: do_sample = True with num_beams = {width}: beams do not sample here: "
                                      "decode() with StochasticBeam draws without replacement")
        return Sample(samples=count, temperature=sampling.get("temperature", 1.0), top_k=sampling.get("top_k", 50),
                      top_p=sampling.get("top_p", 1.0), min_p=sampling.get("min_p", 0.0), typical=sampling.get("typical_p", 1.0),
                      **rules)
    if count > width:
        raise ValueError(f"generate: num_return_sequences = {count}: must be at most num_beams = {width}, or do_sample=True")
    if width == 1 and not demanded:
        return Greedy(stage=Stage.before_softmax, **rules)
    rule = {False: "heuristic", None: "heuristic", True: "count", "never": "never_early"}.get(early)
    if rule is None:
        raise ValueError(f'generate: early_stopping = {early!r}: must be False, True or "never"')
    alpha = 1.0 if penalty is None else penalty
    if groups[0] > 1:
        if demanded:
            raise ValueError("generate: force_words_ids: not with num_beam_groups")
        each = presets.huggingface(width // groups[0], alpha, early_stopping=EarlyStopping(rule=EarlyStoppingRule[rule], ended_first=True))
        return DiverseBeamSearch(search=each, groups=groups[0], penalty=groups[1], padding=groups[2], n_best=count, **rules)
    search = presets.huggingface(width, alpha, EarlyStoppingRule[rule], n_best=count, **rules)
    if demanded:
        if any(not isinstance(token, int) for phrase in demanded for token in phrase):
            raise NotImplementedError("generate: force_words_ids: alternatives (lists of lists of lists) are not supported: "
                                      "give one list of tokens for each phrase, or decode() with a grammar")
        search.demanded = [list(phrase) for phrase in demanded]
    return search


def _inputs(arguments: _Arguments, inputs: Any, vocabulary: Vocabulary, encoder_decoder: bool) -> tuple[list[Any], list[list[int]]]:
    """The source and the prompt of each input."""
    mask, size = arguments.take("attention_mask"), int(vocabulary.size)
    starts, bos = arguments.tokens("decoder_start_token_id", size), arguments.token("bos_token_id", size)
    its = arguments.take("input_ids")
    if its is not None:
        if inputs is not None:
            raise TypeError("generate() got both inputs and input_ids")
        inputs = its
    decoder_ids = arguments.take("decoder_input_ids")
    if not encoder_decoder:
        if decoder_ids is not None:
            raise NotImplementedError("generate: decoder_input_ids: the model has no is_encoder_decoder = True: set it, or give prompts "
                                      "as inputs")
        if inputs is None and bos is not None:
            inputs = [[bos]]
        if inputs is None:
            raise TypeError("generate() needs inputs")
        prompts = _lists(inputs, "inputs", mask)
        return [None] * len(prompts), prompts
    if inputs is None:
        raise TypeError("generate() needs inputs")
    sources = list(inputs) if mask is None else list(_lists(inputs, "inputs", mask))
    if starts is None:
        starts = [vocabulary.bos if bos is None else bos]
    if len(starts) not in (1, len(sources)):
        raise ValueError(f"generate: decoder_start_token_id has {len(starts)} tokens: must be one, or {len(sources)}, one for each input")
    if len(starts) == 1:
        starts *= len(sources)
    if decoder_ids is None:
        return sources, [[token] for token in starts]
    prompts = _lists(decoder_ids, "decoder_input_ids")
    if len(prompts) != len(sources):
        raise ValueError(f"generate: decoder_input_ids has {len(prompts)} lists: must be {len(sources)}, one for each input")
    if all(prompt[:1] != [start] for prompt, start in zip(prompts, starts)):  # as in transformers
        prompts = [[start, *prompt] for prompt, start in zip(prompts, starts)]
    return sources, prompts


def _encoded(sources: list[Any], prompts: list[list[int]], encoder_decoder: bool, name: str) -> list[Any]:
    """What encoder_... arguments look at."""
    import numpy

    if not encoder_decoder:
        return [numpy.array(prompt, numpy.int64) for prompt in prompts]
    return [numpy.array(tokens, numpy.int64) for tokens in _lists(sources, f"{name}: inputs")]


def _stream(model: Any, request: Request, search: Search, streamer: Any, end: int) -> list[Result]:
    """One input, whose tokens go to a streamer of transformers as they become certain."""
    import numpy

    from ._server import Server

    streamer.put(logits.as_theirs(numpy.array([request.prompt], numpy.int64)))
    with Server(model, search, batch=1) as server:
        stream = server.stream(request)
        for tokens in stream:
            for token in tokens:
                if token != end:
                    streamer.put(logits.as_theirs(numpy.array([token], numpy.int64)))
        result = stream.result
    streamer.end()
    return [result]


def _blocks(arguments: _Arguments, model: Any, sampled: bool, width: int) -> tuple[int, int, Drafts | None]:
    """Guesses in a round at most, the lookup, the drafts; 0 guesses: none are made."""
    guesses, ngram = arguments.count("prompt_lookup_num_tokens", 1), arguments.count("max_matching_ngram_size", 1)
    assistant, tokens = arguments.take("assistant_model"), arguments.count("num_assistant_tokens", 1)
    if guesses is None and assistant is None:
        return 0, 0, None
    name = "assistant_model" if guesses is None else "prompt_lookup_num_tokens"
    if guesses is not None and assistant is not None:
        raise ValueError("generate: prompt_lookup_num_tokens and assistant_model: give one of them")
    if sampled or width > 1:
        raise NotImplementedError(f"generate: {name} with {'do_sample = True' if sampled else f'num_beams = {width}'}: guesses are for greedy "
                                  "decoding; Blockwise does not sample from Python")
    for one, whose in ((model, "the model"), (assistant, "assistant_model")):
        able = getattr(one, "abilities", None)
        if one is not None and not all(getattr(able, ability, False) for ability in ("ragged", "blocks", "roll_back")):
            raise TypeError(f"generate: {name}: {whose} needs abilities = Abilities(ragged=True, blocks=True, roll_back=True): several tokens "
                            "in a row, and slots that are cut back")
    if assistant is None:
        assert guesses is not None
        return guesses, 2 if ngram is None else ngram, None
    if isinstance(assistant, (Decoder, NativeModel)) or assistant.vocabulary.size != model.vocabulary.size:
        raise TypeError("generate: assistant_model: must be a model of yours with the same vocabulary")
    return 20 if tokens is None else tokens, 0, Drafts(assistant, tokens)


def generate(model: AnyModel | Decoder, inputs: Any = None, *, batch: int = 64, seed: int | None = None,
             **arguments: Unpack[GenerateArguments]) -> list[Result]:
    """Decodes a batch as `model.generate(inputs, ...)` of Hugging Face transformers would; docs/python.md has the table of arguments.

    model
        A model, or a Decoder. If it has `is_encoder_decoder = True`, inputs are its sources, and `decoder_input_ids` may give
        prompts; else inputs are the prompts.
    inputs
        Token lists, or an array [batch, tokens] that needs no padding (also as input_ids=); `attention_mask` takes padding out.
        Sources may be any objects.
    batch, seed
        Not of transformers: how many are decoded together, and where the random numbers of samples begin (input i has seed + i).
        Without a seed, samples (do_sample=True) are others each time, as those of transformers are; `random.seed(...)` of Python
        before the call makes them the same.
    top_logprobs
        Not of transformers either: each hypothesis has the `top_log_probs` of its tokens.

    Returns a Result for each input, with `num_return_sequences` hypotheses. Their tokens are the output alone: no prompt, no padding.

    Raises TypeError for arguments that transformers does not have, and NotImplementedError for those that cannot be honoured.
    """
    began = time.monotonic()
    its_model: Any = model.model if isinstance(model, Decoder) else model
    given = _from_config(dict(arguments))
    config = getattr(its_model, "generation_config", None)
    if config is not None:  # as in transformers: what the call does not say
        given = _from_config(given | {"generation_config": config})
    encoder_decoder = bool(getattr(its_model, "is_encoder_decoder", False))
    unknown = sorted(set(given) - set(GenerateArguments.__annotations__))
    if unknown:
        raise TypeError(f"generate() got unexpected arguments: {', '.join(unknown)}")
    for name, (nothing, instead) in _UNSUPPORTED.items():
        if name in given:
            _one_of(name, given.pop(name), nothing, instead)
    for name in _IGNORED:
        given.pop(name, None)
    taken = _Arguments(given)

    if not isinstance(its_model, NativeModel):
        demand_model(its_model, "model")
    vocabulary = its_model.vocabulary
    size = int(vocabulary.size)
    own = vocabulary_eos(vocabulary)
    eos = taken.tokens("eos_token_id", size)
    renamed = eos is not None and sorted(eos) != sorted(own)
    eos = own if eos is None else eos
    sources, prompts = _inputs(taken, inputs, vocabulary, encoder_decoder)

    new, longest = taken.count("max_new_tokens", 1), taken.count("max_length", 1)
    least, shortest = taken.count("min_new_tokens", 0), taken.count("min_length", 0)
    seconds = taken.real("max_time", 0)
    sampled = bool(taken.take("do_sample"))
    if seed is None:
        seed = random.getrandbits(63) if sampled else 0
    elif not hasattr(seed, "__index__") or not 0 <= seed < 2**64:
        raise ArgumentError(f"generate: seed = {seed!r}: must be in [0, 2^64)")
    else:
        seed = seed.__index__()  # NumPy's would overflow below
    width, count = taken.count("num_beams", 1) or 1, taken.count("num_return_sequences", 1) or 1

    guesses, lookup, drafts = _blocks(taken, its_model, sampled, width)
    groups = _groups(taken, width, sampled, eos)
    criteria = taken.take("stopping_criteria")
    stops = [] if criteria is None else logits.functions(criteria, "stopping_criteria")
    texts = taken.take("stop_strings")
    for name, there in ("stop_strings", texts), ("stopping_criteria", stops):
        if there and groups[0] > 1:
            raise NotImplementedError(f"generate: {name} with num_beam_groups: transformers ends all beams of all inputs at once, where all meet "
                                      "them: use decode() with DiverseBeamSearch(stop=...), where a stop ends one hypothesis")
        if there and width > 1 and given.get("force_words_ids"):
            raise NotImplementedError(f"generate: {name} with force_words_ids: use decode() with BeamSearch(demanded=..., stop=...)")
    scale, negative = taken.real("guidance_scale", -math.inf), taken.take("negative_prompt_ids")
    guidance = None
    if scale not in (None, 1.0):
        assert scale is not None
        if encoder_decoder:
            raise NotImplementedError("generate: guidance_scale: is for models without an encoder, as in transformers; decode() with "
                                      "Fused(model, other, weight=...), a weight below 0")
        if guesses:
            raise NotImplementedError("generate: guidance_scale with guesses of an assistant or of a lookup: give one of them")
        negatives = None if negative is None else _lists(negative, "negative_prompt_ids")
        if negatives is not None and (len(negatives) != len(prompts) or not all(negatives)):
            raise ValueError(f"generate: negative_prompt_ids has {len(negatives)} lists: must be {len(prompts)}, one for each input, none empty")
        guidance = Guidance(its_model, scale, negatives)
    elif negative is not None:
        raise ValueError("generate: negative_prompt_ids: needs guidance_scale")
    kept_scores, kept_logits = bool(taken.take("output_scores")), bool(taken.take("output_logits"))
    top = taken.count("top_logprobs", 0) or 0
    keeps = kept_scores or kept_logits or top > 0
    streamer = taken.take("streamer")
    if streamer is not None and (len(prompts) != 1 or width > 1 or count > 1):
        raise ValueError("generate: streamer: takes one input, with num_beams=1 and num_return_sequences=1, as in transformers; Server has "
                         "streams of any number")

    rules = _Rules(taken, vocabulary, eos, prompts, beams=width > 1 or bool(given.get("force_words_ids")), sampled=sampled)
    asked, stops = (stops, []) if width > 1 else ([], stops)  # beams ask criteria of their candidates
    ends = bool(stops) or seconds is not None  # by a token of its own
    if groups[0] > 1:
        rules.before_diversity()
        if kept_scores:
            raise NotImplementedError("generate: output_scores with num_beam_groups: those of transformers hold what other groups take from them, "
                                      "which is not known here yet: output_logits=True has the model's")
    # A minimum of the library's forbids that token, and stops; here it forbids the vocabulary's own alone.
    processed = (keeps or guidance is not None or rules.needs_processors()
                 or bool(least or shortest) and (ends or not isinstance(its_model, NativeModel) and bool(asked or texts)))
    wrapped = processed or ends or drafts is not None
    warp = sampled and (rules.warped or kept_scores or top > 0 or rules.watermark is not None or rules.renormalize)
    sampling = {"top_k": 0} if warp else rules.sampling
    search = _search(taken, {} if processed else rules.by_the_library(), sampling, width, count, sampled, groups)
    if texts:
        search.stop = [texts] if isinstance(texts, str) else list(texts)
    if isinstance(search, BeamSearch) and (texts or asked):
        search.candidates = width * max(2, 1 + len(eos))  # of which transformers asks
    if guesses:
        search = Blockwise(block=guesses + 1, **{name: getattr(search, name) for name in ("forbidden", "penalties", "no_repeat_ngram", "stop")})
    assert not given, given
    if isinstance(its_model, NativeModel) and (wrapped or lookup):
        raise NotImplementedError(f"generate: a {type(its_model).__name__} is never called from Python, where logits processors, criteria and guesses "
                                  "are: use decode() with a search's own rules, or give generate() the model within it")
    if wrapped or asked:
        need_numpy("generate with logits processors, stopping criteria, guesses or scores")

    encoded: list[Any] = [None] * len(prompts)
    if rules.encoder_repetition not in (None, 1.0) or rules.encoder_ngram:
        encoded = _encoded(sources, prompts, encoder_decoder,
                           "encoder_repetition_penalty" if rules.encoder_repetition not in (None, 1.0) else "encoder_no_repeat_ngram_size")
    requests = []
    held_at_most = getattr(getattr(its_model, "limits", None), "length", None)
    for i, (source, prompt) in enumerate(zip(sources, prompts)):
        held = max(len(prompt), 1)
        if new is not None:
            limit = new
        elif longest is not None:
            limit = longest - held
        else:
            limit = 20 if held_at_most is None else max(min(20, held_at_most - held), 1)
        if limit < 1:
            raise ValueError(f"generate: max_length = {longest}: input {i} has {held} tokens before its output: set max_new_tokens")
        minimum = least if least is not None else max((shortest or 0) - held, 0)
        if wrapped:
            source = logits.Row(source, i, held, held + minimum, held + limit, encoded[i])
        its: dict[str, Any] = {"length": LengthLimits(min=0 if processed else minimum, max=limit)}
        if isinstance(search, DiverseBeamSearch):
            its = {"search": search.search.replace(**its)}
        if asked:
            its["stopping_criteria"] = [logits.over_one(asked, prompt or [vocabulary.bos])]
        requests.append(Request(source, prompt, search=search.replace(**its), seed=(seed + i) % 2**64))

    if renamed:
        its_model = Renamed(its_model, Vocabulary(size, vocabulary.bos, eos, vocabulary.never))
    elif lookup:
        its_model = Renamed(its_model, vocabulary)
    if lookup:
        its_model.lookup = lookup
    if wrapped:
        its_model = Processed(its_model, its_model.vocabulary, rules.processors(warp) if processed else (),
                              beams=processed and rules.beams, plain=not processed, stops=stops, deadline=None if seconds is None else began + seconds,
                              guidance=guidance, drafts=drafts, scores=kept_scores, logits=kept_logits, top=top)
        if guidance is not None:
            guidance.model = its_model.model  # with its other eos
    with contextlib.ExitStack() as stack:
        decoder: Any = model
        if not isinstance(model, Decoder):
            decoder = its_model
        elif wrapped or renamed or lookup:
            if model._served:
                raise Error("sluice: the model belongs to a server until that is closed")
            stack.enter_context(model._lock)
            decoder = its_model
        if streamer is not None:
            results = _stream(decoder, requests[0], search.replace(length=requests[0].search.length), streamer,  # type: ignore[union-attr]
                              getattr(its_model, "end", -1))
        else:
            results = (decoder if isinstance(decoder, Decoder) else Decoder(decoder)).decode(requests, search, batch=batch)
    if isinstance(its_model, Processed):
        for i, result in enumerate(results):
            cut = [its_model.finish(i, hypothesis) for hypothesis in result.hypotheses]
            if width > 1 and any(cut):
                _rank(result.hypotheses, (search.search if isinstance(search, DiverseBeamSearch) else search).penalty.alpha)  # type: ignore[attr-defined]
    return results


def _rank(hypotheses: list[Hypothesis], alpha: float) -> None:
    """Scores and order of a beam that the deadline ended, without the token that ended them."""
    for hypothesis in hypotheses:
        hypothesis.score = hypothesis.log_prob / max(len(hypothesis.tokens), 1)**alpha
    hypotheses.sort(key=lambda hypothesis: -hypothesis.score)

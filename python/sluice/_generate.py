# SPDX-License-Identifier: Apache-2.0
"""generate(): the arguments of Hugging Face's `generate`."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

from . import presets
from ._decode import Decoder, Request, Result
from ._library import ArgumentError, whole
from ._search import Search
from .options import EarlyStoppingRule, Greedy, LengthLimits, NoRepeatNgram, Penalties, Sample

# Arguments of transformers that nothing here does: the values that ask for nothing (transformers 4.50), and what does it another way.
_UNSUPPORTED: dict[str, tuple[list[Any], str]] = {
    "assistant_model": ([None], "give the model `propose`, and decode() with Blockwise"),
    "attention_mask": ([None], "there is no padding: give a list of token lists"),
    "begin_suppress_tokens": ([None], "let the model's step answer -inf for them at the first token"),
    "bos_token_id": ([None], "the model's Vocabulary(bos=...) has it"),
    "cache_implementation": ([None], "the model has its own cache"),
    "constraints": ([None], "force_words_ids, or decode() with BeamSearch(demanded=...)"),
    "decoder_attention_mask": ([None], "there is no padding: give a list of token lists"),
    "diversity_penalty": ([None, 0.0], "BeamSearch(sibling_penalty=...) or StochasticBeam with decode(); C++ has DiverseBeamSearch"),
    "dola_layers": ([None], "let the model's step answer with such scores"),
    "encoder_no_repeat_ngram_size": ([None, 0], "decode() with forbidden=... for each request"),
    "encoder_repetition_penalty": ([None, 1.0], "decode() with Bias(...) for each request"),
    "epsilon_cutoff": ([None, 0.0], "min_p cuts by the best token's probability"),
    "eta_cutoff": ([None, 0.0], "min_p, typical_p, or decode() with Sample(top_n_sigma=...)"),
    "exponential_decay_length_penalty": ([None], "length_penalty, or decode() with LengthPenalty(...)"),
    "forced_bos_token_id": ([None], "decode() with Request(prefix=[token])"),
    "forced_eos_token_id": ([None], "decode() with BeamSearch(at_maximum=\"force_eos\")"),
    "generation_config": ([None], "give its members as arguments: **config.to_diff_dict()"),
    "guidance_scale": ([None, 1.0], "decode() with Fused(model, other, weight=...), a weight below 0"),
    "logits_processor": ([None], "a search's rules (forbidden, penalties, grammar, bias), or change the scores in the model's step"),
    "low_memory": ([None, False], "batch= bounds how many are decoded together"),
    "max_time": ([None], "Server.submit(..., seconds=...)"),
    "negative_prompt_ids": ([None], "decode() with Fused(model, other, weight=...), a weight below 0"),
    "num_assistant_tokens": ([None], "decode() with Blockwise(block=...)"),
    "num_beam_groups": ([None, 1], "StochasticBeam with decode() draws hypotheses that differ; C++ has DiverseBeamSearch"),
    "output_attentions": ([None, False], "the model has them: keep them in its step"),
    "output_hidden_states": ([None, False], "the model has them: keep them in its step"),
    "output_logits": ([None, False], "hypotheses have log_probs; decode() with Request(trace=True) shows candidates"),
    "penalty_alpha": ([None], "let the model's step answer with such scores, or sample: do_sample=True"),
    "prefix_allowed_tokens_fn": ([None], "decode() with a search's grammar=... or catalogue=..."),
    "prompt_lookup_num_tokens": ([None], "give the model `lookup`, and decode() with Blockwise"),
    "remove_invalid_values": ([None, False], "let the model's step answer -inf in place of NaN"),
    "renormalize_logits": ([None, False], "log_probs are normalised"),
    "return_dict_in_generate": ([None, True], "a Result is returned: .tokens, or [h.tokens for h in result]"),
    "sequence_bias": ([None], "decode() with a search's bias=Bias(...)"),
    "stopping_criteria": ([None], "stop_strings, or decode() with a search's stop=... or stop_tokens=..."),
    "streamer": ([None], "Server.stream(request)"),
    "synced_gpus": ([None, False], "the model's step may do that"),
    "token_healing": ([None, False], "cut the prompt before its last token"),
    "use_cache": ([None, True], "the model decides by what it keeps in a slot"),
    "watermarking_config": ([None], "decode() with a search's watermark=Watermark(...)"),
}
# There is no padding; results always have log-probabilities; stop strings need the model's token_bytes instead of a tokenizer.
_IGNORED = ("pad_token_id", "output_scores", "tokenizer")
_SAMPLING = {"temperature": 1.0, "top_k": 50, "top_p": 1.0, "min_p": None, "typical_p": 1.0}


def _lists(inputs: Any, name: str) -> list[list[int]]:
    listed = inputs.tolist() if hasattr(inputs, "tolist") else list(inputs) if isinstance(inputs, Iterable) else [inputs]
    if isinstance(inputs, (str, bytes)) or any(not isinstance(one, Iterable) or isinstance(one, (str, bytes)) for one in listed):
        raise TypeError(f"generate: {name}: must be a batch: a list of token lists, or an array [batch, tokens] without padding")
    return [one.tolist() if hasattr(one, "tolist") else list(one) for one in listed]


def _one_of(name: str, value: Any, allowed: Sequence[Any], instead: str) -> None:
    if not any(value is one or (type(value) in (int, float) and value == one) for one in allowed):
        raise NotImplementedError(f"generate: {name} = {value!r}: is not supported; instead: {instead}")


def _count(given: dict[str, Any], name: str, least: int) -> int | None:
    """A number of something, which is taken out; None if it is not given."""
    value = given.pop(name, None)
    if value is None:
        return None
    try:
        return whole(value, name, least)
    except (TypeError, ArgumentError) as error:
        raise type(error)(str(error).replace("sluice:", "generate:", 1)) from None


def _rules(encoder_decoder: bool, prompts: list[list[int]], given: dict[str, Any]) -> dict[str, Any]:
    """What is the same for all searches: rules on tokens."""
    rules: dict[str, Any] = {}
    forbidden = [list(phrase) for phrase in given.pop("bad_words_ids", None) or ()]
    forbidden += [[token] for token in given.pop("suppress_tokens", None) or ()]
    if forbidden:
        rules["forbidden"] = forbidden
    repetition = given.pop("repetition_penalty", None)
    if repetition is not None:
        rules["penalties"] = Penalties(repetition=repetition, window=-1, prompt=True)
    ngram = _count(given, "no_repeat_ngram_size", 0)
    if ngram:
        if not encoder_decoder and any(len(prompt) > 1 for prompt in prompts):
            raise NotImplementedError(f"generate: no_repeat_ngram_size = {ngram}: counts n-grams of the prompt, too, and "
                                      "NoRepeatNgram those of the output alone: use decode() if that is what you want")
        rules["no_repeat_ngram"] = NoRepeatNgram(n=ngram)
    stop = given.pop("stop_strings", None)
    if stop:
        if (_count(dict(given), "num_beams", 1) or 1) > 1:
            raise NotImplementedError("generate: stop_strings with num_beams > 1: transformers' beams go on behind them: use decode() "
                                      "with BeamSearch(stop=...), where a stop ends one hypothesis")
        rules["stop"] = [stop] if isinstance(stop, str) else list(stop)
    return rules


def _search(rules: dict[str, Any], given: dict[str, Any]) -> Search:
    """The search, without its length."""
    width, count = _count(given, "num_beams", 1) or 1, _count(given, "num_return_sequences", 1) or 1
    sampling = {name: given.pop(name) for name in _SAMPLING if given.get(name) is not None}
    for name in _SAMPLING:
        given.pop(name, None)
    penalty, early = given.pop("length_penalty", None), given.pop("early_stopping", None)
    demanded = given.pop("force_words_ids", None)
    if given.pop("do_sample", None):
        if width > 1:
            raise NotImplementedError(f"generate: do_sample = True with num_beams = {width}: beams do not sample here: "
                                      "decode() with StochasticBeam draws without replacement")
        return Sample(samples=count, temperature=sampling.get("temperature", 1.0), top_k=sampling.get("top_k", 50),
                      top_p=sampling.get("top_p", 1.0), min_p=sampling.get("min_p", 0.0), typical=sampling.get("typical_p", 1.0),
                      **rules)
    for name, value in sampling.items():
        if value != _SAMPLING[name]:
            raise ValueError(f"generate: {name} = {value!r}: needs do_sample=True")
    if count > width:
        raise ValueError(f"generate: num_return_sequences = {count}: must be at most num_beams = {width}, or do_sample=True")
    if width == 1 and not demanded:
        return Greedy(**rules)
    rule = {False: "heuristic", None: "heuristic", True: "count", "never": "never_early"}.get(early)
    if rule is None:
        raise ValueError(f'generate: early_stopping = {early!r}: must be False, True or "never"')
    search = presets.huggingface(width, 1.0 if penalty is None else penalty, EarlyStoppingRule[rule], n_best=count, **rules)
    if demanded:
        if any(not isinstance(token, int) for phrase in demanded for token in phrase):
            raise NotImplementedError("generate: force_words_ids: alternatives (lists of lists of lists) are not supported: "
                                      "give one list of tokens for each phrase, or decode() with a grammar")
        search.demanded = [list(phrase) for phrase in demanded]
    return search


def generate(model: Any, inputs: Any = None, *, batch: int = 64, seed: int | None = None, **arguments: Any) -> list[Result]:
    """Decodes a batch as `model.generate(inputs, ...)` of Hugging Face transformers would; docs/python.md has the table of arguments.

    model
        A model, or a Decoder. If it has `is_encoder_decoder = True`, inputs are its sources, and `decoder_input_ids` may give
        prompts; else inputs are the prompts.
    inputs
        Token lists, or an array [batch, tokens] that needs no padding (also as input_ids=). Sources may be any objects.
    batch, seed
        Not of transformers: how many are decoded together, and where the random numbers of samples begin (input i has seed + i).
        Without a seed, samples (do_sample=True) are others each time, as those of transformers are; `random.seed(...)` of Python
        before the call makes them the same.

    Returns a Result for each input, with `num_return_sequences` hypotheses. Their tokens are the output alone: no prompt, no padding.

    Raises TypeError for arguments that transformers does not have, and NotImplementedError for those that cannot be honoured.
    """
    given = dict(arguments)
    its_model = model.model if isinstance(model, Decoder) else model
    encoder_decoder = bool(getattr(its_model, "is_encoder_decoder", False))
    known = {*_UNSUPPORTED, *_IGNORED, *_SAMPLING, "input_ids", "decoder_input_ids", "do_sample", "num_beams",
             "num_return_sequences", "max_new_tokens", "min_new_tokens", "max_length", "min_length", "length_penalty",
             "early_stopping", "repetition_penalty", "no_repeat_ngram_size", "bad_words_ids", "suppress_tokens",
             "force_words_ids", "eos_token_id", "stop_strings"}
    unknown = sorted(set(given) - known)
    if unknown:
        raise TypeError(f"generate() got unexpected arguments: {', '.join(unknown)}")
    for name, (nothing, instead) in _UNSUPPORTED.items():
        if name in given:
            _one_of(name, given.pop(name), nothing, instead)
    for name in _IGNORED:
        given.pop(name, None)
    if "input_ids" in given:
        if inputs is not None:
            raise TypeError("generate() got both inputs and input_ids")
        inputs = given.pop("input_ids")
    if inputs is None:
        raise TypeError("generate() needs inputs")

    vocabulary = its_model.vocabulary
    own = [vocabulary.eos] if hasattr(vocabulary.eos, "__index__") else list(vocabulary.eos)
    eos = given.pop("eos_token_id", None)
    if eos is not None and sorted([eos] if hasattr(eos, "__index__") else list(eos)) != sorted(own):
        raise NotImplementedError(f"generate: eos_token_id = {eos!r}: must be that of the model's vocabulary, {own}: give the model "
                                  "Vocabulary(..., eos=...), or use decode() with a search's stop_tokens=...")
    if encoder_decoder:
        sources = list(inputs)
        decoder_ids = given.pop("decoder_input_ids", None)
        prompts = [[vocabulary.bos]] * len(sources) if decoder_ids is None else _lists(decoder_ids, "decoder_input_ids")
        if len(prompts) != len(sources):
            raise ValueError(f"generate: decoder_input_ids has {len(prompts)} lists: must be {len(sources)}, one for each input")
    else:
        if given.pop("decoder_input_ids", None) is not None:
            raise NotImplementedError("generate: decoder_input_ids: the model has no is_encoder_decoder = True: set it, or give prompts "
                                      "as inputs")
        prompts = _lists(inputs, "inputs")
        sources = [None] * len(prompts)

    new, longest = _count(given, "max_new_tokens", 1), _count(given, "max_length", 1)
    least, shortest = _count(given, "min_new_tokens", 0), _count(given, "min_length", 0)
    if seed is None:
        seed = random.getrandbits(63) if given.get("do_sample") else 0
    elif not hasattr(seed, "__index__") or not 0 <= seed < 2**64:
        raise ArgumentError(f"generate: seed = {seed!r}: must be in [0, 2^64)")
    else:
        seed = seed.__index__()  # NumPy's would overflow below
    search = _search(_rules(encoder_decoder, prompts, given), given)
    assert not given, given
    requests = []
    for i, (source, prompt) in enumerate(zip(sources, prompts)):
        held = max(len(prompt), 1)
        limit = new if new is not None else (20 if longest is None else longest) - held
        if limit < 1:
            raise ValueError(f"generate: max_length = {longest if longest is not None else 20}: input {i} has {held} tokens before "
                             "its output: set max_new_tokens")
        minimum = least if least is not None else max((shortest or 0) - held, 0)
        length = LengthLimits(min=minimum, max=limit)
        requests.append(Request(source, prompt, search=search.replace(length=length), seed=(seed + i) % 2**64))
    decoder = model if isinstance(model, Decoder) else Decoder(model)
    return decoder.decode(requests, search, batch=batch)

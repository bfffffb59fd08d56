# SPDX-License-Identifier: Apache-2.0
"""generate() beside that of Hugging Face transformers.

With transformers and torch: on 20 tiny models with random weights, five each of GPT-2, BART, T5 and Marian. Without: on a table, against
the tokens and scores that transformers gave for the same table, in huggingface.json.

    test_huggingface.py             the tests; OverTable, Arguments: those without transformers
    test_huggingface.py --write     writes huggingface.json, and the table of docs/huggingface.md

Groups of beams are those of transformers 4.51, the last that has them: with that, BesideGroups runs, and --write writes
huggingface_groups.json and the second table.
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import numpy as np

import sluice
import sluice.huggingface
from table import Table

HERE = pathlib.Path(__file__).resolve().parent
EXPECTED, EXPECTED_GROUPS = HERE / "huggingface.json", HERE / "huggingface_groups.json"
PAGE = HERE.parents[1] / "docs/huggingface.md"
try:
    import tokenizers
    import torch
    import transformers
    HAS_GROUPS = hasattr(transformers.GenerationMixin, "_group_beam_search")
    WHY = "SKIPPED: beside transformers: has groups of beams, and no layers in caches" if HAS_GROUPS else ""
    WHY_NO_GROUPS = "" if HAS_GROUPS else "SKIPPED: beside groups of transformers: needs 4.51"
except ImportError as error:
    WHY = WHY_NO_GROUPS = f"SKIPPED: beside transformers: {error}"

PAD, EOS = 0, 2  # of all models here


class Favour:
    """A logits processor of a user's own, for arrays and tensors: likes tokens that follow their predecessor, by the whole history."""

    def __call__(self, input_ids, scores):
        scores = scores + 0
        for i, ids in enumerate(input_ids.tolist()):
            scores[i, (ids[-1] + len(ids)) % scores.shape[1]] += 1.5
        return scores


class Second:
    """A stopping criterion: the second token that is 5 modulo 4, of prompt and output."""

    def __call__(self, input_ids, scores, **others):
        over = (input_ids % 4 == 1).sum(-1) >= 3
        return over


def allowed(number, tokens):
    """prefix_allowed_tokens_fn: by the last token, and the input."""
    last = int(tokens[-1])
    return [token for token in range(2, 24) if (token + last + number) % 3] + [EOS]


BOTH, ALONE, BEAMS, SAMPLES = "greedy beams", "greedy", "beams", "samples"


def cases(size, source_length):
    """[argument, where it is tried, its arguments]; callables by name."""
    last = size - 1
    return [
        ["no length: 20 new tokens", ALONE, dict(max_new_tokens=None)],
        ["max_length", BOTH, dict(max_length=9, max_new_tokens=None)],
        ["min_length", BOTH, dict(min_length=9)],
        ["min_new_tokens", BOTH, dict(min_new_tokens=7)],
        ["repetition_penalty", BOTH, dict(repetition_penalty=1.3)],
        ["repetition_penalty", BOTH, dict(repetition_penalty=0.8)],
        ["no_repeat_ngram_size", BOTH, dict(no_repeat_ngram_size=1)],
        ["no_repeat_ngram_size", BOTH, dict(no_repeat_ngram_size=2)],
        ["no_repeat_ngram_size", BOTH, dict(no_repeat_ngram_size=3)],
        ["bad_words_ids", BOTH, dict(bad_words_ids=[[3], [4, 5], [6, 7], [EOS]])],
        ["bad_words_ids", BOTH, dict(bad_words_ids=[[t, u] for t in range(2, 9) for u in range(3, 9)])],
        ["suppress_tokens", BOTH, dict(suppress_tokens=[5, 6, 7])],
        ["suppress_tokens", BOTH, dict(suppress_tokens=[3, EOS])],
        ["begin_suppress_tokens", BOTH, dict(begin_suppress_tokens=[3, 4, 5, 6, EOS])],
        ["forced_bos_token_id", BOTH, dict(forced_bos_token_id=4)],
        ["forced_bos_token_id, begin_suppress_tokens", BOTH, dict(forced_bos_token_id=4, begin_suppress_tokens=[3, 4, 5, 6, 7])],
        ["forced_eos_token_id", BOTH, dict(forced_eos_token_id=EOS, min_new_tokens=8)],
        ["sequence_bias", BOTH, dict(sequence_bias=[[[3], 2.5], [[4, 5], 4.0], [[5, 3], -3.0], [[EOS], -1.0]])],
        ["exponential_decay_length_penalty", BOTH, dict(exponential_decay_length_penalty=(2, 1.4))],
        ["encoder_repetition_penalty", BOTH, dict(encoder_repetition_penalty=1.4)],
        ["encoder_no_repeat_ngram_size", BOTH, dict(encoder_no_repeat_ngram_size=2)],
        ["renormalize_logits", BOTH, dict(renormalize_logits=True, suppress_tokens=[4, 5])],
        ["remove_invalid_values", BOTH, dict(remove_invalid_values=True, suppress_tokens=[4])],
        ["prefix_allowed_tokens_fn", BOTH, dict(prefix_allowed_tokens_fn="allowed")],
        ["logits_processor", BOTH, dict(logits_processor="favour")],
        ["logits_processor, repetition_penalty", BOTH, dict(logits_processor="favour", repetition_penalty=1.2, min_new_tokens=3)],
        ["stopping_criteria", BOTH, dict(stopping_criteria="second")],
        ["stopping_criteria", BOTH, dict(stopping_criteria="second", min_new_tokens=3)],
        ["stopping_criteria, early_stopping", BEAMS, dict(stopping_criteria="second", early_stopping=True, length_penalty=0.5)],
        ["stopping_criteria, early_stopping", BEAMS, dict(stopping_criteria="second", early_stopping="never", repetition_penalty=1.2)],
        ["eos_token_id", BOTH, dict(eos_token_id=[4, 7])],
        ["eos_token_id, min_new_tokens", BOTH, dict(eos_token_id=5, min_new_tokens=4)],
        ["guidance_scale", ALONE, dict(guidance_scale=1.7)],
        ["prompt_lookup_num_tokens", ALONE, dict(prompt_lookup_num_tokens=3)],
        ["length_penalty", BEAMS, dict(length_penalty=0.0)],
        ["length_penalty", BEAMS, dict(length_penalty=2.0)],
        ["early_stopping", BEAMS, dict(early_stopping=True)],
        ["early_stopping", BEAMS, dict(early_stopping="never", length_penalty=1.5)],
        ["all rules together", BOTH, dict(repetition_penalty=1.2, no_repeat_ngram_size=2, bad_words_ids=[[3, 4]], min_new_tokens=3,
                                          suppress_tokens=[last], begin_suppress_tokens=[5], renormalize_logits=True)],
        ["temperature, top_k, top_p", SAMPLES, dict(temperature=0.7, top_k=9, top_p=0.9)],
        ["min_p", SAMPLES, dict(min_p=0.2, top_k=0)],
        ["typical_p", SAMPLES, dict(typical_p=0.6, top_k=0)],
        ["epsilon_cutoff", SAMPLES, dict(epsilon_cutoff=0.05, top_k=0)],
        ["eta_cutoff", SAMPLES, dict(eta_cutoff=0.1, top_k=0)],
        ["top_h", SAMPLES, dict(top_h=0.5, top_k=0)],
        ["repetition_penalty, sampled", SAMPLES, dict(repetition_penalty=1.3, temperature=1.5, top_p=0.8)],
    ]


def group_cases():
    """[argument, its arguments], of transformers 4.51."""
    plain = dict(num_beam_groups=2, diversity_penalty=0.8, num_beams=4, num_return_sequences=4)
    return [
        ["num_beam_groups, diversity_penalty", plain],
        ["num_beam_groups, diversity_penalty", plain | dict(num_beam_groups=4, diversity_penalty=0.3)],
        ["num_beam_groups, diversity_penalty", plain | dict(num_beam_groups=3, diversity_penalty=2.0, num_beams=9, num_return_sequences=9)],
        ["num_return_sequences", plain | dict(num_return_sequences=2)],
        ["length_penalty", plain | dict(length_penalty=0.0)],
        ["length_penalty", plain | dict(length_penalty=2.0)],
        ["length_penalty", plain | dict(length_penalty=-1.0)],
        ["early_stopping", plain | dict(early_stopping=True)],
        ["early_stopping", plain | dict(early_stopping="never", length_penalty=1.5)],
        ["early_stopping", plain | dict(early_stopping="never", length_penalty=-0.5)],
        ["max_length", plain | dict(max_length=9, max_new_tokens=None)],
        ["min_new_tokens", plain | dict(min_new_tokens=5)],
        ["no_repeat_ngram_size", plain | dict(no_repeat_ngram_size=2)],
        ["bad_words_ids", plain | dict(bad_words_ids=[[3], [4, 5], [6, 7]])],
        ["suppress_tokens", plain | dict(suppress_tokens=[5, 6, 7])],
        ["begin_suppress_tokens", plain | dict(begin_suppress_tokens=[3, 4, 5, 6, EOS])],
        # 4.51 passes over phrases that are longer than the prompt, at the first token
        ["sequence_bias", plain | dict(sequence_bias=[[[3], 2.5], [[4, 5], 4.0], [[EOS], -1.0]])],
        ["prefix_allowed_tokens_fn", plain | dict(prefix_allowed_tokens_fn="allowed")],
        ["eos_token_id", plain | dict(eos_token_id=[4, 7])],
        ["pad_token_id", plain | dict(pad_token_id=1)],
    ]


def of_transformers():
    """Cases with its own objects."""
    rules = lambda: [transformers.RepetitionPenaltyLogitsProcessor(1.3), transformers.SequenceBiasLogitsProcessor({(4, 5): 3.0, (7,): 1.0}),
                     transformers.NoRepeatNGramLogitsProcessor(2), transformers.MinLengthLogitsProcessor(7, EOS)]
    return [
        ["logits_processor of transformers", BOTH, dict(logits_processor=rules())],
        ["watermarking_config", BOTH, dict(watermarking_config=transformers.WatermarkingConfig(bias=3.0, seeding_scheme="lefthash", context_width=1))],
        ["watermarking_config, sampled", SAMPLES, dict(watermarking_config=transformers.WatermarkingConfig(bias=3.0), top_k=7)],
        ["stopping_criteria of transformers", BOTH, dict(stopping_criteria=[transformers.MaxLengthCriteria(8), Second()])],
        ["stop_strings", BOTH, dict(stop_strings=["ca", "bb", "abe"], tokenizer=tokenizer_of_letters())],
        ["stop_strings", BOTH, dict(stop_strings="a", tokenizer=tokenizer_of_letters(), min_new_tokens=3)],
    ]


# Of tokens 3 to 23; the others are control tokens, which transformers spells in its stop strings.
LETTERS = "a b c d e f ab bc ca abc cb ba aa bb cc da ad be eb fa af".split()
SPELT = [b"<pad>", b"<s>", b"</s>", *(text.encode() for text in LETTERS)]


def tokenizer_of_letters():
    model = tokenizers.Tokenizer(tokenizers.models.BPE({text.decode(): i for i, text in enumerate(SPELT)}, []))
    model.decoder = tokenizers.decoders.Fuse()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=model, bos_token="<s>", eos_token="</s>", pad_token="<pad>")


def ours(arguments):
    made = dict(arguments)
    if "prefix_allowed_tokens_fn" in made:
        made["prefix_allowed_tokens_fn"] = allowed
    if made.get("logits_processor") == "favour":
        made["logits_processor"] = [Favour()]
    if made.get("stopping_criteria") == "second":
        made["stopping_criteria"] = [Second()]
    return made


def theirs(arguments):
    made = ours(arguments)
    if "logits_processor" in made:
        made["logits_processor"] = transformers.LogitsProcessorList(made["logits_processor"])
    if "stopping_criteria" in made:
        made["stopping_criteria"] = transformers.StoppingCriteriaList(made["stopping_criteria"])
    if "sequence_bias" in made:
        made["sequence_bias"] = {tuple(phrase): added for phrase, added in made["sequence_bias"]}
    return made


def searches(where):
    if where == SAMPLES:
        return [dict(do_sample=True)]
    return [dict(num_beams=3, num_return_sequences=3) if one == "beams" else {} for one in where.split()]


def same_scores(one, other):
    """Whether lines of scores are the same to 1e-4; impossible is impossible."""
    one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
    one, other = np.where(one < -1e30, -np.inf, one), np.where(other < -1e30, -np.inf, other)
    return one.shape == other.shape and np.allclose(one, other, rtol=1e-4, atol=1e-4)


def log_softmax(line):
    line = np.asarray(line, np.float64)
    return line - line.max() - np.log(np.exp(line - line.max()).sum())


def answers(model, inputs, arguments, prompt):
    """What transformers answers: for each input, for each hypothesis: tokens, score of a beam, lines of scores."""
    stops = arguments.get("num_beams", 1) > 1 and ("stopping_criteria" in arguments or "stop_strings" in arguments)
    # One at a time there; where all beams of an input stop, it goes on with them as long as another input does.
    if ("prompt_lookup_num_tokens" in arguments or stops) and len(inputs) > 1:
        return [one for given in inputs for one in answers(model, [given], arguments, prompt)]
    sampled = arguments.get("do_sample")
    with torch.no_grad():
        found = model.generate(torch.tensor(inputs), return_dict_in_generate=True, output_scores=True, **arguments)
    each = arguments.get("num_return_sequences", 1)
    tokens = found.sequences[:, prompt:].tolist()
    answered = []
    for i in range(len(inputs)):
        its = []
        for k in range(i * each, (i + 1) * each):
            if arguments.get("num_beams", 1) > 1:
                if (score := float(found.sequences_scores[k])) > -1e8:  # else it has found no more, and fills up
                    its.append((tokens[k], score, None))
            else:
                steps = [1e9 if s is None else s[k].tolist() for s in found.scores[:1 if sampled else len(tokens[k])]]
                its.append((tokens[k], 0.0, steps))
        answered.append(its)
    return answered


def compare(model, inputs, arguments, answered):
    """None, or in which way sluice differs."""
    beams, sampled = arguments.get("num_beams", 1) > 1, arguments.get("do_sample")
    ending = arguments.get("eos_token_id", EOS)
    ending = ending[0] if isinstance(ending, list) else ending
    results = sluice.generate(model, inputs, **arguments)
    detailed = sluice.generate(model, inputs, output_scores=True, **arguments) if not beams and "prompt_lookup_num_tokens" not in arguments else results
    for result, more, wanted in zip(results, detailed, answered):
        if len(result) != len(wanted):
            return f"{len(result)} hypotheses for {len(wanted)}"
        for h, d, (tokens, score, steps) in zip(result, more, wanted):
            if sampled:  # only what the first token is drawn from is the same
                if steps is not None and not same_scores(d.scores[0], steps[0]):
                    return f"other scores of the first token: {d.scores[0]} for {steps[0]}"
                continue
            if "num_beam_groups" in arguments and h.finished:
                h.tokens[-1] = ending  # the first one ends all there
            behind = tokens[len(h.tokens):]  # beams are filled up with the first eos where the padding is 0
            if h.tokens != tokens[:len(h.tokens)] or behind and (set(behind) - {PAD, ending, arguments.get("pad_token_id")} or h.stop < 0 and h.tokens[-1:] == [PAD]):
                return f"tokens {h.tokens} for {tokens}"
            if beams and not math.isclose(h.score, score, rel_tol=1e-4, abs_tol=1e-4):
                return f"score {h.score} for {score} of {tokens}"
            if not beams and steps is not None:
                if d.tokens != h.tokens:
                    return f"with output_scores {d.tokens}, without {h.tokens}"
                for token, log_prob, line in zip(h.tokens, h.log_probs, steps):
                    wanted_one = log_softmax(line)[token]
                    if not math.isclose(log_prob, wanted_one, rel_tol=1e-4, abs_tol=1e-4):
                        return f"log_prob {log_prob} for {wanted_one}"
                if d.scores is not None and not all(same_scores(one, line) for one, line in zip(d.scores, steps)):
                    return "other scores"
    return None


# ---- a table, against what transformers gave for it --------------------------------------------------------------------


class Lookup:
    """A prompt goes in, and the table's logits of seed 7 come out."""

    def __init__(self):
        self.table = Table(V=24, scale=6.0, eos_bias=-2.0, eos_slope=0.3)

    def line(self, tokens):
        line = self.table.logits(7, tokens).copy()
        line[:2] = -20.0  # transformers knows no tokens that are never generated
        return line


PROMPTS = {1: [[5], [9], [20], [3]], 4: [[5, 6, 7, 5], [9, 9, 9, 9], [4, 3, 4, 3], [20, 21, 3, 20]]}


def ours_of_table():
    lookup = Lookup()
    return sluice.FunctionModel(lookup.line, sluice.Vocabulary(24, bos=1, eos=EOS))


def group_runs():
    for length, prompts in PROMPTS.items():
        for argument, arguments in group_cases():
            yield f"{argument}, {arguments}, {length}", prompts, dict(max_new_tokens=8, pad_token_id=PAD) | arguments


def table_runs():
    """(name, prompts, arguments) of each."""
    for length, prompts in PROMPTS.items():
        for argument, where, arguments in cases(24, length):
            if length == 1 and argument in ("prompt_lookup_num_tokens", "guidance_scale"):
                continue  # nothing to look up, and the guided and the unguided prompt are one
            for search in searches(where):
                yield f"{argument}, {arguments}, {search}, {length}", prompts, dict(max_new_tokens=8) | arguments | search


class OverTable(unittest.TestCase):
    def test_is_what_transformers_gave(self):
        self.compare_with(EXPECTED, table_runs(), 100)

    def test_groups_are_what_transformers_gave(self):
        self.compare_with(EXPECTED_GROUPS, group_runs(), 35)

    def compare_with(self, file, runs, least):
        expected = json.loads(file.read_text())
        model, names = ours_of_table(), set()
        for name, prompts, arguments in runs:
            names.add(name)
            self.assertTrue(name in expected["answers"], f"{name}: run test_huggingface.py --write")
            answered = [[(tokens, score, None if steps is None else [[-math.inf if x is None else x for x in line] for line in steps])
                         for tokens, score, steps in its] for its in expected["answers"][name]]
            with self.subTest(name):
                self.assertIsNone(compare(model, prompts, ours(arguments), answered))
        self.assertEqual(names, set(expected["answers"]))
        self.assertGreater(len(names), least)


class Put(list):
    """A streamer."""

    def put(self, value):
        self.append(value.tolist())

    def end(self):
        self.append("end")


class Arguments(unittest.TestCase):
    """What is not a table of numbers."""

    def setUp(self):
        self.model, self.prompts = ours_of_table(), PROMPTS[4]
        self.plain = [result.tokens for result in sluice.generate(self.model, self.prompts, max_new_tokens=8)]

    def tokens(self, prompts=None, **arguments):
        given = {"max_new_tokens": 8} | arguments
        return [result.tokens for result in sluice.generate(self.model, self.prompts if prompts is None else prompts, **given)]

    def test_what_a_tokenizer_returns(self):
        batch = dict(input_ids=np.array([[0, 0] + prompt for prompt in self.prompts]), attention_mask=np.array([[0, 0, 1, 1, 1, 1]] * 4),
                     token_type_ids=np.zeros((4, 6), int))
        self.assertEqual([r.tokens for r in sluice.generate(self.model, **batch, max_new_tokens=8)], self.plain)
        self.assertEqual(self.tokens(batch["input_ids"], attention_mask=batch["attention_mask"], repetition_penalty=1.3),
                         self.tokens(repetition_penalty=1.3))  # padding is nothing that has occurred
        with self.assertRaisesRegex(ValueError, "attention_mask has lines of"):
            self.tokens(attention_mask=[[1]] * 4)

    def test_other_lengths_and_batches_change_nothing(self):
        for given in (dict(repetition_penalty=1.3), dict(repetition_penalty=1.3, num_beams=3), dict(logits_processor=Favour(), num_beams=2),
                      dict(stopping_criteria=[Second()])):
            prompts = self.prompts + [[3], [4, 9, 9, 3, 20, 20]] * 3
            alone = [self.tokens([prompt], **given)[0] for prompt in prompts]
            self.assertEqual(self.tokens(prompts, **given), alone)
            self.assertEqual(self.tokens(prompts, batch=3, **given), alone)

    def test_a_processor_is_called_once_a_step(self):
        seen = []

        def watch(ids, scores):
            seen.append(ids.tolist())
            return scores

        tokens = self.tokens(logits_processor=watch, max_new_tokens=4)
        self.assertEqual(seen[0], self.prompts)
        self.assertEqual(seen[2], [prompt + its[:2] for prompt, its in zip(self.prompts, tokens)])
        self.assertEqual(len(seen), 4)

    def test_start_tokens_and_config(self):
        encoder = sluice.FunctionModel(lambda tokens, source: self.model.function([*source, *tokens]), sluice.Vocabulary(24, bos=5, eos=EOS),
                                       takes_source=True, is_encoder_decoder=True)
        wanted = self.tokens([[9, 9, 7], [4, 7]])
        for given in dict(decoder_start_token_id=7), dict(decoder_start_token_id=[7, 7]), dict(bos_token_id=7), dict(
                decoder_input_ids=[[7], [7]], decoder_start_token_id=7):
            self.assertEqual([r.tokens for r in sluice.generate(encoder, [[9, 9], [4]], max_new_tokens=8, **given)], wanted, given)
        self.assertEqual([r.tokens for r in sluice.generate(encoder, [[9, 9]], decoder_input_ids=[[7]], max_new_tokens=8)],
                         self.tokens([[9, 9, 5, 7]]))  # the start token is put before it
        self.assertEqual(self.tokens(generation_config=dict(repetition_penalty=1.3, max_length=5, transformers_version="5")),
                         self.tokens(repetition_penalty=1.3))
        config = type("Config", (), {"to_diff_dict": lambda self: dict(num_beams=3, max_new_tokens=4, _from_model_config=True)})()
        self.assertEqual([r.tokens for r in sluice.generate(self.model, self.prompts, generation_config=config)],
                         self.tokens(num_beams=3, max_new_tokens=4))
        self.assertEqual(len(self.tokens(generation_config=config, num_beams=1, max_new_tokens=None, max_length=6)[0]), 2)
        self.assertEqual(self.tokens([[6]], max_new_tokens=3), [r.tokens for r in sluice.generate(self.model, bos_token_id=6, max_new_tokens=3)])

    def test_streamer(self):
        for given in {}, dict(repetition_penalty=1.3), dict(prompt_lookup_num_tokens=3), dict(stopping_criteria=[Second()]):
            put = Put()
            tokens, = self.tokens(self.prompts[:1], streamer=put, **given)
            self.assertEqual(put, [self.prompts[:1], *([token] for token in tokens), "end"])
            self.assertEqual([tokens], self.tokens(self.prompts[:1], **given))

    def test_max_time(self):
        clock = unittest.mock.patch("time.monotonic")
        for given in {}, dict(num_beams=2, num_return_sequences=2):
            with clock as time:
                time.side_effect = [0, *(k / 10 for k in range(1, 99))]
                result, = sluice.generate(self.model, self.prompts[:1], max_time=0.3, min_new_tokens=9, max_new_tokens=20, **given)
            for hypothesis in result:
                self.assertEqual((len(hypothesis.tokens), hypothesis.finished), (3, False))
                self.assertEqual(len(hypothesis.log_probs), 3)
                self.assertAlmostEqual(hypothesis.score, hypothesis.log_prob / (3 if given else 1), 5)
            if not given:
                self.assertEqual(result.tokens, self.tokens(self.prompts[:1], min_new_tokens=3, max_new_tokens=3)[0])

    def test_guesses_change_nothing(self):
        wanted = self.tokens(repetition_penalty=1.3)
        for guesses in dict(assistant_model=ours_of_table()), dict(assistant_model=ours_of_table(), num_assistant_tokens=2), dict(
                prompt_lookup_num_tokens=2), dict(prompt_lookup_num_tokens=3, max_matching_ngram_size=1):
            self.assertEqual(self.tokens(**guesses), self.plain)
            self.assertEqual(self.tokens(repetition_penalty=1.3, **guesses), wanted)
        result = sluice.generate(self.model, self.prompts[:1], assistant_model=ours_of_table(), num_assistant_tokens=2, max_new_tokens=8)[0]
        self.assertEqual(max(result.best.blocks), 3)  # its guesses are right

    def test_negative_prompts(self):
        negative = [[3], [4, 4], [5], [6, 7, 8]]
        guided = self.tokens(guidance_scale=1.5)
        for blocks in True, False:  # several tokens in a row, or one
            if not blocks:
                self.model.abilities = sluice.Abilities()
                self.assertEqual(self.tokens(guidance_scale=1.5), guided)
            for prompt, other, tokens in zip(self.prompts, negative, self.tokens(guidance_scale=1.5, negative_prompt_ids=negative)):
                for i, token in enumerate(tokens):
                    one, without = (log_softmax(self.model.function(begin + tokens[:i])) for begin in (prompt, other))
                    self.assertEqual(token, np.argmax(1.5 * (one - without) + without))

    def test_scores_of_each_token(self):
        for given in {}, dict(num_beams=3, num_return_sequences=3), dict(do_sample=True, seed=3):
            for result in sluice.generate(self.model, self.prompts, output_logits=True, output_scores=True, top_logprobs=2, repetition_penalty=1.2,
                                          max_new_tokens=5, **given):
                for h in result:
                    self.assertEqual(h.logits.shape, (len(h.tokens), 24))
                    prompt = self.prompts[result.id]
                    for i, token in enumerate(h.tokens):
                        self.assertTrue(np.allclose(h.logits[i], self.model.function(prompt + h.tokens[:i]), atol=1e-5))
                        line = h.scores[i] if "num_beams" in given else log_softmax(h.scores[i])
                        self.assertAlmostEqual(h.log_probs[i], line[token], 4)
                        self.assertEqual([t for t, _ in h.top_log_probs[i]], np.argsort(-h.scores[i], kind="stable")[:2].tolist())

    def test_decoders(self):
        decoder = sluice.Decoder(self.model)
        self.assertEqual([r.tokens for r in sluice.generate(decoder, self.prompts, repetition_penalty=1.3, max_new_tokens=8)],
                         self.tokens(repetition_penalty=1.3))
        self.assertEqual([r.tokens for r in sluice.generate(decoder, self.prompts, eos_token_id=[12, EOS], max_new_tokens=8)],
                         [its[:its.index(12) + 1] if 12 in its else its for its in self.plain])
        with sluice.Server(decoder):
            with self.assertRaisesRegex(sluice.Error, "belongs to a server"):
                sluice.generate(decoder, self.prompts, repetition_penalty=1.3)


def write_table():
    class Config(transformers.PretrainedConfig):
        model_type = "table"

    class Model(transformers.PreTrainedModel, transformers.GenerationMixin):
        config_class = Config
        main_input_name = "input_ids"

        def __init__(self, config):
            super().__init__(config)
            self.lookup, self.weight = Lookup(), torch.nn.Parameter(torch.zeros(1))

        def forward(self, input_ids, attention_mask=None, **others):
            lines = [[self.lookup.line(tokens[:i + 1]) for i in range(len(tokens))] for tokens in input_ids.tolist()]
            return transformers.modeling_outputs.CausalLMOutput(logits=torch.tensor(np.array(lines), dtype=torch.float32))

    model = Model(Config(vocab_size=24, pad_token_id=PAD, eos_token_id=EOS, bos_token_id=1))
    rounded = lambda line: [None if x < -1e30 else round(x, 4) for x in line]
    answers_of = {}
    for name, prompts, arguments in group_runs() if HAS_GROUPS else table_runs():
        if "prompt_lookup_num_tokens" in arguments:  # changes the time alone, and needs a cache there
            arguments = {one: value for one, value in arguments.items() if one != "prompt_lookup_num_tokens"}
        found = answers(model, prompts, dict(pad_token_id=PAD) | theirs(arguments) | dict(use_cache=False), len(prompts[0]))
        sampled = "do_sample" in arguments  # whose tokens are others each time
        answers_of[name] = [
            [([] if sampled else tokens, round(score, 5), [rounded(line) for line in steps[:4]] if steps is not None and i == 0 else None)
             for tokens, score, steps in its] for i, its in enumerate(found)]
    (EXPECTED_GROUPS if HAS_GROUPS else EXPECTED).write_text(json.dumps({"transformers": transformers.__version__, "answers": answers_of}, separators=(",", ":"))
                        .replace('"answers":{', '"answers":{\n').replace(']]],"', ']]],\n"') + "\n")


# ---- random models of transformers -----------------------------------------------------------------------------------------


def tiny(kind, seed):
    torch.manual_seed(seed)
    V = 24
    shared = dict(vocab_size=V, pad_token_id=PAD, eos_token_id=EOS, bos_token_id=1)
    sides = dict(d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32,
                 decoder_ffn_dim=32, max_position_embeddings=64)
    if kind == "GPT-2":
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=16, n_layer=2, n_head=2, n_positions=64, **shared))
    elif kind == "LLaMA":
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
            **shared))
    elif kind == "BART":
        model = transformers.BartForConditionalGeneration(transformers.BartConfig(
            decoder_start_token_id=EOS, forced_bos_token_id=None, forced_eos_token_id=None, **sides, **shared))
    elif kind == "T5":
        model = transformers.T5ForConditionalGeneration(transformers.T5Config(
            d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=PAD, **shared))
    else:
        model = transformers.MarianMTModel(transformers.MarianConfig(
            decoder_start_token_id=PAD, forced_eos_token_id=None, **sides, **shared))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                weight.normal_(0, 0.45 if "shared" in name or "wte" in name else 0.6)
        model.generation_config.forced_bos_token_id = model.generation_config.forced_eos_token_id = None
        model.generation_config.num_beams = 1
        model.generation_config.bad_words_ids = None
        model.generation_config.max_length = None
    return model.eval()


def over(model, **arguments):
    """A model of transformers as one of sluice."""
    return (sluice.huggingface.Seq2Seq if model.config.is_encoder_decoder else sluice.huggingface.CausalLM)(model, **arguments)


@unittest.skipIf(WHY, WHY)
class BesideTransformers(unittest.TestCase):
    differences: list = []

    def test_generate(self):
        table, self.__class__.differences = compare_all()
        for line in self.differences[:20]:
            print(line)
        self.assertGreater(len(table), 25)
        self.assertEqual(self.differences, [])
        self.assertEqual([(name, counts) for name, counts in table.items() if counts[0] != counts[1]], [])

    def test_objects_of_transformers(self):
        model = tiny("GPT-2", 1)
        mine, prompts = over(model), [[5, 6, 7], [9, 9, 9]]
        config = transformers.GenerationConfig(max_new_tokens=6, repetition_penalty=1.4, num_beams=2, eos_token_id=EOS, pad_token_id=PAD)
        found = model.generate(torch.tensor(prompts), generation_config=config)[:, 3:].tolist()
        for result, tokens in zip(sluice.generate(mine, torch.tensor(prompts), generation_config=config), found):
            self.assertEqual(result.tokens, tokens[:len(result.tokens)])
        padded = torch.tensor([[0, 0, 5, 6, 7], [3, 4, 9, 9, 9]])
        for given in {}, dict(num_beams=3), dict(no_repeat_ngram_size=2):
            batch = transformers.BatchEncoding(dict(input_ids=padded, attention_mask=(padded != 0).long()))
            found = model.generate(**batch, max_new_tokens=6, pad_token_id=PAD, **given)[:, 5:].tolist()
            for result, tokens in zip(sluice.generate(mine, **batch, max_new_tokens=6, **given), found):
                self.assertEqual(result.tokens, tokens[:len(result.tokens)])

        class Words:  # all of a tokenizer that a streamer needs
            def decode(self, tokens, **others):
                return "".join(f"t{int(token)} " for token in tokens)

        class Printed(transformers.TextStreamer):
            def __init__(self):
                super().__init__(Words())
                self.text = ""

            def on_finalized_text(self, text, stream_end=False):
                self.text += text

        one, other = Printed(), Printed()
        model.generate(torch.tensor(prompts[:1]), max_new_tokens=6, streamer=one, pad_token_id=PAD)
        sluice.generate(mine, prompts[:1], max_new_tokens=6, streamer=other)
        self.assertEqual(one.text, other.text)
        self.assertGreater(len(one.text), 20)


def stepwise(model, source, tokens):
    """[tokens, V]: what the model answers before each token of its output, without a cache."""
    with torch.no_grad():
        if model.config.is_encoder_decoder:
            begin = [model.generation_config.decoder_start_token_id]
            return model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([begin + tokens[:-1]]), use_cache=False).logits[0].numpy()
        return model(input_ids=torch.tensor([source + tokens[:-1]]), use_cache=False).logits[0, len(source) - 1:].numpy()


@unittest.skipIf(WHY, WHY)
class Pretrained(unittest.TestCase):
    """CausalLM and Seq2Seq: rows of all lengths in one cache, which come and go, beside generate() of one row at a time."""

    @classmethod
    def setUpClass(cls):
        transformers.logging.set_verbosity_error()
        torch.set_num_threads(1)
        generator = np.random.default_rng(1)
        cls.sources = [generator.integers(3, 24, n).tolist() for n in (5, 2, 9, 5, 1, 7, 12)]
        cls.models = {kind: tiny(kind, 3) for kind in ("GPT-2", "LLaMA", "BART", "T5", "Marian")}

    def alone(self, model, source, **given):
        begin = 1 if model.config.is_encoder_decoder else len(source)
        found = model.generate(torch.tensor([source]), attention_mask=torch.ones(1, len(source), dtype=torch.long), pad_token_id=PAD, **given)
        return [line[begin:] for line in found.tolist()]

    def test_any_schedule(self):
        for kind, model in self.models.items():
            for given in dict(max_new_tokens=10), dict(max_new_tokens=8, num_beams=4, num_return_sequences=4):
                wanted = [self.alone(model, source, **given) for source in self.sources]
                for batch, ragged in (64, None), (3, None), (64, False):
                    mine = over(model, ragged=ragged)
                    self.assertEqual(mine.abilities.ragged, ragged is None)
                    for its, result in zip(wanted, sluice.generate(mine, self.sources, batch=batch, **given)):
                        found = [hypothesis.tokens for hypothesis in result]
                        self.assertEqual(found, [line[:len(tokens)] for line, tokens in zip(its, found)], (kind, given, batch, ragged))
                    self.assertEqual(mine._slots, {})
                if "num_beams" not in given:  # and no tie decides
                    for source, (tokens,) in zip(self.sources, wanted):
                        two = np.sort(stepwise(model, source, tokens))[:, -2:]
                        self.assertGreater((two[:, 1] - two[:, 0]).min(), 1e-4, kind)

    def test_samples(self):
        given = dict(do_sample=True, temperature=0.8, top_k=7, seed=5, max_new_tokens=9, num_return_sequences=2, output_scores=True)
        for kind, model in self.models.items():
            results = sluice.generate(over(model), self.sources, **given)
            for result, source in zip(results, self.sources):
                for one in result:  # drawn from what transformers would draw from
                    lines = stepwise(model, source, one.tokens) / 0.8
                    kept = lines >= np.sort(lines)[:, -7:-6]
                    self.assertTrue((np.isfinite(one.scores) == kept).all(), kind)
                    self.assertTrue(np.allclose(one.scores[kept], lines[kept], atol=1e-4), kind)
            for other in sluice.generate(over(model), self.sources, batch=2, **given), sluice.generate(over(model, ragged=False), self.sources, **given):
                self.assertEqual([[h.tokens for h in result] for result in other], [[h.tokens for h in result] for result in results], kind)
            self.assertGreater(len({tuple(h.tokens) for result in results for h in result}), 9)

    def test_rows_that_are_cut_back(self):
        for kind, model in self.models.items():
            search = dict(search=sluice.Greedy(length=sluice.LengthLimits(max=12)))
            requests = [sluice.Request(source, **search) if model.config.is_encoder_decoder else sluice.Request(prompt=source, **search)
                        for source in self.sources]
            wanted = [result.tokens for result in sluice.decode(over(model), requests)]
            mine, generator, cut = over(model), np.random.default_rng(3), 0

            def propose(drafts):  # bad guesses, of any number
                return [generator.integers(3, 24, generator.integers(0, 4)).tolist() for _ in drafts]
            mine.propose = propose
            inner = mine._assemble
            def counted(slots, columns, held):
                nonlocal cut
                cut += held is not None
                return inner(slots, columns, held)
            mine._assemble = counted
            for request in requests:
                request.search = sluice.Blockwise(block=4, length=sluice.LengthLimits(max=12))
            self.assertEqual([result.tokens for result in sluice.decode(mine, requests, sluice.Blockwise(), batch=4)], wanted, kind)
            self.assertGreater(cut, 3)

    def test_rows_that_sit_out(self):
        """Slots that no row names stay as they are, and a cache most of whose rows have gone gives their memory back."""
        rows = lambda *its: sluice.Rows.of([sluice.Row(*one) for one in its])
        for kind, model in self.models.items():
            mine, sources = over(model), [source if model.config.is_encoder_decoder else None for source in self.sources[:4]]
            bos = mine.vocabulary.bos
            mine.start(sources, [0, 1, 2, 3])
            mine.step(rows(*((i, i, 0, 1, [bos, 5 + i][:1 + i % 2]) for i in range(4))))
            whole = mine._slots[3].group
            for i in range(3):
                mine.step(rows(*((k, k, 1 + k % 2 + i, 1, [7 + k]) for k in (0, 1, 2))))
            self.assertIsNot(mine._slots[3].group, whole)
            self.assertEqual(len(mine._slots[3].group.sources), 1)
            found = mine.step(rows((1, 1, 5, 1, [4]), (3, 3, 2, 2, [9, 6]), (3, 8, 2, 1, [5])))
            for line, (number, tokens) in zip(found, ((1, [bos, 6, 8, 8, 8, 4]), (3, [bos, 8, 9]), (3, [bos, 8, 9, 6]), (3, [bos, 8, 5]))):
                with torch.no_grad():
                    given = dict(input_ids=torch.tensor([self.sources[number]]), decoder_input_ids=torch.tensor([tokens])) if mine.is_encoder_decoder else dict(
                        input_ids=torch.tensor([tokens]))
                    self.assertLess((model(**given, use_cache=False).logits[0, -1] - line).abs().max(), 1e-4, kind)

    def test_servers(self):
        for kind in "LLaMA", "Marian":
            model = self.models[kind]
            wanted = [self.alone(model, source, max_new_tokens=6 + i)[0] for i, source in enumerate(self.sources)]
            with sluice.Server(over(model), sluice.Greedy(), batch=3) as server:
                futures = []
                for i, source in enumerate(self.sources):
                    search = sluice.Greedy(length=sluice.LengthLimits(max=6 + i))
                    futures.append(server.submit(sluice.Request(source, search=search) if model.config.is_encoder_decoder else
                                                 sluice.Request(prompt=source, search=search)))
                    if i % 3 == 2:
                        futures[i - 2].result()
                self.assertEqual([future.result().tokens for future in futures], wanted)

    def test_what_the_model_asks_for(self):
        model = tiny("LLaMA", 3)
        config = model.generation_config
        config.num_beams, config.max_new_tokens, config.repetition_penalty, config.eos_token_id = 3, 7, 1.3, [2, 9]
        wanted = [self.alone(model, source)[0] for source in self.sources]
        mine = over(model)
        self.assertEqual(list(mine.vocabulary.eos), [2, 9])
        found = [result.tokens for result in sluice.generate(mine, self.sources)]
        self.assertEqual(found, [line[:len(tokens)] for line, tokens in zip(wanted, found)])
        longer = [result.tokens for result in sluice.generate(mine, self.sources, num_beams=1, max_new_tokens=9)]
        self.assertGreater(max(map(len, longer)), 7)

    def test_example(self):
        words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<pad>": 0, "<s>": 1, "</s>": 2} | {f"w{i}": i for i in range(3, 24)}, unk_token="</s>"))
        words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, bos_token="<s>", eos_token="</s>", pad_token="<pad>")
        lines = [" ".join(f"w{token}" for token in source) for source in self.sources]
        for kind, beams in (("T5", 3),):  # a process takes seconds to import transformers
            with tempfile.TemporaryDirectory() as folder:
                self.models[kind].save_pretrained(folder)
                tokenizer.save_pretrained(folder)
                run = subprocess.run([sys.executable, HERE.parents[1] / "examples/huggingface/huggingface.py", folder, "--tokens", "7", "--batch", "2",
                                      "--beams", str(beams)], input="\n".join(lines) + "\n", capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            wanted = [self.alone(self.models[kind], source, max_new_tokens=7, num_beams=beams)[0] for source in self.sources]
            self.assertEqual(run.stdout.split("\n")[:-1], [" ".join(f"w{token}" for token in tokens if token > 2) for tokens in wanted], kind)

    def test_what_is_refused(self):
        for make, model, message in (
                (sluice.huggingface.CausalLM, self.models["T5"], "is_encoder_decoder is True: use Seq2Seq"),
                (sluice.huggingface.Seq2Seq, self.models["GPT-2"], "is_encoder_decoder is False: use CausalLM"),
                (sluice.huggingface.CausalLM, self.models["GPT-2"].transformer, "no output embeddings"),
                (sluice.huggingface.CausalLM, len, "must be a model of transformers"),
                (sluice.huggingface.CausalLM, tiny("GPT-2", 1).train(), r"training mode.*model\.eval\(\)")):
            with self.assertRaisesRegex((TypeError, sluice.ArgumentError), message):
                make(model)
        for source in [], "text", None:
            result, = sluice.decode(over(self.models["BART"]), [source], errors="return")
            self.assertRegex(result.message + str(result.cause), "must be a sequence of tokens")


KINDS = ("GPT-2", "BART", "T5", "Marian")


def compare_all():
    """{argument: [equal, of]}, and what differs."""
    table, differences = {}, []
    generator, changed = np.random.default_rng(4), {}
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)  # more only wait for each other over models so small
    for kind in KINDS:
        for seed in range(5):
            model = tiny(kind, seed)
            mine = over(model, token_bytes=SPELT)
            plain_sources = generator.integers(3, 24, (3, 5)).tolist()
            # In which no string begins: here they are looked for in the output alone.
            ended_sources = [[*source[:-1], 8] for source in plain_sources]
            encoder_decoder = model.config.is_encoder_decoder
            plain = {}
            for argument, where, arguments in cases(24, 5) + of_transformers():
                if encoder_decoder and argument in ("guidance_scale",):
                    continue
                sources = ended_sources if argument == "stop_strings" else plain_sources
                for search in searches(where):
                    given = dict(max_new_tokens=8) | arguments | search
                    name = ", ".join(f"`{one}`" if "_" in one or one == "temperature" else one for one in argument.split(", ")) + (", beams" if "num_beams" in search else "")
                    wanted = answers(model, sources, theirs(given), 1 if encoder_decoder else 5)
                    wrong = compare(mine, sources, ours(given), wanted)
                    key = "num_beams" in search
                    key = key, argument == "stop_strings"
                    if key not in plain:
                        plain[key] = [[h[0] for h in its] for its in answers(model, sources, dict(max_new_tokens=8) | search, 1 if encoder_decoder else 5)]
                    if where != SAMPLES and [[h[0] for h in its] for its in wanted] != plain[key]:
                        changed[name] = changed.get(name, 0) + 1
                    counts = table.setdefault(name, [0, 0])
                    counts[0] += wrong is None
                    counts[1] += 1
                    if wrong is not None:
                        differences.append(f"{kind} {seed} {name} {arguments}: {wrong}")
    idle = [name for name in table if name not in changed and not any(word in name for word in ("sampled", "_p`", "_cutoff", "top_h", "_k`", "prompt_lookup"))]
    differences += [f"{name}: changes no output of any model" for name in idle]
    return table, differences


def compare_groups():
    """The same for groups of beams, of transformers 4.51: its models without their caches."""
    table, differences = {}, []
    generator, spread = np.random.default_rng(4), 0
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    for kind in KINDS:
        for seed in range(5):
            model = tiny(kind, seed)
            encoder_decoder = model.config.is_encoder_decoder

            def line(tokens, source=None):
                with torch.no_grad():
                    given = dict(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([tokens])) if encoder_decoder else dict(input_ids=torch.tensor([tokens]))
                    return model(**given, use_cache=False).logits[0, -1].numpy()
            start = model.generation_config.decoder_start_token_id if encoder_decoder else 1
            mine = sluice.FunctionModel(line, sluice.Vocabulary(24, bos=start, eos=EOS), takes_source=encoder_decoder, is_encoder_decoder=encoder_decoder)
            sources = generator.integers(3, 24, (3, 5)).tolist()
            for argument, arguments in group_cases():
                given = dict(max_new_tokens=8, pad_token_id=PAD) | arguments
                name = ", ".join(f"`{one}`" for one in argument.split(", "))
                wanted = answers(model, sources, theirs(given), 1 if encoder_decoder else 5)
                wrong = compare(mine, sources, ours(given), wanted)
                counts = table.setdefault(name, [0, 0])
                counts[0] += wrong is None
                counts[1] += 1
                spread += len({its[0][0][0] for its in wanted}) > 1 or len({h[0][0] for its in wanted for h in its}) > 1
                if wrong is not None:
                    differences.append(f"{kind} {seed} {name} {arguments}: {wrong}")
    return table, differences + (["no group differs from another"] if spread == 0 else [])


@unittest.skipIf(WHY_NO_GROUPS, WHY_NO_GROUPS)
class BesideGroups(unittest.TestCase):
    def test_generate(self):
        table, differences = compare_groups()
        print(*differences[:20], sep="\n")
        self.assertEqual(differences, [])
        self.assertGreater(len(table), 10)


def write_page():
    table, differences = compare_groups() if HAS_GROUPS else compare_all()
    print(*differences, sep="\n")
    rows = "".join(f"| {name} | {equal} of {count} |\n" for name, (equal, count) in table.items())
    what = " of groups" if HAS_GROUPS else ""
    begin, end = f"<!-- table{what} of tests/python/test_huggingface.py -->\n", f"<!-- table{what} ends -->"
    before, rest = PAGE.read_text().split(begin)
    made = f"\nWith transformers {transformers.__version__}:\n\n| argument | equal |\n| --- | --- |\n{rows}\n"
    PAGE.write_text(before + begin + made + end + rest.split(end, 1)[1])


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write_table()
        write_page()
    else:
        unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Searches from Python find what enumeration and other authors' programs find, whatever the batch; what goes wrong is said."""
import array
import asyncio
import collections
import dataclasses
import json
import math
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import unittest

import numpy as np

import sluice
from sluice import (Abilities, BeamSearch, Blockwise, Grammar, Greedy, LengthLimits, LengthPenalty, NoRepeatNgram,
                    ParticleSample, Penalties, Request, Sample, StochasticBeam, presets)
from sluice._scores import lines_of
from table import BOS, EOS, Table, TableModel, exact, huggingface

ORACLES = pathlib.Path(__file__).resolve().parents[1] / "oracles"
ALL = Abilities(ragged=True, blocks=True, roll_back=True)
LENGTH = LengthLimits(max=12)
TEXTS = [b"", b"", b"", b"[", b"]", b",", b"1", b"1,"]


def seen(results):
    """All numbers of results, to be compared bit for bit."""
    return [[(h.tokens, h.log_probs, h.log_prob, h.score, h.finished) for h in result] for result in results]


class Searches(unittest.TestCase):
    def setUp(self):
        self.small = Table(V=6, eos_slope=0.8)

    def test_greedy(self):
        for seed in range(20):
            model = TableModel(kind="log_probs")
            result, = sluice.decode(model, [seed], Greedy(length=LENGTH))
            tokens, log_probs = [], []
            while len(tokens) < 12 and tokens[-1:] != [EOS]:
                line = model.table.log_probs(seed, tuple(tokens)).astype(np.float32)
                tokens.append(int(np.argmax(line)))
                log_probs.append(float(line[tokens[-1]]))
            self.assertEqual(result.tokens, tokens)
            self.assertEqual(result.best.log_probs, log_probs)
            self.assertAlmostEqual(result.best.log_prob, sum(log_probs), 5)
            self.assertEqual(result.best.finished, tokens[-1] == EOS)
            self.assertFalse(model.slots)

    def test_a_wide_beam_finds_the_best_output(self):
        search = BeamSearch(width=400, length=LengthLimits(max=5))
        for seed in range(4):
            score, tokens = exact(self.small, seed, 5)
            result, = sluice.decode(TableModel(self.small), [seed], search)
            self.assertEqual(tuple(result.tokens), tokens)
            self.assertAlmostEqual(result.score, score, 4)

    def test_rules(self):
        def holds(tokens, phrase):
            return any(tokens[i:i + len(phrase)] == phrase for i in range(len(tokens)))

        for seed in range(3):
            for search, allowed in [
                    (dict(forbidden=[[3], [4, 5]]), lambda t: 3 not in t and not holds(t, (4, 5))),
                    (dict(demanded=[[5, 3]]), lambda t: holds(t, (5, 3))),
                    (dict(no_repeat_ngram=NoRepeatNgram(1)), lambda t: len(set(t)) == len(t)),
                    (dict(catalogue=sluice.Catalogue([[3, 3, 4], [5], [4, 5, 3]])), lambda t: t[:-1] in [(3, 3, 4), (5,), (4, 5, 3)])]:
                _, tokens = exact(self.small, seed, 5, allowed=allowed)
                # Rules act on log-probabilities, which stay as they are.
                result, = sluice.decode(TableModel(self.small), [seed], BeamSearch(width=400, length=LengthLimits(max=5), **search))
                self.assertEqual(tuple(result.tokens), tokens, search)
        self.assertEqual(result.best.constraints_total, 0)

    def test_penalties(self):
        model = TableModel(Table(eos_bias=-20), kind="log_probs")
        for seed in range(5):
            plain, = sluice.decode(model, [seed], Greedy(length=LENGTH))
            result, = sluice.decode(model, [seed], Greedy(length=LENGTH, penalties=Penalties(repetition=50.0, window=-1, prompt=False)))
            for i, token in enumerate(result.tokens):
                line = model.table.log_probs(seed, tuple(result.tokens[:i]))
                line[result.tokens[:i]] *= 50
                self.assertEqual(token, int(np.argmax(line)))
        self.assertNotEqual(plain.tokens, result.tokens)

    def test_grammars(self):
        model = TableModel()
        model.token_bytes = TEXTS
        lists = Grammar.regex(r"\[1(,1)*\]")
        requests = [Request(seed, search=search) for seed in range(6) for search in (
            Greedy(length=LENGTH, grammar=lists), Greedy(length=LENGTH),
            Greedy(length=LENGTH, grammar=Grammar.gbnf('root ::= "[" ("1" | "11") "]"')),
            Greedy(length=LENGTH, grammar=Grammar.json_schema({"type": "array", "items": {"enum": [1, 11]}, "minItems": 2})))]
        requests.append(Request(0, search=Greedy(length=LENGTH, grammar=Grammar.structural_tag(
            {"type": "tag", "begin": "[", "content": {"type": "regex", "pattern": "1+"}, "end": "]"}))))
        requests.append(Request(0, search=Greedy(length=LENGTH, grammar=Grammar.lark('start: list\nlist: list "," ONE | "[" ONE\nONE: "1"~2'))))
        decoder = sluice.Decoder(model)
        texts = [b"".join(TEXTS[t] for t in result.tokens) for result in decoder.decode(requests, Greedy())]
        self.assertRegex(texts.pop(), rb"^\[11(,11)*$")
        self.assertRegex(texts.pop(), rb"^\[1+\]$")
        for plain, text in zip(texts[1::4], texts[0::4]):
            self.assertRegex(text, rb"^\[1(,1)*\]$")
        self.assertTrue(any(text != plain for text, plain in zip(texts[0::4], texts[1::4])))
        self.assertTrue(all(text in (b"[1]", b"[11]") for text in texts[2::4]))
        for text in texts[3::4]:
            self.assertTrue(set(json.loads(text)) <= {1, 11} and len(json.loads(text)) >= 2)
        self.assertEqual(len(decoder._grammars), 5)
        with self.assertRaisesRegex(sluice.ArgumentError, "pattern, line 1, column 1"):
            decoder.check(Grammar.regex("[a-z"))
        self.assertEqual(decoder.check(Grammar.json_schema({"type": "integer", "x-b": 1, "title": "t", "x-a": {}})), ["x-a", "x-b"])
        self.assertEqual(decoder.check(Grammar.regex("[a-z]+")), [])
        unequal = {"items": {"type": "string"}, "uniqueItems": True}
        self.assertEqual(decoder.check(Grammar.json_schema(unequal, options={"lenient": True, "indent": 2})), ["uniqueItems"])
        with self.assertRaisesRegex(sluice.ArgumentError, "uniqueItems"):
            decoder.check(Grammar.json_schema(unequal, options={"order": "any"}))
        with self.assertRaisesRegex(TypeError, "token_bytes"):
            sluice.decode(TableModel(), [1], Greedy(grammar=lists))

    def test_compiled_grammars(self):
        """A grammar as bytes and back, for another model; what its rules have matched; and what is refused."""
        model = TableModel()
        model.token_bytes = TEXTS
        decoder, other = sluice.Decoder(model), sluice.Decoder(model)
        grammar = Grammar.lark('start: "[" d ("," d)* "]"\nd[capture="digits"]: /1+/')
        data = decoder.to_bytes(grammar)
        again = Grammar.from_bytes(data)
        self.assertEqual(other.to_bytes(again), data)
        requests = [Request(seed) for seed in range(6)]
        results = decoder.decode(requests, Greedy(length=LENGTH, grammar=grammar))
        others = other.decode(requests, Greedy(length=LENGTH, grammar=again))
        self.assertEqual([(r.tokens, r.score) for r in others], [(r.tokens, r.score) for r in results])
        for result in results:
            text = b"".join(TEXTS[t] for t in result.tokens)
            self.assertEqual(other.captures(again, result.tokens), [("digits", one) for one in text.strip(b"[]").split(b",")])
        with self.assertRaisesRegex(sluice.ArgumentError, "must be a complete output of the grammar"):
            decoder.captures(grammar, results[0].tokens[:1])
        for bad, why in ((data[:-1], "cut off after"), (data[:70] + bytes([data[70] ^ 1]) + data[71:], "the checksum is wrong"),
                         (b"", "there is nothing to read"), (b"root ::= 1", "no compiled grammar")):
            with self.assertRaisesRegex(sluice.Error, why):
                decoder.check(Grammar.from_bytes(bad))

    def test_grammars_by_name(self):
        """Grammars that others call by name, in either notation and one inside another: as the same grammar in one piece."""
        model = TableModel()
        model.token_bytes = TEXTS
        digits = Grammar.regex("11?")
        item = Grammar.gbnf('root ::= "," digits', grammars={"digits": digits})
        parts = {"digits": digits, "item": item}
        ways = [Grammar.regex(r"\[11?(,11?)*\]"), Grammar.gbnf('root ::= "[" digits item* "]"', grammars=parts),
                Grammar.lark('start: "[" @digits @item* "]"', grammars=parts)]
        decoder = sluice.Decoder(model)
        for seed in range(8):
            first, *others = decoder.decode([Request(seed, search=Greedy(length=LENGTH, grammar=way)) for way in ways], Greedy())
            self.assertTrue(first.tokens)
            for other in others:
                self.assertEqual(list(other.tokens), list(first.tokens))
        with self.assertRaisesRegex(sluice.ArgumentError, "line 1, column 10: the rule digit is not defined"):
            decoder.check(Grammar.gbnf("root ::= digit", grammars=parts))
        with self.assertRaisesRegex(TypeError, r"grammars\['x'\] = '1'"):
            Grammar.gbnf("root ::= x", grammars={"x": "1"})
        with self.assertRaisesRegex(TypeError, "grammars = 5"):
            Grammar.lark("start: @x", grammars=5)

    def test_tool_calls(self):
        """A model that babbles calls tools as their schemas say, by bytes and by control tokens, and the parser finds the calls."""
        tools = [{"type": "function", "function": {"name": name, "parameters": {
            "type": "object", "properties": {"seats": {"type": "integer", "minimum": 1, "maximum": 8}}, "required": ["seats"],
            "additionalProperties": False}}} for name in ("book", "free")]
        one = {"type": "function", "function": {"name": "free"}}
        letters = [b""] * 4 + [b"\n"] + [bytes([c]) for c in range(32, 127)]
        names = {"<tool_call>": 1, "</tool_call>": 2, "[TOOL_CALLS]": 3}
        draw = np.random.default_rng(5).normal(size=(40, len(letters))).astype(np.float32)
        draw[:, 4:] -= 3  # so that marks are control tokens, where they may be
        model = sluice.FunctionModel(lambda tokens: draw[len(tokens) % 40], sluice.Vocabulary(len(letters), eos=0), token_bytes=letters, token_names=names)
        decoder = sluice.Decoder(model)
        long = LengthLimits(max=200)
        for format in "hermes", "mistral", "llama3_json", "qwen3_coder":
            for choice, most in ("required", 9), ("required", 1), (one, 1):
                grammar = Grammar.tool_calls(tools, format, tool_choice=choice, parallel_tool_calls=most > 1)
                for search in Greedy(grammar=grammar, length=long), BeamSearch(width=4, grammar=grammar, length=long), Sample(grammar=grammar, length=long):
                    result, = decoder.decode([Request(None, seed=most)], search)
                    parser = sluice.ToolCallParser(format, json.dumps(tools))
                    events = [event for token in result.tokens for event in parser.append(decoder.spelling([token]))] + parser.finish()
                    self.assertEqual(parser.content.strip("\n"), "")
                    self.assertTrue(1 <= len(parser.calls) <= most)
                    for call in parser.calls:
                        self.assertTrue(call.finished and call.name in ("book", "free") if choice == "required" else call.name == "free")
                        arguments = json.loads(call.arguments)
                        self.assertTrue(list(arguments) == ["seats"] and 1 <= arguments["seats"] <= 8)
                    self.assertEqual([event.text for event in events if event.kind == "begun"], [call.name for call in parser.calls])
                    if format in ("hermes", "mistral"):
                        self.assertTrue(set(result.tokens) & {1, 2, 3})
        self.assertEqual(decoder.spelling([1, 4, 5]), b"<tool_call>\n ")
        none, = decoder.decode([None], Greedy(grammar=Grammar.tool_calls(tools, tool_choice="none"), length=LENGTH))
        self.assertNotIn(b"<tool_call>", decoder.spelling(none.tokens))
        self.assertEqual(Grammar.tool_calls(tools), Grammar.tool_calls(json.dumps(tools)))
        decoder.check(Grammar.gbnf('root ::= <tool_call> "a" </tool_call>'))
        for grammar, message in [
                (Grammar.tool_calls(tools, "chat"), "tool format = chat"), (Grammar.tool_calls(tools, tool_choice="any"), "tool_choice: must be auto"),
                (Grammar.tool_calls(tools, tool_choice={"type": "function", "function": {"name": "now"}}), "options.name = now"),
                (Grammar.tool_calls([], tool_choice="required"), "a call is required"), (Grammar.tool_calls([{"name": 1}]), "name: must be a string"),
                (Grammar.gbnf("root ::= <|im_end|>"), r"<\|im_end\|>")]:
            with self.assertRaisesRegex(sluice.ArgumentError, message):
                decoder.check(grammar)
        for call, message in [(lambda: Grammar.tool_calls({1}), "tools = .*must be JSON"), (lambda: Grammar.tool_calls("["), "tools: must be JSON"),
                              (lambda: Grammar.tool_calls(tools, tool_choice={1}), "tool_choice"), (lambda: sluice.ToolCallParser("hermes").append(1), "text = 1"),
                              (lambda: sluice.ToolCallParser("x"), "tool format = x"),
                              (lambda: sluice.ToolCallParser(None), "format = null"), (lambda: sluice.ToolCallParser("hermes", reasoning_end=""), "reasoning.end"), (lambda: decoder.spelling([100]), "tokens = 100")]:
            with self.assertRaisesRegex((TypeError, sluice.ArgumentError), message):
                call()

    def test_texts_of_calls_may_be_cut_anywhere(self):
        text = text_of_call = 'Così: <tool_call>\n{"name": "book", "arguments": {"to": "Tromsø, 東京 🚂"}}\n</tool_call>'.encode()
        for size in 1, 2, 3, 5, len(text):
            parser = sluice.ToolCallParser("hermes")
            for begin in range(0, len(text), size):
                parser.append(text[begin:begin + size])
            parser.finish()
            self.assertEqual((parser.content, [(call.name, json.loads(call.arguments), call.finished) for call in parser.calls]),
                             ("Così: ", [("book", {"to": "Tromsø, 東京 🚂"}, True)]))
        parser = sluice.ToolCallParser("hermes")
        parser.append(b"\xc3")
        parser.finish()
        self.assertEqual(parser.content, "\N{REPLACEMENT CHARACTER}")
        parser = sluice.ToolCallParser("openai")
        parser.append("<|channel|>analysis<|message|>Well.<|end|><|start|>assistant<|channel|>final<|message|>Yes")
        parser.finish()
        self.assertEqual((parser.reasoning, parser.content, parser.calls), ("Well.", "Yes", []))
        for size in 1, 4, 100:
            text = "<think>\n東京? <tool_call>, hm</thin</think>\n\n".encode() + text_of_call
            parser = sluice.ToolCallParser("hermes", reasoning_end="</think>")
            for begin in range(0, len(text), size):
                parser.append(text[begin:begin + size])
            parser.finish()
            self.assertEqual((parser.reasoning, parser.content, [call.name for call in parser.calls]), ("\n東京? <tool_call>, hm</thin", "Così: ", ["book"]))
        parser = sluice.ToolCallParser(None, reasoning_end="[/THINK]")
        parser.append("[THINK]a[/THINK]<tool_call>")
        parser.finish()
        self.assertEqual((parser.reasoning, parser.content, parser.calls), ("a", "<tool_call>", []))

    def test_models_of_pydantic(self):
        """Whatever has model_json_schema(): no pydantic is needed."""
        class Seats:
            @classmethod
            def model_json_schema(cls):
                return {"type": "array", "items": {"enum": [1, 11]}, "minItems": 2, "maxItems": 2}

        model = TableModel()
        model.token_bytes = TEXTS
        result, = sluice.decode(model, [3], Greedy(length=LENGTH, grammar=Grammar.from_model(Seats)))
        self.assertEqual(len(json.loads(b"".join(TEXTS[t] for t in result.tokens))), 2)
        self.assertEqual(Grammar.from_model(Seats), Grammar.json_schema(Seats.model_json_schema()))
        with self.assertRaisesRegex(TypeError, "model_json_schema"):
            Grammar.from_model(dict)

    def test_blocks(self):
        for kwargs, fewer in (dict(guess=True), True), (dict(lookup=2), False), (dict(guess=True, lookup=2), True):
            plain = TableModel(abilities=ALL)
            wanted = sluice.decode(plain, range(20), Greedy(length=LENGTH))
            model = TableModel(abilities=ALL, **kwargs)
            results = sluice.decode(model, range(20), Blockwise(block=5, length=LENGTH))
            for one, other in zip(results, wanted):
                self.assertEqual((one.tokens, one.best.log_probs), (other.tokens, other.best.log_probs))
                self.assertEqual(sum(one.best.blocks), len(one.tokens))
            if fewer:
                self.assertLess(2 * model.calls, plain.calls + 4)
        with self.assertRaisesRegex(sluice.ArgumentError, "roll_back"):
            sluice.decode(TableModel(), [1], Blockwise())

    def test_samples(self):
        model = TableModel(Table(eos_bias=-20), limits=sluice.Limits())
        search = Sample(samples=2000, length=LengthLimits(max=1))
        result, = sluice.decode(model, [7], search)
        counts = collections.Counter(h.tokens[0] for h in result)
        for token, p in enumerate(np.exp(model.table.log_probs(7, ()))):
            self.assertLess(abs(counts[token] / 2000 - p), 5 * math.sqrt(p * (1 - p) / 2000) + 1e-9)
        greedy, sharp = (sluice.decode(model, [3], s)[0].tokens for s in (Greedy(length=LENGTH), Sample(top_k=1, length=LENGTH)))
        self.assertEqual(greedy, sharp)
        once = sluice.decode(model, [Request(3, seed=5)] * 3 + [Request(3, seed=6)], Sample(length=LENGTH))
        self.assertEqual(once[0].tokens, once[2].tokens)
        self.assertNotEqual(once[0].tokens, once[3].tokens)
        three, = sluice.decode(model, [3], StochasticBeam(width=3, length=LENGTH))
        two, = sluice.decode(model, [3], StochasticBeam(width=2, length=LENGTH))
        self.assertEqual(seen([three])[0][:2], seen([two])[0])

    def test_particles_without_a_grammar(self):
        """There is no potential: outputs that are cut count as all others, with equal weights."""
        model = TableModel(abilities=ALL)
        line = np.array([-np.inf, -np.inf, -3, 0, 1, 2, 0, 0], np.float32)
        model.line = lambda source, tokens: line  # ends in 1 of 250
        for proposal in "model", "rejection", "product":
            result, = sluice.decode(model, [1], ParticleSample(particles=100, proposal=proposal, length=LengthLimits(max=3)))
            self.assertAlmostEqual(result.log_z, 0, 5)
            self.assertAlmostEqual(sum(h.weight for h in result), 1, 5)
            self.assertGreater(sum(not h.finished for h in result), 10)
            for h in result:
                self.assertAlmostEqual(h.weight * 100, round(h.weight * 100), 4)
        result, = sluice.decode(model, [1], ParticleSample(particles=4, tries=1, length=LengthLimits(max=3)))
        self.assertTrue(result.ok)

    def test_particles(self):
        """Weights are the model's own probabilities of the texts that match, and Z is their sum."""
        model = TableModel()
        model.token_bytes = TEXTS
        pattern = re.compile("(1|,)?")
        exact = {}
        for token, p in enumerate(np.exp(model.table.log_probs(7, ()))):
            if token == EOS:
                exact[token,] = p
            elif TEXTS[token] and pattern.fullmatch(TEXTS[token].decode()):
                exact[token, EOS] = p * math.exp(model.table.log_probs(7, (token,))[EOS])
        z = sum(exact.values())
        self.assertGreater(len(exact), 2)
        for proposal in "model", "rejection", "product":
            search = ParticleSample(particles=500, proposal=proposal, grammar=Grammar.regex("(1|,)?"), length=LengthLimits(max=3))
            result, = sluice.decode(model, [Request(7, seed=1)], search)
            self.assertAlmostEqual(sum(h.weight for h in result), 1)
            self.assertLess(abs(result.log_z - math.log(z)), 5 * result.log_z_error + 1e-4)
            self.assertLess(result.log_z_error, 0.3)
            for h in result:
                self.assertLess(abs(h.weight - exact[tuple(h.tokens)] / z), 0.1)
        other, = sluice.decode(model, [7], Greedy(length=LENGTH))
        self.assertTrue(math.isnan(other.log_z) and math.isnan(other[0].weight))

    def test_no_result_depends_on_the_batch(self):
        model = TableModel()
        model.token_bytes = TEXTS
        kinds = [Greedy(length=LENGTH), BeamSearch(width=4, n_best=3, length=LENGTH), presets.huggingface(4, length=LENGTH, n_best=4),
                 BeamSearch(width=4, length=LENGTH, demanded=[[5, 6]], forbidden=[[3]]), Sample(samples=3, top_p=0.8, length=LENGTH),
                 sluice.DiverseBeamSearch(search=BeamSearch(width=2, length=LENGTH), groups=2, n_best=4), StochasticBeam(length=LENGTH), ParticleSample(grammar=Grammar.regex(r"\[1(,1)*\]"), length=LENGTH), BeamSearch(grammar=Grammar.regex(r"\[1(,1)*\]"), length=LENGTH)]
        for search in kinds:
            one, many = (sluice.decode(model, range(33), search, batch=batch) for batch in (1, 16))
            self.assertEqual(seen(one), seen(many))
            other = TableModel(abilities=ALL)
            other.token_bytes = TEXTS
            self.assertEqual(seen(one), seen(sluice.decode(other, range(33), search)))
            self.assertEqual([result.id for result in one], list(range(33)))
        self.assertFalse(model.slots)
        one, many = (sluice.decode(TableModel(abilities=ALL, guess=True), range(33), Blockwise(length=LENGTH), batch=batch)
                     for batch in (1, 16))
        self.assertEqual(seen(one), seen(many))

    def test_prompts_and_prefixes(self):
        table = Table()
        model = TableModel(table, abilities=ALL)
        for prompt, prefix in ([], [5, 6]), ([BOS, 4], []), ([BOS, 4, 3], [7]):
            result, = sluice.decode(model, [Request(9, prompt=np.array(prompt, np.int64), prefix=prefix)], Greedy(length=LENGTH))
            self.assertEqual(result.tokens[:len(prefix)], prefix)
            context = tuple(prompt[1:] + result.tokens)
            for i in range(len(prompt[1:] + prefix), len(context)):
                self.assertEqual(context[i], int(np.argmax(table.logits(9, context[:i]))))

    def test_functions(self):
        table = Table()
        plain = sluice.decode(TableModel(table), range(9), BeamSearch(length=LENGTH))

        def one(tokens, source):
            return table.logits(source, tokens[1:])

        def many(lists, sources):
            return [table.logits(source, tokens[1:]).tolist() for tokens, source in zip(lists, sources)]

        vocabulary = sluice.Vocabulary(8, BOS, EOS, [0, 1])
        for model in (sluice.FunctionModel(one, vocabulary, takes_source=True),
                      sluice.FunctionModel(many, vocabulary, takes_source=True, batched=True)):
            self.assertEqual(seen(plain), seen(sluice.decode(model, range(9), BeamSearch(length=LENGTH))))
        model = sluice.FunctionModel(one, vocabulary, takes_source=True, lookup=2)
        blocks, greedy = (sluice.decode(model, range(9), search) for search in (Blockwise(length=LENGTH), Greedy(length=LENGTH)))
        self.assertEqual([r.tokens for r in blocks], [r.tokens for r in greedy])

    def test_bias(self):
        bias = sluice.Bias([([3, 4], 2.5), sluice.BiasedPhrase(spellings=[[5], [4, 3]], boost=1.5, per_token=True)])

        def earned(tokens):
            return sum(2.5 * (tokens[i:i + 2] == (3, 4)) + 1.5 * (tokens[i:i + 1] == (5,)) + 3 * (tokens[i:i + 2] == (4, 3))
                       for i in range(len(tokens)))

        for seed in range(3):
            score, tokens = max((score + earned(tokens), tokens) for tokens, score in self.small.outputs(seed, 4))
            result, = sluice.decode(TableModel(self.small), [seed], BeamSearch(
                width=400, length=LengthLimits(max=4), penalty=LengthPenalty(alpha=0), bias=bias))
            self.assertEqual(tuple(result.tokens), tokens)
            self.assertAlmostEqual(result.score, score, 4)
        for phrases, message in [([([], 1)], r"phrases\[0\].spellings\[0\] = \[\]: is empty"),
                                 ([([3], math.nan)], r"phrases\[0\].boost"), ([([-3], 1)], "has a negative token")]:
            with self.assertRaisesRegex(sluice.ArgumentError, message):
                sluice.Bias(phrases)
        with self.assertRaisesRegex(sluice.ArgumentError, "matches = 'best'"):
            sluice.Bias([], matches="best")
        result, = sluice.decode(TableModel(self.small), [1], BeamSearch(
            bias=bias, early_stopping=sluice.EarlyStopping(rule="exact")), errors="return")
        self.assertIn("early_stopping.rule = exact", result.message)

    def test_logits_processors(self):
        class Other(TableModel):  # what the processor makes of the model
            def step(self, rows):
                return super().step(rows) * 0.5 + np.arange(self.vocabulary.size, dtype=np.float32) % 3

        def halve(tokens, scores):
            scores *= 0.5

        def rise(tokens, scores):
            return scores + np.arange(len(scores)) % 3

        def seen(results):
            return [result.tokens for result in results]

        for search in Greedy(length=LENGTH), sluice.Sample(length=LENGTH):
            expected = seen(sluice.decode(Other(self.small), range(9), search))
            self.assertEqual(seen(sluice.decode(TableModel(self.small), range(9), search.replace(logits_processors=[halve, rise]))), expected)
            with sluice.Server(TableModel(self.small), Greedy(length=LENGTH)) as server:
                sent = [server.submit(sluice.Request(i, search=Greedy(length=LENGTH, logits_processors=[halve, rise]))) for i in range(9)]
                self.assertEqual(seen(one.result() for one in sent), seen(sluice.decode(Other(self.small), range(9), Greedy(length=LENGTH))))

        lengths = []

        def no_double(tokens, scores):  # log-probabilities, in a beam
            self.assertLessEqual(scores.max(), 0)
            lengths.append(len(tokens))
            if tokens:
                scores[tokens[-1]] = -math.inf

        for result in sluice.decode(TableModel(self.small), range(9), BeamSearch(width=4, n_best=4, length=LENGTH, logits_processors=[no_double])):
            for h in result.hypotheses:
                self.assertTrue(all(a != b for a, b in zip(h.tokens, h.tokens[1:])), h.tokens)
        self.assertGreater(max(lengths), 1)

        def fails(tokens, scores):
            if len(tokens) == 2:
                raise LookupError("two")

        result, = sluice.decode(TableModel(self.small), [1], Greedy(length=LengthLimits(min=4, max=9), logits_processors=[fails]), errors="return")
        self.assertEqual((result.failure, len(result.hypotheses), type(result.cause)), ("search", 0, LookupError))
        for wrong, message in [([3], r"logits_processors\[0\] = 3"), (rise, "logits_processors")]:
            with self.assertRaisesRegex(TypeError, message):
                sluice.decode(TableModel(self.small), [1], Greedy(logits_processors=wrong))
        result, = sluice.decode(TableModel(self.small), [1], Greedy(logits_processors=[lambda tokens, scores: scores[1:]]), errors="return")
        self.assertIn("returned an array of shape", str(result.cause))


    def test_stopping_criteria(self):
        seen = []

        def is_five(tokens):
            seen.append(list(tokens))
            return tokens[-1] == 5

        for search in (Greedy(length=LENGTH), Sample(samples=2, length=LENGTH), BeamSearch(width=4, n_best=4, length=LENGTH),
                       presets.huggingface(4, length=LENGTH, n_best=4)):
            its = search.replace(stop_tokens=[[6, 7]], stopping_criteria=[lambda tokens: False, is_five])
            wanted = sluice.decode(TableModel(), range(9), search.replace(stop_tokens=[[6, 7], [3, 3, 3, 3, 3, 3], [5]]))
            stopped = 0
            for result, other in zip(sluice.decode(TableModel(), range(9), its), wanted):
                self.assertEqual([(h.tokens, h.stop, h.score, h.finished) for h in result], [(h.tokens, h.stop, h.score, h.finished) for h in other])
                stopped += sum(h.stop == 2 for h in result)
            self.assertGreater(stopped, 3)
        self.assertTrue(all(seen))
        later = sluice.decode(TableModel(), range(9), Greedy(length=LENGTH, stopping_criteria=[is_five], stop_minimum=3))
        self.assertTrue(all(5 not in result.tokens[2:-1] for result in later))

        def fails(tokens):
            raise LookupError("no")

        result, = sluice.decode(TableModel(), [1], BeamSearch(length=LENGTH, stopping_criteria=[fails], stop_at_once=True), errors="return")
        self.assertEqual((result.failure, type(result.cause)), ("search", LookupError))
        for wrong, message in [([3], r"stopping_criteria\[0\] = 3"), (fails, "stopping_criteria")]:
            with self.assertRaisesRegex(TypeError, message):
                sluice.decode(TableModel(), [1], Greedy(stopping_criteria=wrong))

    def test_groups_of_beams(self):
        """The first group is the plain beam; a high cost keeps the others away from its tokens."""
        each = BeamSearch(width=2, length=LENGTH, penalty=LengthPenalty(alpha=0.5))
        plain = sluice.decode(TableModel(), range(9), each.replace(n_best=2))
        for search in sluice.DiverseBeamSearch(search=each, groups=3, penalty=50.0, n_best=6), sluice.DiverseBeamSearch(search=each, groups=1, n_best=2):
            for result, first in zip(sluice.decode(TableModel(), range(9), search), plain):
                found = [(h.tokens, h.score) for h in result]
                self.assertTrue(all((h.tokens, h.score) in found for h in first))
                if search.groups == 3:
                    self.assertEqual(len(found), 6)
                    self.assertGreater(len({tokens[0] for tokens, _ in found}), 2)
        for wrong, kind, message in [(dict(groups=0), sluice.ArgumentError, "groups = 0"), (dict(penalty=-1.0), sluice.ArgumentError, "penalty = -1"),
                                     (dict(n_best=5), sluice.ArgumentError, "n_best = 5"), (dict(padding=-2), sluice.ArgumentError, "padding = -2"),
                                     (dict(search=BeamSearch(width=0)), sluice.ArgumentError, r"width = 0"),
                                     (dict(search=BeamSearch(n_best=2)), sluice.ArgumentError, r"search\.n_best = 2: is for all groups: set DiverseBeamSearch\.n_best"),
                                     (dict(search=BeamSearch(forbidden=[[3]])), sluice.ArgumentError, r"search\.forbidden"),
                                     (dict(search=Greedy()), TypeError, "search = Greedy.*must be BeamSearch"),
                                     (dict(search=BeamSearch(length=LengthLimits(max="x"))), TypeError, r"search\.length\.max = 'x'"),
                                     (dict(demanded=[[3]]), sluice.ArgumentError, "only a beam takes phrases")]:
            with self.assertRaisesRegex(kind, message):
                sluice.decode(TableModel(), [1], sluice.DiverseBeamSearch(**({"search": BeamSearch(width=2), "groups": 2} | wrong)))


class Oracles(unittest.TestCase):
    """What other authors' programs found over the same table: tests/oracles/README.md."""

    def compare(self, file, search_of, limit, close):
        compared = 0
        for case in json.loads((ORACLES / file).read_text())["cases"][:limit]:
            search = search_of(case)
            if search is None:
                continue
            prefixes = case.get("prefix") or [[]] * len(case["seeds"])
            requests = [Request(seed, prefix=prefix) for seed, prefix in zip(case["seeds"], prefixes)]
            results = sluice.decode(TableModel(Table(**case["model"])), requests, search, errors="return")
            for result, wanted in zip(results, case["nbest"]):
                self.assertEqual([h.tokens for h in result], [one["tokens"] for one in wanted])
                for h, one in zip(result, wanted):
                    self.assertAlmostEqual(h.score, one["score"], delta=close)
                compared += len(result)
        return compared

    def test_fairseq(self):
        def search(case):
            length = LengthLimits(min=case["min_len"], max=case["max_len"] + 1)
            return presets.fairseq(case["beam"], n_best=case["beam"], length=length, penalty=LengthPenalty(alpha=case["lenpen"]))

        self.assertGreater(self.compare("fairseq_beam.json", search, 12, 1e-4), 100)

    def test_ctranslate2(self):
        def search(case):
            o = case["options"]
            plain = {"beam_size", "length_penalty", "max_length", "min_length", "num_hypotheses", "patience"}
            if o.get("beam_size", 1) == 1 or any(o[name] not in (0, 1, False, [], None) for name in set(o) - plain):
                return None
            made = presets.ctranslate2(o["beam_size"], o["length_penalty"], n_best=o["num_hypotheses"])
            made.length = LengthLimits(min=o["min_length"], max=o["max_length"])
            made.early_stopping.patience = o.get("patience", 1)
            return made

        self.assertGreater(self.compare("ctranslate2_beam.json", search, 60, 1e-4), 20)


class Scores(unittest.TestCase):
    def test_are_not_copied(self):
        held = np.zeros((4, 11), np.float32)
        for view, address, stride in [(held, held.ctypes.data, 11), (held[:, :8], held.ctypes.data, 11),
                                      (held[1:3, 2:10], held[1:, 2:].ctypes.data, 11), (held[::2, :8], held.ctypes.data, 22)]:
            self.assertEqual(lines_of(view, *view.shape, "it")[:2], (address, stride))
            self.assertEqual(lines_of(Exported(view), *view.shape, "it")[:2], (address, stride))
        flat = array.array("f", range(8))
        self.assertEqual(lines_of(flat, 1, 8, "it")[0], flat.buffer_info()[0])
        shaped = memoryview(array.array("f", range(16))).cast("B").cast("f", (2, 8))
        self.assertEqual(lines_of(shaped, 2, 8, "it")[1], 8)

    def test_are_converted(self):
        wanted = np.arange(6, dtype=np.float32).reshape(2, 3)
        ways = [wanted.astype(np.float64), wanted.astype(np.float16), wanted.tolist(), np.asfortranarray(wanted), wanted[:, ::-1][:, ::-1],
                wanted[::-1], Exported(wanted.astype(np.float64)), Exported(np.asfortranarray(wanted))]
        for given in ways:
            address, stride, _kept = lines_of(given, 2, 3, "it")
            found = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_float * (stride + 3)).from_address(address))
            first = wanted[::-1] if given is ways[5] else wanted
            self.assertEqual([found[:3].tolist(), found[stride:stride + 3].tolist()], first.tolist())

    def test_models_may_give_any_of_them(self):
        wanted = seen(sluice.decode(TableModel(), range(9), BeamSearch(length=LENGTH)))
        for change in (Exported, lambda a: a.tolist(), lambda a: a.astype(np.float64), np.asfortranarray,
                       lambda a: np.pad(a, ((0, 0), (0, 5)))[:, :8], lambda a: memoryview(a)):
            model = TableModel()
            step = model.step
            model.step = lambda rows: change(step(rows))
            self.assertEqual(seen(sluice.decode(model, range(9), BeamSearch(length=LENGTH))), wanted)

    def test_without_numpy(self):
        run = subprocess.run([sys.executable, "-c", WITHOUT_NUMPY], capture_output=True, text=True)
        self.assertEqual((run.stdout, run.stderr), ("[[1, 2, 0], [1, 2, 0]]\n", ""))

    def test_what_is_wrong_is_said(self):
        for given, kind, message in [(np.zeros((3, 8), np.float32), ValueError, r"shape \(3, 8\), but 1 lines of 8 tokens"),
                                     (np.zeros(7, np.float32), ValueError, r"shape \(7,\)"), (None, (TypeError, ValueError), ""),
                                     (Exported(np.zeros((1, 8), np.float32), device=2), TypeError, "on a device"),
                                     (["a"] * 8, ValueError, "")]:
            model = TableModel()
            model.step = lambda rows: given
            with self.assertRaisesRegex(kind, message):
                sluice.decode(model, [1])
        model.step = lambda rows: np.full((1, 8), np.nan, np.float32)
        with self.assertRaisesRegex(sluice.DecodingError, "not_a_number"):
            sluice.decode(model, [1])


WITHOUT_NUMPY = """
import sys
import tempfile
sys.modules["numpy"] = None  # importing it fails
import array, sluice

class Model:
    vocabulary = sluice.Vocabulary(3, eos=0)
    def start(self, sources, slots): pass
    def step(self, rows):
        lines = array.array("f", [0.0] * 3 * len(rows))
        for i, row in enumerate(rows):
            lines[3 * i + (row.tokens[-1] + 1) % 3] = 1.0
        return memoryview(lines).cast("B").cast("f", (len(rows), 3))

print([result.tokens for result in sluice.decode(Model(), [None] * 2)])
"""


class Exported:
    """An array that only speaks DLPack, as tensors do."""

    def __init__(self, held, device=1):
        self.held, self.device = np.asarray(held), device

    def __dlpack__(self, stream=None):
        return self.held.__dlpack__()

    def __dlpack_device__(self):
        return self.device, 0


class Notebooks(unittest.TestCase):
    def test_a_result_is_a_table(self):
        result, = sluice.decode(TableModel(), [1], BeamSearch(n_best=3))
        text = result._repr_html_()
        self.assertEqual(text.count("<tr><td>"), 3)
        self.assertEqual(text.count("<span"), sum(len(h.tokens) for h in result))
        failed, = sluice.decode(TableModel(), [Request(1, prefix=[99])], errors="return")
        self.assertIn("<b>bad_request</b>: sluice: prefix = 99", failed._repr_html_())


class Rows(unittest.TestCase):
    def test_arrays_say_the_same(self):
        seen_rows = []

        class Watching(TableModel):
            def step(self, rows):
                self_rows = list(rows)
                assert rows.from_.tolist() == [row.from_ for row in self_rows]
                assert rows.to.tolist() == [row.to for row in self_rows]
                assert rows.length.tolist() == [row.length for row in self_rows]
                assert rows.lines.tolist() == [row.lines for row in self_rows]
                assert rows.count.tolist() == [len(row.tokens) for row in self_rows]
                assert rows.tokens.tolist() == sum((row.tokens for row in self_rows), [])
                assert len(rows) == len(self_rows) and rows[0] == self_rows[0] and rows.line_count == sum(rows.lines)
                seen_rows.append(rows)
                return super().step(rows)

        sluice.decode(Watching(abilities=ALL, guess=True), range(5), Blockwise(length=LENGTH))
        sluice.decode(Watching(), range(5), BeamSearch(length=LENGTH))
        self.assertGreater(sum(len(list(rows)) for rows in seen_rows), 50)  # they may be kept


class Failing(TableModel):
    def __init__(self, at, **kwargs):
        super().__init__(**kwargs)
        self.at, self.steps_after = at, 0

    def start(self, sources, slots):
        if 13 in sources:
            raise LookupError("no such source")
        super().start(sources, slots)

    def step(self, rows):
        if self.calls >= self.at:
            self.calls += 1
            self.where_it_happens()
        return super().step(rows)

    def where_it_happens(self):
        raise ZeroDivisionError("deep in the model")


class Errors(unittest.TestCase):
    def test_of_the_model_are_raised_with_their_traceback(self):
        model = Failing(at=2)
        try:
            sluice.decode(model, range(100), batch=8)
            self.fail("nothing was raised")
        except ZeroDivisionError as error:  # assertRaises would clear it
            self.assertIn("where_it_happens", [frame.name for frame in traceback.extract_tb(error.__traceback__)])
        self.assertEqual(model.calls, 3)  # nothing was asked afterwards
        with self.assertRaisesRegex(LookupError, "no such source"):
            sluice.decode(Failing(at=99), [1, 13, 2])
        self.assertEqual(len(sluice.decode(Failing(at=99), [1, 2])), 2)

    def test_may_be_returned(self):
        results = sluice.decode(Failing(at=99), [1, 13, 2], errors="return", batch=1)
        self.assertEqual([r.failure for r in results], ["none", "source", "none"])
        self.assertIsInstance(results[1].cause, LookupError)
        self.assertIn("start returned", results[1].message)
        self.assertIsNone(results[0].error())
        self.assertIsInstance(results[1].error(), LookupError)
        results = sluice.decode(Failing(at=0), range(3), errors="return")
        self.assertTrue(all(isinstance(r.cause, ZeroDivisionError) and r.failure == "model" for r in results))
        result, = sluice.decode(TableModel(), [Request(1, prefix=[99])], errors="return")
        self.assertEqual(result.failure, "bad_request")
        self.assertFalse(result.ok)
        with self.assertRaisesRegex(sluice.DecodingError, "prefix = 99"):
            result.best

    def test_of_requests(self):
        with self.assertRaisesRegex(sluice.DecodingError, "request 1: bad_request: .*prefix = 99") as caught:
            sluice.decode(TableModel(), [1, Request(1, prefix=[99])])
        self.assertEqual(caught.exception.result.id, 1)
        with self.assertRaisesRegex(sluice.ArgumentError, "kind"):
            sluice.decode(TableModel(), [Request(1, search=BeamSearch())], Greedy())
        for request, kind, message in [(Request(1, prompt="ab"), TypeError, "prompt = 'ab'"),
                                       (Request(1, prompt=[2**32 + 5]), sluice.ArgumentError, r"tokens are below 2\^31"),
                                       (Request(1, prompt=[1.5]), TypeError, r"prompt = \[1.5\]"),
                                       (Request(1, prompt=np.zeros((1, 2), int)), TypeError, "prompt = "),
                                       (Request(1, seed=-1), sluice.ArgumentError, "seed = -1")]:
            with self.assertRaisesRegex(kind, message):
                sluice.decode(TableModel(), [request])

    def test_of_models(self):
        for model, kind, message in [(lambda tokens: 0, TypeError, "FunctionModel"), (TableModel, TypeError, "must be an object")]:
            with self.assertRaisesRegex(kind, message):
                sluice.decode(model, [1])
        model = TableModel()
        model.kind = "scores"
        with self.assertRaisesRegex(ValueError, "kind = 'scores'"):
            sluice.decode(model, [1])
        model = TableModel()
        model.vocabulary = sluice.Vocabulary(8, bos=8)
        with self.assertRaisesRegex(sluice.ArgumentError, "vocabulary.bos = 8"):
            sluice.decode(model, [1])
        model = TableModel(abilities=ALL)
        model.propose = lambda drafts: []
        with self.assertRaisesRegex(ValueError, "propose answered 0 of 1 drafts"):
            sluice.decode(model, [1], Blockwise())
        model = TableModel()
        model.source_length = lambda source: 1 // 0
        with self.assertRaises(ZeroDivisionError):
            sluice.decode(model, [1], Greedy(length=LengthLimits(max_factor=2)))
        model.source_length = lambda source: 2
        result, = sluice.decode(model, [1], Greedy(length=LengthLimits(max_factor=2, min=4)))
        self.assertEqual(len(result.tokens), 4)

    def refused(self, name, call):
        """Not by ctypes, nor by an attribute that is missing: the name is in the message."""
        try:
            call()
        except Exception as error:
            self.assertIsInstance(error, (TypeError, ValueError), f"{name}: {error!r}")
            self.assertIn(name, str(error))
        else:
            self.fail(f"{name} is taken")

    def test_every_option_is_named(self):
        decoder = sluice.Decoder(TableModel(abilities=ALL))
        wrong = ["x", object(), [object()], None, 2**2000]
        tried = 0
        for kind in Greedy, BeamSearch, Sample, sluice.StochasticBeam, sluice.ParticleSample, Blockwise:
            for field in dataclasses.fields(kind):
                usual = getattr(kind(), field.name)
                for value in wrong:
                    if value is None and usual is None or value == "x" and field.name in ("demanded", "stop"):
                        continue
                    self.refused(field.name, lambda: decoder.decode([1], kind(**{field.name: value})))
                    tried += 1
                for its in dataclasses.fields(usual) if hasattr(usual, "_options") else ():
                    for value in wrong:
                        self.refused(its.name, lambda: decoder.decode([1], kind(**{field.name: type(usual)(**{its.name: value})})))
                        tried += 1
        self.assertGreater(tried, 400)
        self.refused("length.max = 1.5", lambda: decoder.decode([1], Greedy(length=LengthLimits(max=1.5))))
        self.refused("stop_minimum = 0.5", lambda: decoder.decode([1], Greedy(stop_tokens=[[3]], stop_minimum=0.5)))
        self.refused("demanded = [[3]]", lambda: decoder.decode([1], Greedy(demanded=[[3]])))

    def test_every_argument_is_named(self):
        """Of all functions and classes but searches."""
        vocabulary, model = sluice.Vocabulary(8, eos=EOS), TableModel(abilities=ALL)
        decoder, thing = sluice.Decoder(model), object()
        result, = decoder.decode([1])
        cache = sluice.SuffixCache(4096)
        function = sluice.FunctionModel(lambda tokens: [0.0] * 8, vocabulary, token_bytes=[b"a"] * 7 + [b""])
        with tempfile.TemporaryDirectory() as folder:
            arpa = pathlib.Path(folder, "arpa")
            arpa.write_text("\\data\\\nngram 1=3\n\\1-grams:\n-1 <s>\n-1 </s>\n-1 <unk>\n\\end\\\n")
            grams = sluice.NGrams.open(arpa)
        language = sluice.NGramModel(grams, vocabulary, words=[0] * 8)

        def of(search=Greedy(), **members):
            made = TableModel(abilities=ALL)
            for name, value in members.items():
                setattr(made, name, value)
            return sluice.decode(made, [1], search)

        factor = Greedy(length=LengthLimits(max_factor=2))
        spelt = Greedy(grammar=sluice.Grammar.regex("a"))

        for name, call in [
                ("requests", lambda: decoder.decode(5)), ("requests", lambda: decoder.decode("source")),
                ("requests", lambda: decoder.decode(Request(1))), ("batch = 0", lambda: decoder.decode([1], batch=0)),
                ("batch", lambda: decoder.decode([1], batch="x")), ("batch", lambda: decoder.decode([1], batch=2**40)),
                ("search", lambda: decoder.decode([1], "beam")), ("errors", lambda: decoder.decode([1], errors=thing)),
                ("prompt", lambda: decoder.decode([Request(1, prompt=None)])), ("prompt", lambda: decoder.decode([Request(1, prompt=b"four")])),
                ("prefix", lambda: decoder.decode([Request(1, prefix=thing)])), ("seed", lambda: decoder.decode([Request(1, seed="x")])),
                ("seed", lambda: decoder.decode([Request(1, seed=2**64)])), ("trace", lambda: decoder.decode([Request(1, trace="a\0b")])),
                ("search", lambda: decoder.decode([Request(1, search=thing)])),
                ("requests[1]: the source [0, 2] looks like tokens", lambda: sluice.decode(function, [None, [0, 2]])),
                ("looks like tokens", lambda: sluice.decode(function, np.array([[0, 2]]))),
                ("hypothesis", lambda: decoder.text([3])), ("grammar", lambda: decoder.check([thing])),
                ("grammar", lambda: decoder.check("[0-9]")), ("has no vocabulary", lambda: sluice.decode(thing, [1])),
                ("step(rows)", lambda: sluice.Decoder("model")), ("vocabulary", lambda: of(vocabulary=5)),
                ("vocabulary.size", lambda: of(vocabulary=sluice.Vocabulary("x"))), ("vocabulary.size", lambda: of(vocabulary=sluice.Vocabulary(2**33 + 8))),
                ("vocabulary.bos", lambda: of(vocabulary=sluice.Vocabulary(8, bos=None))), ("vocabulary.eos", lambda: of(vocabulary=sluice.Vocabulary(8, eos=None))),
                ("vocabulary.never", lambda: of(vocabulary=sluice.Vocabulary(8, never=3))), ("abilities", lambda: sluice.decode(TableModel(abilities="all"), [1])),
                ("limits", lambda: of(limits=5)), ("limits.slot_count", lambda: of(limits=sluice.Limits(slot_count=0))),
                ("limits.length", lambda: of(limits=sluice.Limits(length="x"))), ("lookup", lambda: of(lookup=-1)), ("lookup", lambda: of(lookup="x")),
                ("token_bytes", lambda: of(spelt, token_bytes=5)), ("token_bytes[0]", lambda: of(spelt, token_bytes=[5] * 8)),
                ("token_bytes has 7 entries", lambda: of(spelt, token_bytes=[b"a"] * 7)), ("stop_minimum = -1", lambda: of(Greedy(stop_minimum=-1))),
                ("source_length", lambda: of(factor, source_length=lambda source: "x")),
                ("source_length", lambda: of(factor, source_length=lambda source: 2**40)),
                ("a guess", lambda: of(Blockwise(), propose=lambda drafts: [[2**40]] * len(drafts))),
                ("propose", lambda: of(Blockwise(), propose=lambda drafts: None)),
                ("function", lambda: sluice.FunctionModel(5, vocabulary)), ("vocabulary", lambda: sluice.decode(sluice.FunctionModel(len, 8), [None])),
                ("gbnf", lambda: sluice.Decoder(function).check(sluice.Grammar.gbnf(5))), ("regex", lambda: sluice.Decoder(function).check(sluice.Grammar.regex("a\0b"))),
                ("white_space", lambda: sluice.Decoder(function).check(sluice.Grammar.json_schema("{}", white_space="x"))),
                ("schema", lambda: sluice.Grammar.json_schema({1, 2})), ("options", lambda: sluice.Grammar.json_schema({}, options={1, 2})),
                ("json: indent", lambda: sluice.Decoder(function).check(sluice.Grammar.json_schema({}, options={"indent": "2"}))),
                ("sequences", lambda: sluice.Catalogue(5)), ("sequences[1]", lambda: sluice.Catalogue([[1], 2])), ("sequences[1] = []", lambda: sluice.Catalogue([[1], []])), ("sequences", lambda: sluice.Catalogue([["a"]])),
                ("file", lambda: sluice.Catalogue.open(5.5)), ("file", lambda: sluice.Catalogue.open("a\0b")), ("file", lambda: sluice.NGrams.open(None)),
                ("phrases", lambda: sluice.Bias(5)), ("phrases[0]", lambda: sluice.Bias([1])), ("phrases[0]", lambda: sluice.Bias([([1, 2], 1.0, 3)])),
                ("phrases[0].boost", lambda: sluice.Bias([([1], "x")])), ("phrases[0].spellings", lambda: sluice.Bias([("ab", 1.0)])),
                ("phrases[0].spellings", lambda: sluice.Bias([sluice.BiasedPhrase(spellings=[1, 2])])), ("lead", lambda: sluice.Bias([([1], 1)], lead=2**40)),
                ("lead", lambda: sluice.Bias([([1], 1)], lead="x")), ("matches", lambda: sluice.Bias([([1], 1)], matches=thing)),
                ("spellings", lambda: grams.find("abc")), ("spellings[0]", lambda: grams.find([5])), ("word", lambda: grams.spelling("x")),
                ("word", lambda: grams.spelling(2**32)), ("words", lambda: grams.log_prob(5)), ("words", lambda: grams.log_prob([1.5])),
                ("ngrams", lambda: sluice.NGramModel("file", vocabulary, words=[0] * 8)), ("vocabulary", lambda: sluice.NGramModel(grams, 8, words=[0] * 8)),
                ("words", lambda: sluice.NGramModel(grams, vocabulary, words=5)), ("unknown", lambda: sluice.NGramModel(grams, vocabulary, words=[0] * 8, unknown="x")),
                ("words", lambda: sluice.Decoder(sluice.NGramModel(grams, vocabulary, words=["a"] * 8))),
                ("token_bytes[0]", lambda: sluice.Decoder(sluice.NGramModel(grams, vocabulary, token_bytes=[1] * 8))),
                ("language", lambda: sluice.Decoder(sluice.Fused(model, grams))), ("NGramModel(ngrams)", lambda: sluice.Decoder(sluice.Fused(model, grams))),
                ("weight", lambda: sluice.Decoder(sluice.Fused(model, language, weight="x"))), ("word_bonus", lambda: sluice.Decoder(sluice.Fused(model, language, word_bonus="x"))),
                ("words", lambda: sluice.Decoder(sluice.Fused(model, language, words=5))), ("tokens", lambda: sluice.Decoder(sluice.Fused(model, language, tokens="x"))),
                ("unknown", lambda: sluice.Decoder(sluice.Fused(model, language, unknown="x"))),
                ("unknown", lambda: sluice.Decoder(sluice.Fused(model, language, tokens=[0] * 8, unknown=2**32))),
                ("unknown_log_prob", lambda: sluice.Decoder(sluice.Fused(model, language, unknown_log_prob="x"))),
                ("tokens", lambda: sluice.SuffixCache("x")), ("tokens", lambda: sluice.SuffixCache(2**40)), ("longest", lambda: sluice.SuffixCache(longest=None)),
                ("decoded", lambda: cache.insert(5)), ("before", lambda: cache.insert([1], "x")), ("file", lambda: cache.save(5.5)), ("file", lambda: cache.load(None)),
                ("cache", lambda: sluice.WithSuffixCache(model, 5)), ("shortest", lambda: sluice.WithSuffixCache(model, cache, shortest="x")),
                ("factor", lambda: sluice.WithSuffixCache(model, cache, factor="x")), ("least", lambda: sluice.WithSuffixCache(model, cache, least="x")),
                ("samples", lambda: sluice.WithSuffixCache(model, cache, samples=2**40)),
                ("key", lambda: sluice.WatermarkKey(5.5)), ("key", lambda: sluice.WatermarkKey.from_bytes(5)), ("file", lambda: sluice.WatermarkKey.open(5.5)),
                ("words", lambda: sluice.WatermarkKey.write_new("no/such/folder", "x")), ("file", lambda: sluice.WatermarkKey.write_new(None)),
                ("tokens", lambda: sluice.detect_watermark(5, sluice.Watermark())), ("watermark", lambda: sluice.detect_watermark([1], 5)),
                ("mask", lambda: sluice.detect_watermark([1], sluice.Watermark(), mask=5)), ("window", lambda: sluice.detect_watermark([1], sluice.Watermark(), window="x")),
                ("batch", lambda: sluice.Server(model, batch="x")), ("queue", lambda: sluice.Server(model, queue=2**64)), ("errors", lambda: sluice.Server(model, errors=5)),
                ("search", lambda: sluice.Server(model, 5))]:
            self.refused(name, call)
        with sluice.Server(model) as server:
            for name, call in [("seconds", lambda: server.submit(1, seconds="x")), ("seconds", lambda: server.submit(1, seconds=-1)),
                               ("delta", lambda: server.submit(1, delta=5)), ("seed", lambda: server.submit(Request(1, seed="x"))),
                               ("prompt", lambda: server.stream(Request(1, prompt=5)))]:
                self.refused(name, call)
            self.assertEqual(server.submit(1).result().tokens, result.tokens)
        self.assertEqual(sluice.SuffixCache(1e4).texts, 0)
        self.assertEqual(len(sluice.decode(function, [range(2), "ab", (), None, 3])), 5)  # no lists of tokens

    def test_catalogues(self):
        with self.assertRaisesRegex(sluice.ArgumentError, "is there twice"):
            sluice.Catalogue([[3], [3]])
        with self.assertRaisesRegex(sluice.Error, "no/such"):
            sluice.Catalogue.open(pathlib.Path("no/such"))

    def test_interrupt(self):
        """Ctrl-C while the model runs, and while the library does: 0.3 s after the beginning, whatever runs then."""
        slow, quick = TableModel(), TableModel()
        step, line = slow.step, np.zeros((512, 8), np.float32)
        line[:, EOS] = -np.inf
        slow.step = lambda rows: time.sleep(0.05) or step(rows)
        quick.step = lambda rows: line[:len(rows)]
        quick.limits = sluice.Limits()
        for model, requests, search in (slow, range(1000), Greedy()), (quick, range(10**6), Greedy(length=LengthLimits(max=1000))):
            timer = threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT])
            model.release = lambda slots: None
            decoder = sluice.Decoder(model)
            timer.start()
            with self.assertRaises(KeyboardInterrupt):
                decoder.decode(requests if model is slow else range(20000), search, errors="return")
            timer.join()
            self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)


class Servers(unittest.TestCase):
    def test_finds_what_decode_finds(self):
        for search in BeamSearch(length=LENGTH), Sample(samples=2, length=LENGTH):
            wanted = sluice.decode(TableModel(), range(40), search)
            with sluice.Server(TableModel(), search, batch=4, queue=3) as server:
                submissions = [server.submit(seed) for seed in range(40)]
            self.assertEqual(seen(s.result() for s in submissions), seen(wanted))
            self.assertEqual([s.id for s in submissions], [s.result().id for s in submissions])

    def test_requests_may_have_searches(self):
        searches = [Greedy(length=LengthLimits(max=1 + i % 7), forbidden=[[3]]) for i in range(40)]
        requests = [Request(i, search=search) for i, search in enumerate(searches)]
        with sluice.Server(TableModel(), batch=4) as server:
            submissions = [server.submit(request) for request in requests]
        self.assertEqual(seen(s.result() for s in submissions), seen(sluice.decode(TableModel(), requests)))

    def test_streams(self):
        wanted = sluice.decode(TableModel(), range(8), Greedy(length=LENGTH))
        with sluice.Server(TableModel(), Greedy(length=LENGTH)) as server:
            streams = [server.stream(seed) for seed in range(8)]
            parts = [list(stream) for stream in streams]
            self.assertEqual([sum(part, []) for part in parts], [result.tokens for result in wanted])
            self.assertGreater(max(map(len, parts)), 2)
            self.assertEqual(streams[0].result.tokens, wanted[0].tokens)

    def test_asyncio(self):
        wanted = sluice.decode(TableModel(), range(8), BeamSearch(length=LENGTH))

        async def stream(server, seed):
            return [token async for tokens in server.stream(seed) for token in tokens]

        async def all_of(server):
            results = await asyncio.gather(*(server.decode(seed) for seed in range(8)))
            return results, await asyncio.gather(*(stream(server, seed) for seed in range(8)))

        with sluice.Server(TableModel(), BeamSearch(length=LENGTH), batch=2, queue=1) as server:
            results, streams = asyncio.run(all_of(server))
        self.assertEqual(seen(results), seen(wanted))
        self.assertEqual(streams, [result.tokens for result in wanted])

    def test_an_awaited_request_can_be_cancelled(self):
        model = endless()

        async def waits(server):
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(server.decode(1), 0.1)

        with sluice.Server(model, Greedy(length=LengthLimits(max=10**6))) as server:
            asyncio.run(waits(server))
            server.drain()  # it would take minutes otherwise

    def test_cancel_and_time(self):
        with sluice.Server(endless(), Greedy(length=LengthLimits(max=10**6)), errors="return") as server:
            late, cancelled = server.submit(1, seconds=0.1), server.submit(2)
            self.assertTrue(cancelled.cancel())
            self.assertEqual(cancelled.result().failure, "cancelled")
            self.assertFalse(cancelled.cancelled())  # the future is not
            self.assertEqual(late.result().failure, "late")
            self.assertGreater(len(late.result().tokens), 0)
            self.assertFalse(late.cancel())
        server = sluice.Server(endless(), Greedy(length=LengthLimits(max=10**6)))
        left = server.submit(1)
        server.close()
        with self.assertRaisesRegex(sluice.DecodingError, "cancelled"):
            left.result()
        with self.assertRaises(sluice.RefusedError):
            server.submit(1)

    def test_errors(self):
        with sluice.Server(Failing(at=99), batch=1) as server:
            bad, good = server.submit(13), server.submit(1)
            with self.assertRaises(LookupError):
                bad.result()
            self.assertTrue(good.result().ok)
            with self.assertRaisesRegex(sluice.DecodingError, "prefix = 99"):
                server.submit(Request(1, prefix=[99])).result()
            with self.assertRaisesRegex(sluice.ArgumentError, "seconds = -1"):
                server.submit(1, seconds=-1)
            with self.assertRaisesRegex(sluice.ArgumentError, "kind"):
                server.submit(Request(1, search=BeamSearch()))
            stream = server.stream(13)
            with self.assertRaises(LookupError):
                list(stream)
        with self.assertRaisesRegex(ValueError, "batch = 0"):
            sluice.Server(TableModel(), batch=0)

    def test_other_threads_submit(self):
        wanted = sluice.decode(TableModel(), range(32), Greedy(length=LENGTH))
        found = [None] * 32
        with sluice.Server(TableModel(), Greedy(length=LENGTH), batch=3, queue=2) as server:
            def ask(i):
                found[i] = server.submit(i).result()

            threads = [threading.Thread(target=ask, args=[i]) for i in range(32)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(seen(found), seen(wanted))

    def test_one_server_for_a_decoder(self):
        decoder = sluice.Decoder(TableModel())
        with sluice.Server(decoder) as server:
            with self.assertRaisesRegex(sluice.Error, "belongs to a server"):
                sluice.Server(decoder)
            with self.assertRaisesRegex(sluice.Error, "belongs to a server"):
                decoder.decode([1])
            served = server.submit(1).result()
        self.assertEqual(seen([served]), seen(decoder.decode([1])))

    def test_closing_while_others_submit(self):
        for _ in range(20):
            server, ended = sluice.Server(TableModel(), batch=2, queue=2), []

            def ask():
                try:
                    while True:
                        ended.append(server.submit(1))
                except sluice.RefusedError:
                    pass

            threads = [threading.Thread(target=ask) for _ in range(3)]
            for thread in threads:
                thread.start()
            time.sleep(0.01)
            server.close()
            for thread in threads:
                thread.join()
            self.assertTrue(all(submission.done() for submission in ended))

    def test_a_forgotten_server_ends(self):
        decoder = sluice.Decoder(endless())
        submission = sluice.Server(decoder, Greedy(length=LengthLimits(max=10**6))).submit(1)
        submission.cancel()
        with self.assertRaises(sluice.DecodingError):
            submission.result()
        del submission
        self.assertTrue(decoder._lock.acquire(timeout=10))
        decoder._lock.release()


def endless():
    """A model that never ends, and takes a while for each step."""
    model = TableModel()
    line = np.zeros((512, 8), np.float32)
    line[:, EOS] = -np.inf

    def step(rows):
        time.sleep(0.001)
        return line[:len(rows)]

    model.step, model.release, model.limits = step, lambda slots: None, sluice.Limits()
    return model


class Generate(unittest.TestCase):
    def setUp(self):
        self.table = Table()
        self.model = TableModel(self.table, kind="log_probs", abilities=ALL)
        self.model.is_encoder_decoder = True

    def test_beams_are_those_of_transformers(self):
        compared = 0
        for early in (False, True, "never"):
            for power in (1.0, 0.0, 2.0, -1.0):
                for seed in range(15):
                    wanted = huggingface(self.table, seed, 4, 9, power, early, 4, minimum=2)
                    result, = sluice.generate(self.model, [seed], num_beams=4, num_return_sequences=4, length_penalty=power,
                                              early_stopping=early, max_length=10, min_new_tokens=2)
                    self.assertEqual([tuple(h.tokens) for h in result], [tokens for _, tokens in wanted], (early, power, seed))
                    for h, (score, _) in zip(result, wanted):
                        self.assertAlmostEqual(h.score, score, 4)
                    compared += len(result)
        self.assertEqual(compared, 720)

    def test_prompts(self):
        model = TableModel(self.table, abilities=ALL)
        model.line = lambda source, tokens: self.table.logits(3, tokens)
        results = sluice.generate(model, np.array([[5, 3, 4], [7, 7, 7]]), max_new_tokens=6)
        for result, prompt in zip(results, ([5, 3, 4], [7, 7, 7])):
            self.assertLessEqual(len(result.tokens), 6)
            for i, token in enumerate(result.tokens):
                self.assertEqual(token, int(np.argmax(self.table.logits(3, prompt + result.tokens[:i]))))
        self.assertTrue(all(len(r.tokens) <= 5 for r in sluice.generate(model, [[3] * 5, [4] * 7], max_length=10)))
        with self.assertRaisesRegex(ValueError, "max_length = 7: input 1 has 7 tokens"):
            sluice.generate(model, [[3] * 5, [4] * 7], max_length=7)
        with self.assertRaisesRegex(TypeError, "inputs: must be a batch"):
            sluice.generate(model, [3, 4])

    def test_rules(self):
        results = sluice.generate(self.model, range(9), max_new_tokens=9, bad_words_ids=[[3], [4, 5]], suppress_tokens=[6],
                                  no_repeat_ngram_size=2, repetition_penalty=1.3, num_beams=3)
        for result in results:
            pairs = list(zip(result.tokens, result.tokens[1:]))
            self.assertFalse({3, 6} & set(result.tokens) or (4, 5) in pairs or len(set(pairs)) < len(pairs))
        for result in sluice.generate(self.model, range(9), num_beams=6, force_words_ids=[[6, 3]], max_new_tokens=12):
            self.assertIn((6, 3), list(zip(result.tokens, result.tokens[1:])))

    def test_samples(self):
        one, other = (sluice.generate(self.model, range(9), do_sample=True, top_k=0, temperature=1.5, num_return_sequences=3,
                                      max_new_tokens=9, seed=seed) for seed in (1, 2))
        self.assertNotEqual(seen(one), seen(other))
        self.assertEqual(seen(one[1:]), seen(sluice.generate(
            self.model, range(1, 9), do_sample=True, top_k=0, temperature=1.5, num_return_sequences=3, max_new_tokens=9, seed=2)))
        self.assertEqual([len(result) for result in one], [3] * 9)
        # Without a seed they are others each time, unless Python's random numbers begin where they began.
        drawn = []
        for state in None, None, 5, 5:
            random.seed(state)
            drawn.append(seen(sluice.generate(self.model, range(9), do_sample=True, top_k=0, temperature=1.5, max_new_tokens=9)))
        self.assertNotEqual(drawn[0], drawn[1])
        self.assertEqual(drawn[2], drawn[3])
        before = random.getstate()
        sluice.generate(self.model, range(9), max_new_tokens=9)
        self.assertEqual(random.getstate(), before)

    def test_what_cannot_be_is_refused(self):
        for arguments, kind, message in [
                (dict(num_beam=4), TypeError, "unexpected arguments: num_beam$"), (dict(a=1, b=2), TypeError, "arguments: a, b$"),
                (dict(num_beam_groups=2, num_beams=3), ValueError, "num_beams = 3: must be a multiple of num_beam_groups = 2"),
                (dict(num_beam_groups=2, num_beams=2), ValueError, "diversity_penalty = None: must be above 0"),
                (dict(num_beams=2, diversity_penalty=0.5), ValueError, "diversity_penalty = 0.5: needs num_beam_groups > 1"),
                *((dict(num_beam_groups=2, num_beams=2, diversity_penalty=0.5) | one, kind, message) for one, kind, message in [
                    (dict(repetition_penalty=1.3), NotImplementedError, "repetition_penalty with num_beam_groups.*DiverseBeamSearch"),
                    (dict(logits_processor=[lambda ids, scores: scores]), NotImplementedError, "logits_processor with num_beam_groups"),
                    (dict(forced_bos_token_id=3), NotImplementedError, "forced_bos_token_id with num_beam_groups"),
                    (dict(stopping_criteria=[print]), NotImplementedError, "stopping_criteria with num_beam_groups"),
                    (dict(stop_strings="a"), NotImplementedError, "stop_strings with num_beam_groups"),
                    (dict(output_scores=True), NotImplementedError, "output_scores with num_beam_groups"),
                    (dict(force_words_ids=[[3]]), ValueError, "force_words_ids: not with num_beam_groups"),
                    (dict(do_sample=True), ValueError, "num_beam_groups = 2: not with do_sample")]),
                (dict(penalty_alpha=0.6), NotImplementedError, "penalty_alpha = 0.6"),
                (dict(stop_strings=["a"]), TypeError, "token_bytes"),
                (dict(stop_strings=["a"], num_beams=2), TypeError, "token_bytes"),
                (dict(stop_strings=["a"], num_beams=2, force_words_ids=[[3]]), NotImplementedError, "stop_strings with force_words_ids"),
                (dict(do_sample=True, num_beams=2), NotImplementedError, "StochasticBeam"),
                (dict(temperature=0.5), ValueError, "needs do_sample=True"),
                (dict(num_beams=2, num_return_sequences=3), ValueError, "num_return_sequences = 3"),
                (dict(eos_token_id=8), ValueError, "eos_token_id = 8: is outside the vocabulary of 8"),
                (dict(eos_token_id="x"), TypeError, "eos_token_id = 'x'"), (dict(stopping_criteria=3), TypeError, "stopping_criteria: 3"),
                (dict(stopping_criteria=[lambda ids, scores: np.ones((2, 2), bool)], num_beams=2), ValueError, r"array of shape \(2, 2\): must be \(1,\)"),
                (dict(max_time=0), ValueError, "max_time = 0"), (dict(max_time="x"), TypeError, "max_time = 'x'"),
                (dict(logits_processor=[3]), TypeError, "logits_processor: 3: must be called with"),
                (dict(prefix_allowed_tokens_fn=3), TypeError, "prefix_allowed_tokens_fn = 3"),
                (dict(prefix_allowed_tokens_fn=lambda *_: []), ValueError, "returned no token for input 0"),
                (dict(logits_processor=lambda ids, scores: scores[:, :2]), ValueError, r"scores of shape \(1, 2\): must be \(1, 8\)"),
                (dict(forced_bos_token_id=[1, 2]), TypeError, "forced_bos_token_id"), (dict(sequence_bias={}), TypeError, "sequence_bias"),
                (dict(sequence_bias={(9,): 1.0}), ValueError, r"sequence_bias: \[9\]: must be tokens of the vocabulary of 8"),
                (dict(exponential_decay_length_penalty=3), TypeError, "exponential_decay_length_penalty = 3"),
                (dict(encoder_repetition_penalty=0.0), ValueError, "encoder_repetition_penalty = 0.0"),
                (dict(encoder_no_repeat_ngram_size=2), TypeError, "encoder_no_repeat_ngram_size: inputs: must be a batch"),
                (dict(guidance_scale=2.0), NotImplementedError, "guidance_scale: is for models without an encoder"),
                (dict(negative_prompt_ids=[[1]]), ValueError, "needs guidance_scale"),
                (dict(prompt_lookup_num_tokens=2, do_sample=True), NotImplementedError, "prompt_lookup_num_tokens with do_sample"),
                (dict(assistant_model=self.model, num_beams=2), NotImplementedError, "assistant_model with num_beams = 2"),
                (dict(assistant_model=object()), TypeError, "assistant_model: assistant_model needs abilities"),
                (dict(streamer=object(), num_beams=2), ValueError, "streamer: takes one input"),
                (dict(watermarking_config=3), NotImplementedError, "watermarking_config = 3"),
                (dict(generation_config=3), TypeError, "generation_config = 3"), (dict(generation_config=dict(num_beam=3)), TypeError, "num_beam$"),
                (dict(do_sample=True, epsilon_cutoff=2.0), ValueError, "epsilon_cutoff = 2"), (dict(do_sample=True, top_h=2.0), ValueError, "top_h = 2"),
                (dict(eta_cutoff=0.5), ValueError, "eta_cutoff = 0.5: needs do_sample"),
                (dict(early_stopping="always"), ValueError, "early_stopping = 'always'"),
                (dict(num_beams=2, force_words_ids=[[[3], [4]]]), NotImplementedError, "alternatives"),
                (dict(num_beams=0), ValueError, "num_beams = 0: must be at least 1"), (dict(num_beams=-1), ValueError, "num_beams = -1"),
                (dict(num_beams="x"), TypeError, "num_beams = 'x'"), (dict(num_return_sequences=0), ValueError, "num_return_sequences = 0"),
                (dict(num_return_sequences=-2, do_sample=True), ValueError, "num_return_sequences = -2"),
                (dict(max_new_tokens=0), ValueError, "max_new_tokens = 0: must be at least 1"), (dict(max_new_tokens=-1), ValueError, "max_new_tokens = -1"),
                (dict(max_length=0), ValueError, "max_length = 0"), (dict(min_new_tokens=-1), ValueError, "min_new_tokens = -1"),
                (dict(min_length=-1), ValueError, "min_length = -1"), (dict(no_repeat_ngram_size=-1), ValueError, "no_repeat_ngram_size = -1"),
                (dict(repetition_penalty=0.0), ValueError, "repetition_penalty = 0.0"), (dict(repetition_penalty=0.0, num_beams=2), ValueError, "penalties.repetition = 0"), (dict(do_sample=True, top_k=-1), ValueError, "top_k = -1"),
                (dict(do_sample=True, min_p=2.0), ValueError, "min_p = 2"), (dict(num_beams=2, length_penalty=math.nan), ValueError, "alpha = nan"),
                (dict(seed=-1), ValueError, "seed = -1"), (dict(seed="x"), ValueError, "seed = 'x'"),
                (dict(input_ids=[[1]]), TypeError, "both inputs and input_ids"), (dict(use_cache=False), NotImplementedError, "use_cache"),
                *((dict([(name, "x")]), NotImplementedError, f"{name} = 'x': is not supported; instead: .{{20}}")
                  for name in sluice._generate._UNSUPPORTED)]:
            if "early_stopping" in arguments:
                arguments["num_beams"] = 2
            with self.assertRaisesRegex(kind, message):
                sluice.generate(self.model, [1], **arguments)
        fused = sluice.Fused(TableModel(), TableModel())
        with self.assertRaisesRegex(NotImplementedError, "a Fused is never called from Python"):
            sluice.generate(fused, [[3, 4]], repetition_penalty=1.3)
        sluice.generate(self.model, [1], num_beam_groups=1, pad_token_id=0, eos_token_id=EOS, use_cache=True, attention_mask=None)


if __name__ == "__main__":
    unittest.main()

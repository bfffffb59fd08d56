# SPDX-License-Identifier: Apache-2.0
"""N-grams and fusion find what back-off by hand and enumeration find."""
import itertools
import math
import os
import pathlib
import tempfile
import unittest

import numpy as np

import sluice
from sluice import BeamSearch, Blockwise, Fused, Greedy, LengthLimits, NGramModel, NGrams, Sample, Vocabulary
from table import BOS, EOS, Table, TableModel
from test_decoding import ALL, LENGTH, seen

ARPA = r"""\data\
ngram 1=7
ngram 2=7
ngram 3=2

\1-grams:
-99	<s>	-0.4
-1.2	</s>
-1.5	<unk>
-0.7	a	-0.3
-0.9	b	-0.2
-1.1	ab	-0.1
-1.3	c	-0.25

\2-grams:
-0.3	<s> a	-0.15
-0.8	<s> b
-0.5	a b	-0.35
-0.6	b ab
-0.4	ab </s>
-0.2	c a
-0.9	a c

\3-grams:
-0.1	<s> a b
-0.25	a b ab

\end\
"""
LN10 = math.log(10)


class Arpa:
    """The file, read again: log p of a word after others."""

    def __init__(self, text=ARPA):
        self.grams = {}
        for line in text.splitlines():
            fields = line.split("\t")
            if len(fields) > 1:
                self.grams[tuple(fields[1].split())] = float(fields[0]) * LN10, float(fields[2]) * LN10 if fields[2:] else 0.0

    def log_prob(self, word, context):
        word = word if (word,) in self.grams else "<unk>"
        context = tuple(w if (w,) in self.grams else "<unk>" for w in context)[-2:]
        if context + (word,) in self.grams:
            return self.grams[context + (word,)][0]
        return self.grams.get(context, (0, 0.0))[1] + self.log_prob(word, context[1:])

    def sentence(self, words):
        context, total = ("<s>",), 0.0
        for word in [*words, "</s>"]:
            total += self.log_prob(word, context)
            context += (word,)
        return total


class Written(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name, "lm.arpa")
        cls.path.write_text(ARPA)
        cls.arpa, cls.ngrams = Arpa(), NGrams.open(cls.path)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()


class Tables(Written):
    def test_log_probs(self):
        for length in range(4):
            for words in itertools.product(["a", "b", "ab", "c", "zebra"], repeat=length):
                self.assertAlmostEqual(self.ngrams.log_prob(words), self.arpa.sentence(words), 5)
                self.assertAlmostEqual(self.ngrams.log_prob(" ".join(words)), self.arpa.sentence(words), 5)
                self.assertEqual(self.ngrams.log_prob(self.ngrams.find(words)), self.ngrams.log_prob(words))

    def test_words(self):
        self.assertEqual(len(self.ngrams), 7)
        words = ["<s>", "</s>", "<unk>", "a", b"b", "ab", "c"]
        numbers = self.ngrams.find(words)
        self.assertEqual(sorted(numbers), list(range(7)))
        self.assertEqual([self.ngrams.spelling(n) for n in numbers], [w if isinstance(w, bytes) else w.encode() for w in words])
        self.assertEqual(self.ngrams.find(["x", "", "a b"]), [-1, -1, -1])
        self.assertEqual(self.ngrams.find([]), [])

    def test_what_is_wrong_is_said(self):
        folder = pathlib.Path(self.folder.name)
        for name, content, message in [("cut", ARPA[:200].encode(), "cut: .*line"), ("gz", b"\x1f\x8b0123456789", "is compressed"),
                                       ("binary", b"SLUICENG" + bytes(100), "binary: n-grams: "), ("empty", b"", "empty: ")]:
            (folder / name).write_bytes(content)
            with self.subTest(name), self.assertRaisesRegex(sluice.Error, message):
                NGrams.open(folder / name)
        with self.assertRaisesRegex(sluice.Error, "absent: cannot be opened"):
            NGrams.open(folder / "absent")
        with self.assertRaisesRegex(sluice.ArgumentError, "word = 7: the table has 7"):
            self.ngrams.spelling(7)
        with self.assertRaisesRegex(sluice.ArgumentError, "words = 7: the table has 7"):
            self.ngrams.log_prob([0, 7])


class Models(Written):
    """Tokens: 0 pad, 1 begin, 2 end, 3 a, 4 b, 5 ab, 6 c, 7 no word."""
    VOCABULARY = Vocabulary(8, BOS, EOS, [0, BOS])
    SPELT = ["", "", "", "a", "b", "ab", "c", "zebra"]

    def model(self, unknown=-0.5):
        return NGramModel(self.ngrams, self.VOCABULARY, words=self.ngrams.find(self.SPELT), unknown=unknown)

    def line(self, tokens, unknown=-0.5):
        """[V] after these tokens, without begin."""
        context = ["<s>", *(self.SPELT[t] for t in tokens)]
        line = np.full(8, -np.inf)
        for token in range(2, 8):
            line[token] = self.arpa.log_prob("</s>" if token == EOS else self.SPELT[token], context) + unknown * (token == 7)
        return line

    def test_decoded(self):
        """A beam that is wide finds the best of all outputs, and greedy the best of each line."""
        model = self.model()
        result, = sluice.decode(model, [None], BeamSearch(width=400, length=LengthLimits(max=4)))
        best = max((sum(self.line(t[:i])[v] for i, v in enumerate(t)) / len(t), t) for n in range(4)
                   for t in (t + (EOS,) for t in itertools.product(range(3, 8), repeat=n)))
        self.assertEqual(tuple(result.tokens), best[1])
        self.assertAlmostEqual(result.score, best[0], 4)
        result, = sluice.decode(model, [None], Greedy(length=LENGTH))
        for i, token in enumerate(result.tokens):
            self.assertEqual(token, int(np.argmax(self.line(result.tokens[:i]))))
            self.assertAlmostEqual(result.best.log_probs[i], self.line(result.tokens[:i])[token], 4)

    def test_the_words_of_the_table_may_be_the_tokens(self):
        model = NGramModel(self.ngrams)
        self.assertEqual(model.vocabulary.size, 7)
        result, = sluice.decode(model, [None], Greedy(length=LENGTH))
        words = [self.ngrams.spelling(token).decode() for token in result.tokens]
        self.assertEqual(words[-1], "</s>")
        self.assertAlmostEqual(result.best.log_prob, self.ngrams.log_prob(words[:-1]), 4)

    def test_fused(self):
        """The same as a model in Python whose lines are the sums, under every search, and in a server."""
        table = Table()

        class Sum(TableModel):
            def line(this, source, tokens):
                tokens = tokens[1:] if tokens[0] == BOS else tokens
                bonus = np.array([0, 0, 0, .2, .2, 0, 0, 0])
                return table.log_probs(source, tokens) + 0.4 * self.line(tokens) + bonus

        for search in (Greedy(length=LENGTH), BeamSearch(width=4, n_best=3, length=LENGTH), Blockwise(block=4, length=LENGTH)):
            model = TableModel(table, abilities=ALL, guess=True)
            fused = Fused(model, self.model(), weight=0.4, word_bonus=0.2, words=[3, 4])
            results = sluice.decode(fused, range(20), search)
            for result, wanted in zip(results, sluice.decode(Sum(table, "log_probs", ALL), range(20), search)):
                self.assertEqual([h.tokens for h in result], [h.tokens for h in wanted])
                for h, other in zip(result, wanted):
                    np.testing.assert_allclose(h.log_probs, other.log_probs, atol=1e-4)
            self.assertGreater(len({tuple(result.tokens) for result in results}), 3)
            self.assertNotEqual(seen(results), seen(sluice.decode(model, range(20), search)))
            with sluice.Server(fused, search, batch=3) as server:
                futures = [server.submit(source) for source in range(20)]
                self.assertEqual(seen(future.result() for future in futures), seen(results))

    def test_maps_of_vocabularies(self):
        """The table's words as the language model's tokens."""
        tokens = [n if n >= 0 else -1 for n in self.ngrams.find(["?", "<s>", "</s>", "a", "b", "ab", "c", "zebra"])]
        unknown, = self.ngrams.find(["<unk>"])
        language = NGramModel(self.ngrams)
        for how, line in [(dict(unknown=unknown, unknown_log_prob=-0.5), self.line), (dict(), self.without_unknown)]:
            fused = Fused(TableModel(), language, weight=0.7, tokens=tokens, **how)
            for seed, result in enumerate(sluice.decode(fused, range(10), Greedy(length=LENGTH))):
                for i, token in enumerate(result.tokens):
                    sums = Table().log_probs(seed, result.tokens[:i]) + 0.7 * line(result.tokens[:i])
                    self.assertAlmostEqual(result.best.log_probs[i], np.max(sums), 4)
                    self.assertEqual(token, int(np.argmax(sums)))

    def without_unknown(self, tokens):
        line = self.line(tokens)
        line[7] = -np.inf
        return line

    def test_any_model_may_be_the_language_model(self):
        """And two fusions, one around the other: the density ratio."""
        one, other = TableModel(Table(scale=5)), TableModel(Table(scale=3, eos_bias=0))
        fused = Fused(Fused(TableModel(), one, weight=-0.3), other, weight=0.5)
        for seed, result in enumerate(sluice.decode(fused, range(10), Greedy(length=LENGTH))):
            for i, token in enumerate(result.tokens):
                before = result.tokens[:i]
                sums = [a - 0.3 * b + 0.5 * c for a, b, c in zip(*(t.log_probs(seed, before)[2:]
                                                                   for t in (Table(), one.table, other.table)))]
                self.assertAlmostEqual(result.best.log_probs[i], max(sums), 3)
                self.assertEqual(token, int(np.argmax(sums)) + 2)
        self.assertGreater(min(one.calls, other.calls), 3)
        self.assertFalse(one.slots or other.slots)

    def test_errors_of_a_language_model_are_raised(self):
        class Broken(TableModel):
            def step(self, rows):
                raise RuntimeError("no words")

        with self.assertRaisesRegex(RuntimeError, "no words"):
            sluice.decode(Fused(TableModel(), Broken()), [1])

    def test_words_over_subwords(self):
        """A finished output scores as its words do, however it is cut."""
        texts = ["", "", "", " a", " ", "b", "a", " b c"]
        model = NGramModel(self.ngrams, self.VOCABULARY, token_bytes=texts, unknown=-0.25)
        flat = sluice.FunctionModel(lambda tokens: np.array([-np.inf, -np.inf, 0, 0, 0, 0, 0, 0]), self.VOCABULARY, kind="log_probs")
        results, = sluice.decode(Fused(flat, model, weight=1.0), [None], BeamSearch(width=300, n_best=300, length=LengthLimits(max=4)))
        self.assertGreater(len(results), 100)
        for h in results:
            words = "".join(texts[token] for token in h.tokens).split(" ")
            words = [word for word in words if word]
            self.assertAlmostEqual(h.log_prob, self.arpa.sentence(words) - 0.25 * sum((w,) not in self.arpa.grams for w in words), 4)

    def test_samples_are_drawn_from_the_normalised_sum(self):
        counts = np.zeros(8)
        fused = Fused(TableModel(), self.model(), weight=1.0, normalise=True)
        results = sluice.decode(fused, [sluice.Request(5, seed=seed) for seed in range(3000)], Sample(length=LengthLimits(max=1)))
        for result in results:
            counts[result.tokens[0]] += 1
        sums = np.exp(Table().log_probs(5, ()) + self.line(()))
        wanted = sums / np.sum(sums) * 3000
        likely = wanted > 5
        self.assertLess(np.sum((counts - wanted)[likely] ** 2 / wanted[likely]), 30)
        self.assertAlmostEqual(results[0].best.log_probs[0], math.log(wanted[results[0].tokens[0]] / 3000), 3)

    def test_what_is_wrong_is_said(self):
        one, words = TableModel(), self.ngrams.find(self.SPELT)
        for make, kind, message in [
                (lambda: Fused(one, self.model(), weight=math.nan), sluice.ArgumentError, "weight = nan"),
                (lambda: Fused(one, self.model(), word_bonus=math.inf), sluice.ArgumentError, "word_bonus = inf"),
                (lambda: Fused(one, self.model(), words=[8]), sluice.ArgumentError, "words = 8"),
                (lambda: Fused(one, NGramModel(self.ngrams)), sluice.ArgumentError, "language model"),
                (lambda: Fused(one, self.model(), tokens=[1, 2]), sluice.ArgumentError, r"tokens.size\(\) = 2"),
                (lambda: Fused(one, self.model(), tokens=[0] * 7 + [9]), sluice.ArgumentError, "tokens = 9"),
                (lambda: Fused(one, "words"), TypeError, "language = 'words'"),
                (lambda: NGramModel(self.ngrams, self.VOCABULARY), TypeError, "needs words or token_bytes"),
                (lambda: NGramModel(self.ngrams, words=words), TypeError, "need a vocabulary"),
                (lambda: NGramModel(self.ngrams, self.VOCABULARY, words=[1]), ValueError, "words has 1 entries: must be 8"),
                (lambda: NGramModel(self.ngrams, self.VOCABULARY, words=[7] * 8), sluice.ArgumentError, "word = 7"),
                (lambda: NGramModel(self.ngrams, self.VOCABULARY, words=words, unknown=math.nan), sluice.ArgumentError, "unknown")]:
            with self.assertRaisesRegex(kind, message):
                sluice.Decoder(make())
        with self.assertRaises(AttributeError):
            Fused(one, self.model()).token_bytes
        self.assertEqual(Fused(one, self.model()).vocabulary, one.vocabulary)


if __name__ == "__main__":
    unittest.main()

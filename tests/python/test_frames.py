# SPDX-License-Identifier: Apache-2.0
"""CTC from Python: against every alignment of small matrices, and against itself cut, spread and streamed otherwise."""
import itertools
import math
import pathlib
import tempfile
import unittest

import numpy as np

import sluice

LABELS = ["", "a", "b", " "]
WIDE = sluice.CtcBeamSearch(width=400, n_best=400)


def frames(seed, count=5, labels=4):
    """Log-probabilities."""
    logits = np.random.default_rng(seed).normal(0, 2, (count, labels))
    return (logits - np.log(np.exp(logits).sum(1, keepdims=True))).astype(np.float32)


def every_text(matrix, blank=0):
    """{tokens: [log p, log p of the best alignment, its ranges]}, by going through all alignments."""
    found = {}
    for path in itertools.product(range(matrix.shape[1]), repeat=len(matrix)):
        log_p = sum(float(matrix[i, label]) for i, label in enumerate(path))
        tokens, ranges, before = [], [], blank
        for i, label in enumerate(path):
            if label != blank and label == before:
                ranges[-1] = (ranges[-1][0], i + 1)
            elif label != blank:
                tokens.append(label)
                ranges.append((i, i + 1))
            before = label
        one = found.setdefault(tuple(tokens), [-math.inf, -math.inf, None])
        one[0] = np.logaddexp(one[0], log_p)
        if log_p > one[1]:
            one[1:] = log_p, ranges
    return found


def words_of(tokens, labels=LABELS):
    return "".join(labels[token] for token in tokens).split()


class EveryText(unittest.TestCase):
    def check(self, decoder, matrix, adds=lambda tokens: 0.0, allowed=lambda tokens: True):
        """All texts, their probabilities, and the order of their scores."""
        result, = decoder.decode(matrix)
        wanted = {tokens: (one[0] + adds(tokens), *one) for tokens, one in every_text(matrix).items() if allowed(tokens)}
        self.assertEqual({tuple(h.tokens) for h in result}, set(wanted))
        for h in result:
            score, log_prob, _, ranges = wanted[tuple(h.tokens)]
            self.assertAlmostEqual(h.log_prob, log_prob, places=4)
            self.assertAlmostEqual(h.score, score, places=4)
            self.assertEqual(h.frames, ranges)
            self.assertEqual([word.word for word in h.words], words_of(h.tokens))
        self.assertEqual([h.score for h in result], sorted((h.score for h in result), reverse=True))

    def test_frames_alone(self):
        for seed in range(6):
            self.check(sluice.CtcDecoder(LABELS, search=WIDE), frames(seed))
        self.check(sluice.CtcDecoder(LABELS, search=WIDE, kind="log_probs"), frames(9))

    def test_probabilities(self):
        matrix = frames(3)
        result, = sluice.CtcDecoder(LABELS, search=WIDE, kind="probs").decode(np.exp(matrix))
        self.assertEqual([h.tokens for h in result][:9],
                         [h.tokens for h in sluice.CtcDecoder(LABELS, search=WIDE).decode(matrix)[0]][:9])
        with self.assertRaisesRegex(sluice.ArgumentError, r"matrices\[0\].*rows sum to 1: are probabilities"):
            sluice.CtcDecoder(LABELS).decode(np.exp(matrix))
        with self.assertRaisesRegex(sluice.ArgumentError, "no probabilities"):
            sluice.CtcDecoder(LABELS, kind="probs").decode(matrix)

    def test_best_alignment_alone(self):
        matrix = frames(5)
        wanted = every_text(matrix)
        for h in sluice.CtcDecoder(LABELS, search=WIDE.replace(viterbi=True)).decode(matrix)[0]:
            self.assertAlmostEqual(h.log_prob, wanted[tuple(h.tokens)][1], places=4)

    def test_lexicon(self):
        lexicon = {"ab": "ab", "a": ["a"], "bb": [["b", "b"], ["b"]]}
        result, = sluice.CtcDecoder(LABELS, search=WIDE, lexicon=lexicon).decode(frames(1))
        wanted = {tokens for tokens in every_text(frames(1)) if all(word in ("ab", "a", "bb", "b") for word in words_of(tokens))}
        self.assertEqual({tuple(h.tokens) for h in result}, wanted)
        for h in result:
            self.assertEqual([word.word for word in h.words], [{"b": "bb"}.get(word, word) for word in words_of(h.tokens)])
        self.assertEqual([h.tokens for h in sluice.CtcDecoder(LABELS, search=WIDE, lexicon=["ab", "a"]).decode(frames(1))[0]],
                         [h.tokens for h in result if "bb" not in [word.word for word in h.words]])

    def test_language_models(self):
        with tempfile.TemporaryDirectory() as folder:
            arpa = pathlib.Path(folder, "w.arpa")
            arpa.write_text("\\data\\\nngram 1=6\nngram 2=2\n\n\\1-grams:\n-99 <s> -0.3\n-0.9 </s>\n-1.2 <unk>\n-0.5 a -0.2\n-0.8 ab -0.1\n"
                            "-0.7 b\n\n\\2-grams:\n-0.2 <s> ab\n-0.4 ab a\n\n\\end\\\n")
            table = sluice.NGrams.open(arpa)
            weights = sluice.FusionWeights(weight=0.7, bonus=0.4, unknown=-2)

            def adds(tokens):
                words = words_of(tokens)
                unknown = sum(table.find([word])[0] < 0 for word in words)
                return 0.7 * (table.log_prob(words) - 2 * unknown) + 0.4 * len(words)
            for seed in range(3):
                self.check(sluice.CtcDecoder(LABELS, search=WIDE, language_model=table, weights=weights), frames(seed), adds)
                self.check(sluice.CtcDecoder(LABELS, search=WIDE, language_model=arpa, weights=weights, lexicon=["a", "ab", "bb"]), frames(seed),
                           adds, lambda tokens: all(word in ("a", "ab", "bb") for word in words_of(tokens)))
            of_labels = sluice.CtcDecoder(LABELS, search=WIDE, language_model=table, weights=weights, language_model_of="labels")
            numbers = table.find(LABELS)

            def label_adds(tokens):
                unknown = sum(numbers[token] < 0 for token in tokens)
                return 0.7 * (table.log_prob([numbers[token] for token in tokens]) - 2 * unknown) + 0.4 * len(tokens)
            self.check(of_labels, frames(4), label_adds)
            binary = pathlib.Path(folder, "w.binary")
            binary.write_bytes(b"mmap lm http://kheafield.com/code format version 5\n\0" + bytes(80))
            with self.assertRaisesRegex(sluice.Error, "w.binary: is a binary file of KenLM: give the ARPA file"):
                sluice.CtcDecoder(LABELS, language_model=binary)

    def test_hotwords_are_whole_words(self):
        hot = {"ab": 2.5, "b a": 4.0}

        def adds(tokens):
            text = "".join(LABELS[token] for token in tokens)
            around = f" {text} "
            places = range(len(around))
            return sum(boost * sum(around.startswith(f" {word} ", i) for i in places) for word, boost in hot.items())
        for seed in range(3):
            self.check(sluice.CtcDecoder(LABELS, search=WIDE, hotwords=hot), frames(seed), adds)
        matrix, plain = frames(2), sluice.CtcDecoder(LABELS, search=WIDE)
        self.assertEqual(plain.decode(matrix, hotwords=hot), sluice.CtcDecoder(LABELS, search=WIDE, hotwords=hot).decode(matrix))
        self.assertEqual(plain.decode(matrix, hotwords=["ab"]), sluice.CtcDecoder(LABELS, search=WIDE).decode(matrix, hotwords={"ab": 4}))

    def test_grammar_and_forbidden(self):
        grammar = sluice.Grammar.regex("a+( b)?")
        matches = {(1,), (1, 1), (1, 1, 1), (1, 3, 2), (1, 1, 3, 2)}
        self.check(sluice.CtcDecoder(LABELS, search=WIDE, grammar=grammar), frames(0), allowed=lambda tokens: tokens in matches)
        self.check(sluice.CtcDecoder(LABELS, search=WIDE.replace(forbidden=[[1, 2]])), frames(0),
                   allowed=lambda tokens: (1, 2) not in zip(tokens, tokens[1:]))

    def test_alignment(self):
        matrix, decoder = frames(7), sluice.CtcDecoder(LABELS)
        for tokens, (_, best, ranges) in every_text(matrix).items():
            found = decoder.align(matrix, list(tokens))
            self.assertAlmostEqual(found.log_prob, best, places=4)
            self.assertEqual((found.tokens, found.frames), (list(tokens), ranges))
        self.assertEqual(decoder.align(matrix, "a b").tokens, [1, 3, 2])
        self.assertEqual((decoder.align(matrix, "aaaa").log_prob, decoder.align(matrix, "aaaa").frames), (-math.inf, []))


class Together(unittest.TestCase):
    search = sluice.CtcBeamSearch(width=12, n_best=3)

    def test_neither_batch_nor_threads_change_a_bit(self):
        decoder = sluice.CtcDecoder(LABELS, search=self.search, hotwords=["ab"])
        matrices = [frames(seed, 6 + seed % 30) for seed in range(23)]
        alone = [decoder.decode(matrix)[0] for matrix in matrices]
        for threads in 0, 1, 2, 5, 40:
            together = decoder.decode(matrices, threads=threads)
            self.assertEqual([result.hypotheses for result in together], [result.hypotheses for result in alone])
            self.assertEqual([result.id for result in together], list(range(23)))
        padded = np.zeros((23, 40, 4), np.float32)
        for i, matrix in enumerate(matrices):
            padded[i, :len(matrix)] = matrix
        lengths = np.array([len(matrix) for matrix in matrices])
        for given in padded, padded.astype(np.float64), np.asfortranarray(padded), list(padded), padded.tolist():
            self.assertEqual([result.hypotheses for result in decoder.decode(given, lengths)], [result.hypotheses for result in alone])
        self.assertEqual(decoder.decode([]), [])

    def test_streams(self):
        decoder, random = sluice.CtcDecoder(LABELS, search=self.search), np.random.default_rng(4)
        for seed in range(5):
            matrix = frames(seed, 60)
            stream, at, before = decoder.stream(), 0, ""
            while at < 60:
                step = int(random.integers(0, 9))
                self.assertEqual(stream.append(matrix[at:at + step]), [])
                self.assertTrue(stream.settled.startswith(before))
                before, at = stream.settled, at + step
            result = stream.finish()
            self.assertEqual(result, decoder.decode(matrix)[0])
            self.assertTrue(result.text.startswith(before.strip()) and before)
            with self.assertRaisesRegex(sluice.Error, "has ended"):
                stream.append(matrix)
        self.assertEqual(len(decoder.stream().finish()), 0)

    def test_endpoints(self):
        search = self.search.replace(endpoint=sluice.Endpoint(longest=7))
        decoder, matrix = sluice.CtcDecoder(LABELS, search=search), frames(3, 30)
        stream, results = decoder.stream(), []
        for piece in matrix[:11], matrix[11:12], matrix[12:]:
            results += stream.append(piece)
        results.append(stream.finish())
        self.assertEqual([result.frames for result in results], [7, 7, 7, 7, 2])
        for i, result in enumerate(results):
            self.assertEqual(result, decoder.decode(matrix[7 * i:7 * i + 7])[0])
        stream = decoder.stream()
        self.assertEqual(len(stream.append(matrix[:14])), 2)
        self.assertEqual(stream.finish().frames, 0)


class Language:
    """A language model whose scores depend on the last two tokens. Its tokens are end, x, begin, b, a, space: others than the labels."""

    vocabulary, abilities = sluice.Vocabulary(6, 2, 0), sluice.Abilities(ragged=True)
    tokens = [-1, 4, 3, 5]  # of blank, a, b, space

    def __init__(self, seed=1):
        self.table = np.random.default_rng(seed).normal(0, 1.5, (6, 6, 6)).astype(np.float32)
        self.slots, self.calls, self.rows = {}, 0, 0

    def start(self, sources, slots):
        self.slots.update((slot, (0, 0)) for slot in slots)

    def step(self, rows):
        before = [self.slots[row.from_] for row in rows]
        for row, held in zip(rows, before):
            self.slots[row.to] = (*held, *row.tokens)[-2:]
        self.calls, self.rows = self.calls + 1, self.rows + len(rows)
        return np.stack([self.table[self.slots[row.to]] for row in rows])

    def log_prob(self, labels):
        """With its end."""
        text, log_p = [0, 2], 0.0
        for token in [*(self.tokens[label] for label in labels), 0]:
            line = self.table[text[-2], text[-1]].astype(float)
            log_p += line[token] - np.log(np.exp(line).sum())
            text.append(token)
        return log_p

    def after(self, labels):
        """The same as a function from the labels, blank first: logits of the labels, where those of x and begin count as the end's."""
        text = [0, 2, *(self.tokens[label] for label in labels[1:])]
        line = self.table[text[-2], text[-1]].astype(float)
        return [np.log(np.exp(line[[0, 1, 2]]).sum()), *(line[token] for token in self.tokens[1:])]


class LanguageModels(unittest.TestCase):
    check = EveryText.check
    weights = sluice.FusionWeights(weight=0.7, bonus=0.4)

    def test_any_model(self):
        model = Language()
        for seed in range(3):
            for more in {}, {"lexicon": ["ab", "b"]}, {"hotwords": {"ab": 1.5}}:
                def adds(tokens):
                    text = f' {"".join(LABELS[token] for token in tokens)} '
                    hot = 1.5 * sum(text.startswith(" ab ", i) for i in range(len(text))) if "hotwords" in more else 0
                    return 0.7 * model.log_prob(tokens) + 0.4 * len(tokens) + hot
                decoder = sluice.CtcDecoder(LABELS, search=WIDE, language_model=model, weights=self.weights, language_model_tokens=model.tokens, **more)
                self.check(decoder, frames(seed), adds, lambda tokens: "lexicon" not in more or all(word in ("ab", "b") for word in words_of(tokens)))

    def test_tokens_of_the_same_bytes(self):
        model = Language()
        model.token_bytes = [b"", b"x", b"", b"b", b"a", b" "]
        given, found = (sluice.CtcDecoder(LABELS, search=WIDE, language_model=model, language_model_tokens=tokens) for tokens in (model.tokens, None))
        self.assertEqual(given.decode(frames(1)), found.decode(frames(1)))
        with tempfile.TemporaryDirectory() as folder:
            arpa = pathlib.Path(folder, "l.arpa")
            arpa.write_text("\\data\\\nngram 1=6\nngram 2=2\n\n\\1-grams:\n-99 <s> -0.3\n-0.9 </s>\n-1.2 <unk>\n-0.5 a -0.2\n-0.8 b -0.1\n"
                            "-0.7 <sp>\n\n\\2-grams:\n-0.2 <s> b\n-0.4 b a\n\n\\end\\\n")
            table, labels = sluice.NGrams.open(arpa), ["", "a", "b", "<sp>"]
            run = sluice.NGramModel(table,  # n-grams that are run score as those that are looked up
                                    sluice.Vocabulary(4, 0, 0), words=table.find(labels))
            one, other = (sluice.CtcDecoder(labels, search=WIDE, language_model=it, language_model_of="labels").decode(frames(3))[0] for it in (table, run))
            scores = {tuple(h.tokens): h.score for h in one}
            self.assertEqual(set(scores), {tuple(h.tokens) for h in other})
            for h in other:
                self.assertAlmostEqual(h.score, scores[tuple(h.tokens)], places=4)

    def test_a_function(self):
        model, seen = Language(), []

        def after(tokens):
            seen.append(tokens[0])
            return model.after(tokens)

        def log_prob(labels):
            log_p, text = 0.0, [0]
            for label in (*labels, 0):
                line = np.array(model.after(text))
                log_p += line[label] - np.log(np.exp(line).sum())
                text.append(label)
            return log_p
        self.check(sluice.CtcDecoder(LABELS, search=WIDE, language_model=after, weights=self.weights), frames(2),
                   lambda tokens: 0.7 * log_prob(tokens) + 0.4 * len(tokens))
        self.assertEqual(set(seen), {0})

    def test_batches_and_streams(self):
        search, model = sluice.CtcBeamSearch(width=8, n_best=2), Language()
        decoder = sluice.CtcDecoder(LABELS, search=search, language_model=model, language_model_tokens=model.tokens)
        matrices = [frames(seed, 20 + seed % 7) for seed in range(12)]
        alone = [decoder.decode(matrix)[0] for matrix in matrices]
        calls, rows, model.calls, model.rows = model.calls, model.rows, 0, 0
        self.assertEqual([result.hypotheses for result in decoder.decode(matrices, threads=3)], [result.hypotheses for result in alone])
        self.assertEqual(rows, model.rows)
        self.assertLess(5 * model.calls, calls)  # one call a step, of all matrices
        streams = [decoder.stream() for _ in matrices]  # all open at once
        for at in range(0, 30, 4):
            for stream, matrix in zip(streams, matrices):
                stream.append(matrix[at:at + 4])
        self.assertEqual([stream.finish().hypotheses for stream in streams], [result.hypotheses for result in alone])

    def test_wrong_ones(self):
        model = Language()
        for call, message in [
                (lambda: sluice.CtcDecoder(LABELS, language_model=model), "has 6 tokens, and there are 4 labels"),
                (lambda: sluice.CtcDecoder(LABELS, language_model=model, language_model_tokens=[0, 1]), "has 2 entries: must be 4"),
                (lambda: sluice.CtcDecoder(LABELS, language_model=model, language_model_tokens=[0, 1, 9, 2]), r"model_tokens\[2\] = 9"),
                (lambda: sluice.CtcDecoder(LABELS, language_model_tokens=[0, 1, 2, 3]), "language_model_tokens: given"),
                (lambda: sluice.CtcDecoder(LABELS, language_model=model, language_model_tokens=model.tokens, weights=sluice.FusionWeights(unknown=-1)),
                 "unknown = -1")]:
            with self.assertRaisesRegex(sluice.ArgumentError, message):
                call()
        class Module:  # of torch, say
            def __call__(self, tokens): ...
            forward = __call__
        for given in Module(), sluice.FunctionModel, 3:
            with self.assertRaisesRegex(TypeError, "has no vocabulary.*a model of transformers by sluice.huggingface"):
                sluice.CtcDecoder(LABELS, language_model=given)
        with self.assertRaisesRegex(TypeError, "has no vocabulary.*a model of transformers by sluice.huggingface"):
            sluice.generate(Module(), [[0]])
        model.abilities = sluice.Abilities()
        with self.assertRaisesRegex(sluice.ArgumentError, "not ragged"):
            sluice.CtcDecoder(LABELS, language_model=model, language_model_tokens=model.tokens)

        def broken(tokens):
            raise RuntimeError("out of words")
        decoder = sluice.CtcDecoder(LABELS, language_model=broken)
        with self.assertRaisesRegex(RuntimeError, "out of words"):
            decoder.decode(frames(0))
        result, = decoder.decode(frames(0), errors="return")
        self.assertEqual((result.failure, str(result.cause)), ("model", "out of words"))
        with self.assertRaisesRegex(RuntimeError, "out of words"):
            decoder.stream().append(frames(0))


class Labels(unittest.TestCase):
    def test_blanks_and_separators(self):
        self.assertEqual(sluice.CtcDecoder(["a", "<pad>", "|"]).blank, 1)
        self.assertEqual(sluice.CtcDecoder({"a": 1, "-": 0}, "-").blank, 0)
        self.assertEqual(sluice.CtcDecoder(["a", "-"], 1).blank, 1)
        with self.assertRaisesRegex(sluice.ArgumentError, "blank = None: none of the labels"):
            sluice.CtcDecoder(["a", "b"])
        eye = 9 * np.eye(4, dtype=np.float32)
        for labels, wanted in ((["<pad>", "|", "a", "b"], "ab b"), (["", "\u2581a", "b", "\u2581b"], "b b a"), (["", "a", "##b", "b"], "bb a")):
            path = [2, 3, 1, 3] if wanted == "ab b" else [3, 2, 1] if wanted == "bb a" else [3, 0, 3, 1]
            result, = sluice.CtcDecoder(labels).decode(eye[path])
            self.assertEqual((result.text, [word.word for word in result.words]), (wanted, wanted.split()))
        decoder = sluice.CtcDecoder(["", "\u2581a", "b", "\u2581ab"])
        self.assertEqual((decoder.spell("ab a"), decoder.spell(["b", 1])), ([3, 1], [2, 1]))
        with self.assertRaisesRegex(sluice.ArgumentError, "no label is 'c'"):
            decoder.spell("abc")

    def test_lexicon_files(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "words.lst")
            file.write_text("ab a b |\nbee b\nba\n")
            decoder = sluice.CtcDecoder(["", "a", "b", "|"], search=WIDE, lexicon=file)
            words = {word.word for h in decoder.decode(frames(0))[0] for word in h.words}
            self.assertEqual(words, {"ab", "bee", "ba"})
            file.write_text("ab a b\nc c\n")
            with self.assertRaisesRegex(sluice.ArgumentError, r"label = 'c'.*words.lst, line 2"):
                sluice.CtcDecoder(["", "a", "b", "|"], lexicon=file)

    def test_confidence(self):
        result, = sluice.CtcDecoder(LABELS).decode(frames(2, 9))
        for word in result.words:
            its = [p for p, (begin, end) in zip(result.best.log_probs, result.best.frames) if word.start <= begin and end <= word.end]
            self.assertAlmostEqual(word.confidence, math.exp(sum(its) / len(its)), places=5)

    def test_wrong_ones_are_refused(self):
        decoder = sluice.CtcDecoder(LABELS)
        for call, message in [
                (lambda: decoder.decode(np.zeros((3, 5))), r"matrices\[0\] is \[3, 5\]: must be \[frames, 4\]"),
                (lambda: decoder.decode(np.zeros(4)), "matrices: an array of 1 dimensions"),
                (lambda: decoder.decode("abc"), "matrices: must be numbers"),
                (lambda: decoder.decode(np.array([frames(0), frames(0)[:2]], object)), "matrices: must be numbers"),
                (lambda: decoder.stream().append(np.zeros(4)), "frames: an array of 1 dimensions"),
                (lambda: sluice.CtcDecoder(LABELS, hotwords=["abc"]), "hotwords = 'abc': no label is 'c'"),
                (lambda: decoder.decode(frames(0)[None], [9]), r"lengths\[0\] = 9: the matrix has 5"),
                (lambda: decoder.decode(frames(0)[None], [1, 2]), "lengths has 2 entries"),
                (lambda: decoder.decode(frames(0), search=sluice.CtcBeamSearch(width=0)), "width = 0"),
                (lambda: decoder.decode(frames(0), search=sluice.CtcBeamSearch(stop_tokens=[[1]])), "stop"),
                (lambda: sluice.CtcDecoder(LABELS, kind="logprobs"), "kind = 'logprobs'"),
                (lambda: sluice.CtcDecoder(["a"]), "at least one label"),
                (lambda: sluice.CtcDecoder(LABELS, lexicon={"c": "c"}), "no label is 'c'"),
                (lambda: sluice.CtcDecoder(LABELS, hotwords=[""]), "must not be empty"),
                (lambda: sluice.CtcDecoder(LABELS, grammar=sluice.Grammar.regex("[a")), "line 1"),
                (lambda: sluice.CtcDecoder(LABELS, weights=sluice.FusionWeights(weight=math.nan), language_model="none"), "none: cannot be opened")]:
            with self.assertRaisesRegex(sluice.Error, message):
                call()
        with self.assertRaisesRegex(TypeError, "must be CtcBeamSearch"):
            sluice.CtcDecoder(LABELS, search=sluice.BeamSearch())
        with self.assertRaisesRegex(sluice.Error, "over frames: is for"):
            sluice.decode(sluice.FunctionModel(lambda tokens: [0.0, 1.0], sluice.Vocabulary(2)), [None], sluice.CtcBeamSearch())
        bad = frames(0)
        bad[2, 1] = math.nan
        with self.assertRaisesRegex(sluice.DecodingError, "request 1: not_a_number"):
            decoder.decode([frames(0), bad])
        results = decoder.decode([bad, frames(0)[:0], frames(0)], errors="return")
        self.assertEqual([result.failure for result in results], ["not_a_number", "bad_request", "none"])
        with self.assertRaises(sluice.DecodingError):
            decoder.stream().append(bad)


class Network:
    """A transducer whose lines depend on the frame and on the last two labels. A state is these two."""

    def __init__(self, seed, labels=3, blank=0, durations=(), **more):
        self.labels, self.blank, self.durations, self.seed = labels, blank, durations, seed
        vars(self).update(more)
        self.sources, self.states, self.lines, self.released, self.calls = {}, {}, {}, [], 0

    def line(self, source, frame, state):
        """Log-probabilities [V], and [durations]."""
        if (source, frame, state) not in self.lines:
            random = np.random.default_rng([self.seed, source, frame, *state])
            parts = [random.normal(0, 2, self.labels), random.normal(0, 2, len(self.durations) or 1)]
            self.lines[source, frame, state] = [part - np.log(np.exp(part).sum()) for part in parts]
        return self.lines[source, frame, state]

    def frames(self, source):
        return 2 + source % 3

    def start(self, sources, utterances):
        self.sources.update(zip(utterances, sources))

    def predict(self, rows):
        for from_, to, label in zip(*rows):
            self.states[to] = (self.states[from_][1], int(label)) if from_ >= 0 else (self.blank, self.blank)

    def join(self, rows):
        self.calls += 1
        lines = [self.line(self.sources[u], f, self.states[s]) for u, f, s in zip(*rows)]
        return np.array([np.concatenate(line if self.durations else line[:1]) for line in lines], np.float32)

    def release(self, utterances):
        self.released += utterances

    def every_output(self, source, most_symbols):
        """{labels: [log p, log p of the best alignment]}, over all alignments of at most so many labels at a frame."""
        found, count = {}, self.frames(source)

        def go_on(frame, state, labels, symbols, log_p):
            if frame >= count:
                one = found.setdefault(labels, [-math.inf, -math.inf])
                found[labels] = [np.logaddexp(one[0], log_p), max(one[1], log_p)]
                return
            of_label, of_duration = self.line(source, frame, state)
            for label in range(self.labels):
                for number, duration in enumerate(self.durations or [1 if label == self.blank else 0]):
                    if label == self.blank and duration == 0 or label != self.blank and symbols == most_symbols:
                        continue
                    p = log_p + of_label[label] + (of_duration[number] if self.durations else 0)
                    if label == self.blank:
                        go_on(frame + duration, state, labels, 0 if duration else symbols, p)
                    else:
                        go_on(frame + duration, (state[1], label), (*labels, label), 0 if duration else symbols + 1, p)
        go_on(0, (self.blank, self.blank), (), 0, 0.0)
        return found

    def greedy(self, source, most_symbols):
        frame, state, labels, symbols, log_p = 0, (self.blank, self.blank), [], 0, 0.0
        while frame < self.frames(source):
            line = self.line(source, frame, state)[0]
            label = self.blank if symbols == most_symbols else int(line.argmax())
            log_p += line[label]
            if label == self.blank:
                frame, symbols = frame + 1, 0
            else:
                labels.append(label)
                state, symbols = (state[1], label), symbols + 1
        return labels, log_p


WIDE_BEAM = sluice.TransducerBeam(width=600, n_best=600, candidates=600, most_symbols=2)


class Transducers(unittest.TestCase):
    def check(self, network, **options):
        for source in range(2):
            result, = sluice.Transducer(network).decode([source], WIDE_BEAM.replace(**options))
            wanted = network.every_output(source, 2)
            self.assertEqual({tuple(h.tokens) for h in result}, set(wanted))
            for h in result:
                self.assertAlmostEqual(h.log_prob, wanted[tuple(h.tokens)][0], places=4)
                self.assertEqual(h.text, " ".join(map(str, h.tokens)))
            self.assertEqual(result.frames, network.frames(source))

    def test_every_output(self):
        for seed in range(2):
            self.check(Network(seed))
            self.check(Network(seed, durations=[0, 1, 2]))
        self.check(Network(3, blank=2, kind="log_probs"))

    def test_greedy(self):
        network = Network(5)
        for source, result in enumerate(sluice.Transducer(network).decode(range(6), sluice.TransducerGreedy(most_symbols=3))):
            labels, log_p = network.greedy(source, 3)
            self.assertEqual(result.best.tokens, labels)
            self.assertAlmostEqual(result.best.log_prob, log_p, places=4)
            frames = [begin for begin, _ in result.best.frames]
            self.assertTrue(frames == sorted(frames) and all(frame < network.frames(source) for frame in frames))
        self.assertEqual(len(network.released), 6)

    def test_the_batch_changes_calls_alone(self):
        searches = (sluice.TransducerGreedy(), sluice.TransducerBeam(width=4, n_best=2), sluice.TransducerBeam(width=4, order="alignment"))
        for durations in (), (0, 1, 3):
            for search in searches:
                few, many = Network(8, 4, durations=durations), Network(8, 4, durations=durations)
                alone, together = (sluice.Transducer(network).decode(range(17), search, batch=batch)
                                   for network, batch in ((few, 1), (many, 17)))
                self.assertEqual([result.hypotheses for result in alone], [result.hypotheses for result in together])
                self.assertLess(2 * many.calls, few.calls)

    def test_words(self):
        labels = ["", "a", "b", " "]
        network = Network(2, 4)
        hot, wanted = {"ab": 1.5}, network.every_output(0, 2)
        result, = sluice.Transducer(network, labels, hotwords=hot).decode([0], WIDE_BEAM)
        for h in result:
            text = " " + "".join(labels[token] for token in h.tokens) + " "
            added = 1.5 * sum(text.startswith(" ab ", i) for i in range(len(text)))
            self.assertAlmostEqual(h.log_prob, wanted[tuple(h.tokens)][0] + added, places=4)
            self.assertEqual([word.word for word in h.words], text.split())
        result, = sluice.Transducer(network, labels, lexicon=["ab", "b"]).decode([0], WIDE_BEAM)
        self.assertEqual({tuple(h.tokens) for h in result},
                         {tokens for tokens in wanted if all(word in ("ab", "b") for word in words_of(tokens, labels))})
        result, = sluice.Transducer(network, labels, grammar=sluice.Grammar.regex("(ab)+")).decode([0], WIDE_BEAM)
        self.assertEqual({h.text for h in result}, {"ab" * n for n in range(1, 9)} & {"".join(labels[t] for t in tokens) for tokens in wanted})

    def test_errors(self):
        class Broken(Network):
            def join(self, rows):
                raise RuntimeError("out of ideas")
        with self.assertRaisesRegex(RuntimeError, "out of ideas"):
            sluice.Transducer(Broken(1)).decode([0])
        result, = sluice.Transducer(Broken(1)).decode([0], errors="return")
        self.assertEqual((result.failure, str(result.cause)), ("model", "out of ideas"))

        class Short(Network):
            def join(self, rows):
                return np.zeros((len(rows.frame), 2), np.float32)
        with self.assertRaisesRegex(ValueError, "the network's join gave scores of shape"):
            sluice.Transducer(Short(1)).decode([0])
        for call, message in [(lambda: sluice.Transducer(Network(1)).decode([0], sluice.TransducerBeam(width=0)), "width = 0"),
                              (lambda: sluice.Transducer(Network(1, blank=3)), "blank = 3"),
                              (lambda: sluice.Transducer(Network(1), ["", "a"]), "labels has 2 entries: must be 3"),
                              (lambda: sluice.Transducer(Network(1, durations=[0])), "durations"),
                              (lambda: sluice.Transducer(Network(1), hotwords=["x"]).decode([0]), "no label is"),
                              (lambda: sluice.Transducer(Network(1, kind="probs")), "network.kind = 'probs'")]:
            with self.assertRaisesRegex(sluice.Error, message):
                call()
        with self.assertRaisesRegex(TypeError, "has no labels, blank, frames, start, predict, join"):
            sluice.Transducer(sluice.Vocabulary(3))
        with self.assertRaisesRegex(TypeError, "must be TransducerGreedy"):
            sluice.Transducer(Network(1)).decode([0], sluice.CtcBeamSearch())


if __name__ == "__main__":
    unittest.main()

    def test_a_language_model_that_is_run(self):
        labels, model = ["", "a", "b", " "], Language(3)
        for durations in (), (0, 1, 2):
            network = Network(4, 4, durations=durations)
            wanted = network.every_output(0, 2)
            transducer = sluice.Transducer(network, labels, language_model=model, language_model_tokens=model.tokens,
                                           weights=sluice.FusionWeights(weight=0.6, bonus=0.2))
            result, = transducer.decode([0], WIDE_BEAM)
            self.assertEqual({tuple(h.tokens) for h in result}, set(wanted))
            for h in result:
                self.assertAlmostEqual(h.score, wanted[tuple(h.tokens)][0] + 0.6 * model.log_prob(h.tokens) + 0.2 * len(h.tokens), places=4)
            for search in sluice.TransducerGreedy(), sluice.TransducerBeam(width=3, n_best=2):
                alone = [transducer.decode([source], search)[0].hypotheses for source in range(7)]
                self.assertEqual([result.hypotheses for result in transducer.decode(range(7), search)], alone)


class Sound:
    def __init__(self, number, come=0):
        self.number, self.come = number, come


class Growing(Network):
    """A network whose sources grow."""

    def frames(self, source):
        return source.come

    def append(self, source, more):
        source.come += more

    def line(self, source, frame, state):
        assert frame < source.come, "a frame that has not come"
        return super().line(source.number, frame, state)


class TransducerStreams(unittest.TestCase):
    kinds = {}, {"durations": (0, 1, 3)}, {"big_blanks": {3: 2}}, {"label_frames": 1}
    searches = (sluice.TransducerGreedy(), sluice.TransducerBeam(width=4, n_best=3), sluice.TransducerBeam(width=4, order="alignment"))

    def test_any_cut_gives_the_whole(self):
        random = np.random.default_rng(2)
        for number, kind in enumerate(self.kinds):
            for search in self.searches:
                transducer = sluice.Transducer(Growing(6, 4, **kind))
                whole, = transducer.decode([Sound(number, 17)], search)
                for cut in range(4):
                    sound, before = Sound(number), []
                    stream = transducer.stream(sound, search)
                    while sound.come < 17:
                        step = min(17 - sound.come, int(random.integers(0, 2 + 4 * cut)))
                        self.assertEqual(stream.append(step), [])
                        self.assertEqual(stream.tokens[:len(before)], before)
                        before = stream.tokens
                    result = stream.finish()
                    self.assertEqual((result.hypotheses, result.frames), (whole.hypotheses, 17))
                    self.assertEqual(result.best.tokens[:len(before)], before)
                    with self.assertRaisesRegex(sluice.Error, "has ended"):
                        stream.append(1)

    def test_many_at_once(self):
        """Streams and whole inputs over one network, in turns; their states and utterances are not mixed up."""
        for search in self.searches:
            network = Growing(7, 4)
            transducer = sluice.Transducer(network)
            wholes = [transducer.decode([Sound(i, 9 + i)], search)[0].hypotheses for i in range(5)]
            sounds = [Sound(i) for i in range(5)]
            streams = [transducer.stream(sound, search) for sound in sounds]
            for at in range(0, 14, 2):
                for i, (stream, sound) in enumerate(zip(streams, sounds)):
                    sound.come = min(9 + i, at + 2)  # grows by itself
                    stream.append()
                self.assertEqual(transducer.decode([Sound(3, 12)], search)[0].hypotheses, wholes[3])
            self.assertEqual([stream.finish().hypotheses for stream in streams], wholes)
            self.assertFalse(network.sources.keys() - set(network.released))

    def test_endpoints(self):
        class Behind(Growing):  # what a whole input from a later frame on is
            def line(self, source, frame, state):
                return super(Growing, self).line(source.number, source.first + frame, state)
        search = sluice.TransducerBeam(width=3, endpoint=sluice.Endpoint(longest=6))
        sound, transducer = Sound(1), sluice.Transducer(Growing(5, 4))
        stream, results = transducer.stream(sound, search), []
        for more in 9, 1, 0, 13:
            results += stream.append(more)
        results.append(stream.finish())
        self.assertEqual([result.frames for result in results], [6, 6, 6, 5])
        for i, result in enumerate(results):
            part = Sound(1, result.frames)
            part.first = 6 * i
            self.assertEqual(result.hypotheses, sluice.Transducer(Behind(5, 4)).decode([part], search)[0].hypotheses)
        stream = transducer.stream(Sound(1), search)
        self.assertEqual(len(stream.append(13)), 2)
        self.assertEqual(stream.finish().frames, 1)
        self.assertEqual(transducer.stream(Sound(1)).finish().frames, 0)

    def test_language_models(self):
        model, labels = Language(3), ["", "a", "b", " "]
        transducer = sluice.Transducer(Growing(4, 4), labels, language_model=model, language_model_tokens=model.tokens)
        for search in self.searches[:2]:
            whole, = transducer.decode([Sound(2, 11)], search)
            first, second = transducer.stream(Sound(2), search), transducer.stream(Sound(2), search)
            for more in 1, 4, 6:
                first.append(more)
                second.append(more)
            self.assertEqual([first.finish().hypotheses, second.finish().hypotheses], 2 * [whole.hypotheses])

    def test_errors(self):
        class Broken(Growing):
            def join(self, rows):
                raise RuntimeError("out of ideas")
        with self.assertRaisesRegex(RuntimeError, "out of ideas"):
            sluice.Transducer(Broken(1)).stream(Sound(0)).append(4)
        with self.assertRaisesRegex(TypeError, r"has no append\(source, more\)"):
            sluice.Transducer(Network(1)).stream(0).append(4)
        sound = Sound(0, 3)
        stream = sluice.Transducer(Growing(1)).stream(sound)
        stream.append()
        sound.come = 1
        with self.assertRaisesRegex(sluice.ArgumentError, "must not be less than before, 3"):
            stream.append()

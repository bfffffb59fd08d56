# SPDX-License-Identifier: Apache-2.0
"""The names of other packages for CTC, beside these packages: the same texts, and where nothing is pruned the same scores."""
import itertools
import logging
import pathlib
import tempfile
import unittest

import numpy as np
import pyctcdecode

import sluice.pyctcdecode
import sluice.torchaudio

try:
    import kenlm
except ImportError:
    kenlm = None
try:
    from flashlight.lib.text import decoder as flashlight
except ImportError:
    flashlight = None

logging.disable(logging.CRITICAL)
# pyctcdecode knows words that have a back-off weight.
ARPA = ("\\data\\\nngram 1=7\nngram 2=4\n\n\\1-grams:\n-99\t<s>\t-0.3\n-0.9\t</s>\t0\n-1.2\t<unk>\t0\n-0.5\ta\t-0.2\n-0.8\tab\t-0.1\n-0.7\tb\t-0.1\n"
        "-1.1\tbab\t0\n\n\\2-grams:\n-0.2\t<s> ab\n-0.4\tab a\n-0.3\ta </s>\n-0.6\ta b\n\n\\end\\\n")
EVERYTHING = {"beam_width": 3000, "beam_prune_logp": -1000, "token_min_logp": -30}


def spoken(seed, text, labels, noise=2.0):
    """Frames in which a text is to be heard: label, label, blank ..., and noise."""
    random = np.random.default_rng(seed)
    path = list(itertools.chain.from_iterable([labels.index(c), labels.index(c), labels.index("")] for c in text))
    return (random.normal(0, noise, (len(path), len(labels))) + 5 * np.eye(len(labels))[path]).astype(np.float32)


class BesidePyctcdecode(unittest.TestCase):
    labels = ["a", "b", " ", ""]

    def same_scores(self, ours, theirs, matrix, **options):
        wanted = {beam[0]: beam for beam in theirs.decode_beams(matrix, **EVERYTHING, **options)}
        found = {beam.text: beam for beam in ours.decode_beams(matrix, **EVERYTHING, **options)}
        rare = {text for text, beam in found.items() if beam.logit_score < -30}  # there the blank is cut, too
        self.assertEqual(set(found) - rare, set(wanted) - rare)
        return {text: found[text] for text in wanted}, wanted

    def test_every_text_of_small_matrices(self):
        theirs, ours = pyctcdecode.build_ctcdecoder(self.labels), sluice.pyctcdecode.build_ctcdecoder(self.labels)
        for seed in range(8):
            matrix = np.random.default_rng(seed).normal(0, 2, (5, 4)).astype(np.float32)
            if seed == 7:  # probabilities
                matrix = np.exp(matrix) / np.exp(matrix).sum(1, keepdims=True)
            options = {"hotwords": [None, ["ab"], ["ab b", "bb"]][seed % 3], "hotword_weight": 3.0}
            found, wanted = self.same_scores(ours, theirs, matrix, **options)
            for text, beam in found.items():
                self.assertAlmostEqual(beam.logit_score, wanted[text][3], places=4)
                self.assertAlmostEqual(beam.lm_score, wanted[text][4], places=4)
            self.assertEqual(ours.decode(matrix, **EVERYTHING, **options), theirs.decode(matrix, **EVERYTHING, **options))

    @unittest.skipIf(kenlm is None, "kenlm is not there")
    def test_language_models(self):
        with tempfile.TemporaryDirectory() as folder:
            arpa = str(pathlib.Path(folder, "words.arpa"))
            pathlib.Path(arpa).write_text(ARPA)
            options = {"alpha": 0.7, "beta": 0.4, "unk_score_offset": -3.0}
            theirs, ours = (its.build_ctcdecoder(self.labels, arpa, **options) for its in (pyctcdecode, sluice.pyctcdecode))
            for seed in range(6):
                matrix = np.random.default_rng(seed).normal(0, 2, (5, 4)).astype(np.float32)
                matrix[-1, 2:] = -60  # behind a space at the end pyctcdecode scores an empty word
                found, wanted = self.same_scores(ours, theirs, matrix, hotwords=["b"] if seed % 2 else None, hotword_weight=2.0)
                for text, beam in found.items():
                    self.assertAlmostEqual(beam.logit_score, wanted[text][3], places=4)
                    self.assertAlmostEqual(beam.lm_score, wanted[text][4], places=4)
            ours.reset_params(alpha=0.1, beta=0.0)
            theirs.reset_params(alpha=0.1, beta=0.0)
            matrix = spoken(1, "ab a b", self.labels)
            self.assertEqual(ours.decode(matrix), theirs.decode(matrix))

    def same_folders(self, ours, theirs, matrix):
        """Each saves the same files, loads those of the other, and decodes as before."""
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            ours.save_to_dir(one)
            theirs.save_to_dir(other)
            read = lambda folder: {str(file.relative_to(folder)): file.read_text() for file in pathlib.Path(folder).rglob("*") if file.is_file()}
            self.assertEqual(read(one), read(other))
            for its, its_own, folder in (sluice.pyctcdecode, ours, other), (pyctcdecode, theirs, one):
                self.assertEqual(its.BeamSearchDecoderCTC.load_from_dir(folder).decode(matrix, **EVERYTHING), its_own.decode(matrix, **EVERYTHING))
            return read(one)

    def test_folders(self):
        for labels in (self.labels, ["<pad>", "|", "a", "b"], ["a", "_", " ", "b"], ["\u2581a", "b", "\u2581b", "<unk>", "<pad>"], [" ", "a", "b"],
                       ["a", "##b", "b", "[UNK]", "[PAD]"]):
            theirs, ours = pyctcdecode.build_ctcdecoder(labels), sluice.pyctcdecode.build_ctcdecoder(labels)
            matrix = np.random.default_rng(3).normal(0, 3, (7, len(labels) + (labels == [" ", "a", "b"]))).astype(np.float32)
            for unknown in {"<unk>", "[UNK]"} & set(labels):
                matrix[:, labels.index(unknown)] = -30
            self.assertEqual(list(self.same_folders(ours, theirs, matrix)), ["alphabet.json"])
        with tempfile.TemporaryDirectory() as folder:
            its = sluice.pyctcdecode.BeamSearchDecoderCTC
            for name, text, message in ((None, "", "must have alphabet.json"), ("alphabet.json", "{}", "must be a JSON object with labels, is_bpe"),
                                        ("other", "", "must have alphabet.json, and language_model")):
                if name is not None:
                    pathlib.Path(folder, name).write_text(text)
                with self.assertRaisesRegex(ValueError, message):
                    its.load_from_dir(folder)

    @unittest.skipIf(kenlm is None, "kenlm is not there")
    def test_folders_of_language_models(self):
        with tempfile.TemporaryDirectory() as folder:
            arpa = str(pathlib.Path(folder, "words.arpa"))
            pathlib.Path(arpa).write_text(ARPA)
            options = {"alpha": 0.7, "beta": 0.4, "unk_score_offset": -3.0}
            matrix = spoken(1, "ab a b", self.labels)
            for unigrams in None, ["ab", "b", "nowhere", "a", "bab"]:
                theirs, ours = (its.build_ctcdecoder(self.labels, arpa, unigrams, **options) for its in (pyctcdecode, sluice.pyctcdecode))
                files = self.same_folders(ours, theirs, matrix)
                self.assertEqual(sorted(files), ["alphabet.json", *(f"language_model/{name}" for name in ("attrs.json", "unigrams.txt", "words.arpa"))])
                ours.reset_params(alpha=0.1, beta=0.0)
                with tempfile.TemporaryDirectory() as changed:
                    ours.save_to_dir(changed)
                    again = sluice.pyctcdecode.BeamSearchDecoderCTC.load_from_dir(changed)
                self.assertEqual(again._language_model.serializable_attrs, {"alpha": 0.1, "beta": 0.0, "unk_score_offset": -3.0, "score_boundary": True})
                self.assertEqual([beam[2:] for beam in again.decode_beams(matrix)], [beam[2:] for beam in ours.decode_beams(matrix)])
            folder_of = tempfile.mkdtemp(dir=folder)
            ours.save_to_dir(folder_of)
            its = pathlib.Path(folder_of, "language_model")
            (its / "words.arpa").rename(its / "words.bin")
            (its / "words.bin").write_bytes(b"mmap lm http://kheafield.com/code format version 5\n\0")
            with self.assertRaisesRegex(sluice.ArgumentError, "words.bin: is a binary of KenLM.*ARPA"):
                sluice.pyctcdecode.BeamSearchDecoderCTC.load_from_dir(folder_of)
            (its / "more.arpa").write_text(ARPA)
            with self.assertRaisesRegex(ValueError, "must have attrs.json, unigrams.txt and one .arpa"):
                sluice.pyctcdecode.LanguageModel.load_from_dir(its)

    def test_texts(self):
        """With the usual cuts."""
        labels = list(" abcdefghijklmnopqrstuvwxyz'") + [""]
        theirs, ours = pyctcdecode.build_ctcdecoder(labels), sluice.pyctcdecode.build_ctcdecoder(labels)
        matrices = [spoken(seed, text, labels, 1.6) for seed, text in enumerate(["time flies like an arrow", "fruit flies like a banana", "a b c"])]
        for matrix in matrices:
            beam, other = ours.decode_beams(matrix)[0], theirs.decode_beams(matrix)[0]
            self.assertEqual(beam.text, other[0])
            self.assertTrue(other[3] - 0.05 < beam.logit_score < other[3] + 1)  # it drops more alignments
            for (word, (begin, end)), (its, (first, last)) in zip(beam.text_frames, other[2]):
                self.assertEqual(word, its)
                self.assertTrue(abs(begin - first) < 3 and abs(end - last) < 3, (word, begin, end, first, last))
        self.assertEqual(ours.decode_batch(None, matrices), [theirs.decode(matrix) for matrix in matrices])
        self.assertEqual([beams[0].text for beams in ours.decode_beams_batch(None, matrices)], [theirs.decode(matrix) for matrix in matrices])

    def test_labels(self):
        for labels in (["<pad>", "|", "a", "b"], ["a", "_", " ", "b"], ["\u2581a", "b", "\u2581b", "<unk>", "<pad>"], [" ", "a", "b"]):
            theirs, ours = pyctcdecode.build_ctcdecoder(labels), sluice.pyctcdecode.build_ctcdecoder(labels)
            size = len(labels) + (labels == [" ", "a", "b"])
            for seed in range(4):
                matrix = np.random.default_rng(seed).normal(0, 3, (9, size)).astype(np.float32)
                if "<unk>" in labels:
                    matrix[:, labels.index("<unk>")] = -30
                self.assertEqual(ours.decode(matrix, **EVERYTHING), theirs.decode(matrix, **EVERYTHING), labels)


@unittest.skipIf(flashlight is None, "flashlight.lib.text is not there")
class BesideFlashlight(unittest.TestCase):
    """torchaudio's decoder is flashlight's: the same is set up here as torchaudio does."""

    tokens = ["-", "|", "a", "b"]
    lexicon = {"ab": [2, 3, 1], "b": [3, 1], "ba": [3, 2, 1], "a": [2, 1]}

    def theirs(self, matrix, lexicon, word_score, sil_score, log_add=False, lm=None, lm_weight=0.0):
        model = lm if lm is not None else flashlight.ZeroLM()
        if lexicon:
            options = flashlight.LexiconDecoderOptions(5000, 4, 1e6, lm_weight, word_score, -np.inf, sil_score, log_add,
                                                       flashlight.CriterionType.CTC)
            trie = flashlight.Trie(4, 1)
            start = model.start(False)
            for number, spelling in enumerate(self.lexicon.values()):
                _, score = model.score(start, number)
                trie.insert(spelling, number, score)
            trie.smear(flashlight.SmearingMode.MAX)
            decoder = flashlight.LexiconDecoder(options, trie, model, 1, 0, -1, [], False)
        else:
            options = flashlight.LexiconFreeDecoderOptions(5000, 4, 1e6, lm_weight, sil_score, log_add, flashlight.CriterionType.CTC)
            decoder = flashlight.LexiconFreeDecoder(options, model, 1, 0, [])
        found = {}
        for one in decoder.decode(matrix.ctypes.data, len(matrix), 4):
            path = list(one.tokens)
            if not lexicon and next(token for token in path[1:] if token != 0) == 1:
                continue  # a silence first: there another text for each place in which it may begin, here one
            steps = [i for i, token in enumerate(path) if token != 0 and (i == 0 or token != path[i - 1])]
            found.setdefault(tuple(path[i] for i in steps), (one.score, steps, [list(self.lexicon)[w] for w in one.words if w >= 0]))
        return found

    def ours(self, matrix, lexicon, **options):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "lexicon.txt")
            file.write_text("".join(f"{word} {' '.join(self.tokens[t] for t in spelling)}\n" for word, spelling in self.lexicon.items()))
            decoder = sluice.torchaudio.ctc_decoder(str(file) if lexicon else None, self.tokens, nbest=5000, beam_size=5000,
                                                    beam_threshold=1e6, **options)
        whole, = decoder(matrix[None], [len(matrix)])
        decoder.decode_begin()
        for frame in matrix:
            decoder.decode_step(frame[None])
        decoder.decode_end()
        for one, other in zip(decoder.get_final_hypothesis(), whole):
            self.assertEqual((one.score, one.words, one.tokens.tolist(), one.timesteps.tolist()),
                             (other.score, other.words, other.tokens.tolist(), other.timesteps.tolist()))
        # The last of equal keys counts: texts that differ in a silence at their beginning, best first.
        return {(tuple(h.tokens), tuple(h.timesteps)): (h.score, h.words) for h in reversed(whole)}

    def test_scores_timesteps_and_words(self):
        for seed in range(6):
            matrix = np.random.default_rng(seed).normal(0, 2, (6, 4))
            matrix = (matrix - np.log(np.exp(matrix).sum(1, keepdims=True))).astype(np.float32)
            for lexicon in True, False:
                options = {"word_score": 0.7 if lexicon else 0.0, "sil_score": -0.3 * (seed % 2)}
                found, wanted = self.ours(matrix, lexicon, **options), self.theirs(matrix, lexicon, **options)
                self.assertGreater(len(wanted), 5)
                for tokens, (score, steps, words) in wanted.items():
                    its = found[tokens, tuple(steps)]
                    self.assertAlmostEqual(its[0], score, places=3)
                    self.assertEqual(its[1], words)
                # Here a text need not have a silence behind its last word.
                self.assertGreater(max(found.values())[0], max(wanted.values())[0] - 1e-3)

    @unittest.skipIf(kenlm is None, "kenlm is not there")
    def test_language_models(self):
        from flashlight.lib.text.decoder.kenlm import KenLM
        from flashlight.lib.text.dictionary import Dictionary
        with tempfile.TemporaryDirectory() as folder:
            arpa = pathlib.Path(folder, "words.arpa")
            arpa.write_text(ARPA)
            words = Dictionary()
            for word in self.lexicon:
                words.add_entry(word)
            for seed in range(4):
                matrix = np.random.default_rng(seed).normal(0, 2, (6, 4))
                matrix = (matrix - np.log(np.exp(matrix).sum(1, keepdims=True))).astype(np.float32)
                found = self.ours(matrix, True, lm=str(arpa), lm_weight=1.3, word_score=0.7)
                wanted = self.theirs(matrix, True, 0.7, 0.0, lm=KenLM(str(arpa), words), lm_weight=1.3)
                for tokens, (score, steps, spelt) in wanted.items():
                    self.assertAlmostEqual(found[tokens, tuple(steps)][0], score, places=3)
                    self.assertEqual(found[tokens, tuple(steps)][1], spelt)


if __name__ == "__main__":
    unittest.main()

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

try:
    import kenlm
except ImportError:
    kenlm = None

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


if __name__ == "__main__":
    unittest.main()

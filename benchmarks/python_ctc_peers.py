#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python_ctc_peers.py [--matrix FILE.npy] [--width N] [--times N]: CTC through Python beside pyctcdecode, flashlight-text and fast-ctc-decode, those
of them that are installed: time of the processor for a matrix, one thread, in turns, medians. docs/benchmarks/ctc-python.md has what it prints.

The matrix: logits [frames, 29], columns " ", a to z, "'" and the blank; else words of a lexicon are planted in some 371 frames of noise.
"""
import argparse
import logging
import statistics
import time

import numpy as np

import sluice
import sluice.pyctcdecode
import sluice.torchaudio

LABELS = [" ", *(chr(97 + i) for i in range(26)), "'", ""]
BLANK = 28


def words_of(count):
    """Random words, as long as those of English are."""
    random = np.random.default_rng(7)
    found = set()
    while len(found) < count:
        found.add("".join(chr(97 + int(c)) for c in random.integers(0, 26, int(random.integers(2, 11)))))
    return sorted(found)


def planted(words, frames):
    """A label for two frames, then a blank, with noise."""
    random, path = np.random.default_rng(3), []
    while len(path) < frames:
        for letter in words[int(random.integers(len(words)))] + " ":
            path += [LABELS.index(letter)] * 2 + [BLANK]
    return (random.normal(0, 1, (len(path), len(LABELS))) + 6 * np.eye(len(LABELS))[path]).astype(np.float32)


def beside_pyctcdecode(log_probs, width, words):
    import pyctcdecode
    logging.getLogger("pyctcdecode").setLevel(logging.ERROR)
    its, hot = dict(beam_width=width), [word for word in words if len(word) > 4]  # shorter ones are heard in noise
    for name, unigrams, hotwords in ("", None, None), (", words", words, None), (", words, 100 hotwords", words, hot[::len(hot) // 100][:100]):
        one = pyctcdecode.build_ctcdecoder(LABELS)
        other = sluice.pyctcdecode.build_ctcdecoder(LABELS)
        if unigrams:
            one, other = (make(LABELS, unigrams=unigrams) for make in (pyctcdecode.build_ctcdecoder, sluice.pyctcdecode.build_ctcdecoder))
        yield (f"pyctcdecode, its cuts{name}", lambda: one.decode(log_probs, hotwords=hotwords, **its),
               lambda: other.decode(log_probs, hotwords=hotwords, **its))


def beside_flashlight(log_probs, width, words):
    from flashlight.lib.text import decoder as flashlight
    size, count = len(LABELS), len(log_probs)
    free = flashlight.LexiconFreeDecoder(flashlight.LexiconFreeDecoderOptions(width, size, 1e6, 0, 0, True, flashlight.CriterionType.CTC),
                                         flashlight.ZeroLM(), 0, BLANK, [])

    def text(found):
        path = list(found.tokens)
        kept = [token for i, token in enumerate(path) if token != BLANK and (i == 0 or token != path[i - 1])]
        return " ".join("".join(LABELS[token] for token in kept if token >= 0).split())

    def ours(decoder):
        return lambda: " ".join(decoder.decode(log_probs, threads=1)[0].text.split())

    search = sluice.CtcBeamSearch(width=width)
    yield ("flashlight", lambda: text(free.decode(log_probs.ctypes.data, count, size)[0]), ours(sluice.CtcDecoder(LABELS, search=search, kind="log_probs")))
    trie, model = flashlight.Trie(size, 0), flashlight.ZeroLM()
    start = model.start(False)
    for number, word in enumerate(words):
        _, score = model.score(start, number)
        trie.insert([LABELS.index(letter) for letter in word] + [0], number, score)
    trie.smear(flashlight.SmearingMode.MAX)
    options = flashlight.LexiconDecoderOptions(width, size, 1e6, 0, 0, -np.inf, 0, True, flashlight.CriterionType.CTC)
    lexical = flashlight.LexiconDecoder(options, trie, model, 0, BLANK, -1, [], False)
    yield (f"flashlight, lexicon of {len(words):,} words", lambda: text(lexical.decode(log_probs.ctypes.data, count, size)[0]),
           ours(sluice.CtcDecoder(LABELS, search=search, kind="log_probs", lexicon=words)))


def beside_fast_ctc_decode(log_probs, width, words):
    import fast_ctc_decode
    order = [BLANK, *range(BLANK)]  # its blank comes first
    probs, alphabet = np.ascontiguousarray(np.exp(log_probs)[:, order]), "_" + "".join(LABELS[:BLANK])
    decoder = sluice.CtcDecoder(LABELS, search=sluice.CtcBeamSearch(width=width), kind="log_probs")
    yield ("fast-ctc-decode", lambda: fast_ctc_decode.beam_search(probs, alphabet, beam_size=width, beam_cut_threshold=0.0)[0].strip(),
           lambda: decoder.decode(log_probs, threads=1)[0].text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--matrix")
    for name, usual in ("width", 100), ("times", 5), ("words", 10000):
        parser.add_argument(f"--{name}", type=int, default=usual)
    options = parser.parse_args()
    words = words_of(options.words)
    logits = np.load(options.matrix).astype(np.float32) if options.matrix else planted(words, 371)
    log_probs = logits - np.log(np.exp(logits - logits.max(1, keepdims=True)).sum(1, keepdims=True)) - logits.max(1, keepdims=True)
    log_probs = np.ascontiguousarray(log_probs, np.float32)
    print(f"{len(log_probs)} frames, beam {options.width}\n\n| beside | its ms | ours, ms | times as fast | the same text |\n| --- | --- | --- | --- | --- |")
    for cases in beside_pyctcdecode, beside_flashlight, beside_fast_ctc_decode:
        try:
            for name, one, other in cases(log_probs, options.width, words):
                same, times = one() == other(), [[], []]
                for _ in range(options.times):
                    for its, run, count in zip(times, (one, other), (1, 5)):
                        began = time.process_time()
                        for _ in range(count):
                            run()
                        its.append(1000 * (time.process_time() - began) / count)
                first, second = map(statistics.median, times)
                print(f"| {name} | {first:.1f} | {second:.2f} | {first / second:.1f} | {'yes' if same else 'no'} |", flush=True)
        except ImportError as error:
            print(f"| {cases.__name__.removeprefix('beside_')} | | | | left out: {error} |")


if __name__ == "__main__":
    main()

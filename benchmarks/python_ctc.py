#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python_ctc.py [--frames N] [--labels N] [--width N] [--times N]: CTC from Python, and how much of it is Python.

Frames in which labels were planted are decoded one matrix at a time, by CtcDecoder.decode, and by the bare call of the library that is in it,
in turns. Medians, in microseconds. Then a batch, in one thread and in as many as there are processors; the texts must be the same.
"""
import argparse
import ctypes
import statistics
import time

import numpy as np

import sluice
from sluice import _library


def planted(seed, frames, labels):
    """A label for two frames, then a blank, with noise."""
    random = np.random.default_rng(seed)
    path = [0 if i % 3 == 2 else int(random.integers(1, labels)) for i in range(frames)]
    for i in range(1, frames, 3):
        path[i] = path[i - 1]
    return (random.normal(0, 1.5, (frames, labels)) + 6 * np.eye(labels)[path]).astype(np.float32)


def took(call):
    begin = time.perf_counter()
    call()
    return 1e6 * (time.perf_counter() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in ("frames", 371), ("labels", 29), ("width", 25), ("times", 101):
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    names = ["", " ", *(chr(97 + i) for i in range(given.labels - 2))]
    for n_best in 1, 10:
        decoder = sluice.CtcDecoder(names, search=sluice.CtcBeamSearch(width=max(given.width, n_best), n_best=n_best))
        matrix = planted(1, given.frames, given.labels)
        one = (_library.CCtcMatrix * 1)(decoder._matrix(matrix))

        def bare():
            handle = _library.create("ctc_decode", decoder._handle, decoder._default.handle, one, 1, 1)
            _library.library.sluice_frames_results_free(handle)
        bare(), decoder.decode(matrix)
        whole, inside = [], []
        for _ in range(given.times):
            whole.append(took(lambda: decoder.decode(matrix)))
            inside.append(took(bare))
        print(f"{n_best} best: decode() {statistics.median(whole):.1f} us, the library {statistics.median(inside):.1f} us, "
              f"{statistics.median(a - b for a, b in zip(whole, inside)):.1f} us of Python")
    matrices = [planted(i, given.frames, given.labels) for i in range(32)]
    alone = decoder.decode(matrices, threads=1)
    for threads in 1, 0:
        print(f"{len(matrices)} matrices, {threads or 'all'} threads: "
              f"{statistics.median(took(lambda: decoder.decode(matrices, threads=threads)) for _ in range(5)) / len(matrices):.1f} us each")
    assert decoder.decode(matrices, threads=0) == alone
    print("the same texts")


if __name__ == "__main__":
    main()

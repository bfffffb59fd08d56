#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python_beam.py [--vocabulary V] [--sentences N] [--batch B] [--beam K]: sluice's loop over a model in NumPy, beside a beam search in
NumPy that is written as transformers writes it: all sentences of a batch in one array, no loop over hypotheses.

Both run over the same model, a table of logits whose line depends on the sentence, the last token and the length. They must find the
same tokens. The time of the model itself, which is the same for both, is reported, too. All times
are those of the processor.
"""
import argparse
import statistics
import time

import numpy as np

import sluice

EOS, LONGEST = 0, 60


class TableModel:
    """Lines of logits by number: 512 lines of them, and eos more probable with every token."""

    def __init__(self, size):
        random = np.random.default_rng(1)
        self.table = random.normal(0, 2, (512, size)).astype(np.float32)
        self.vocabulary = sluice.Vocabulary(size, bos=1, eos=EOS)
        self.abilities = sluice.Abilities(ragged=True)
        self.source = np.zeros(1024, np.int64)
        self.seconds = 0.0
        self.steps = 0

    def lines(self, sources, last, length):
        began = time.process_time()
        lines = self.table[(sources * 7919 + last * 31 + length * 17) % 512]
        lines[:, EOS] += 0.35 * length
        self.seconds += time.process_time() - began
        self.steps += 1
        return lines

    def start(self, sources, slots):
        self.source[slots] = sources

    def step(self, rows):
        self.source[rows.to] = self.source[rows.from_]
        return self.lines(self.source[rows.to], rows.tokens, rows.length + 1)


def log_softmax(x):
    x = x - x.max(axis=1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=1, keepdims=True))


def numpy_beam(model, sources, k, batch):
    """transformers' beam search (early_stopping=False, length_penalty=1). Sentences that are done leave the batch."""
    found = []
    for first in range(0, len(sources), batch):
        ids = np.arange(first, min(first + batch, len(sources)))
        n, size = len(ids), model.vocabulary.size
        of, done = np.arange(n), [None] * n
        source = np.asarray(sources)[ids]
        tokens = np.zeros((n, k, LONGEST), np.int64)
        totals = np.full((n, k), -1e9)
        totals[:, 0] = 0  # the beams are equal at first
        pool_scores, pool_tokens = np.full((n, k), -np.inf), np.zeros((n, k, LONGEST), np.int64)
        pool_lengths = np.zeros((n, k), np.int64)
        last = np.full((n, k), model.vocabulary.bos)
        for length in range(1, LONGEST + 1):
            live = len(of)
            lines = model.lines(np.repeat(source, k), last.ravel(), np.full(live * k, length))
            scores = (log_softmax(lines).reshape(live, k, size) + totals[:, :, None].astype(np.float32)).reshape(live, k * size)
            best = np.argpartition(scores, -2 * k, axis=1)[:, -2 * k:]
            order = np.argsort(-np.take_along_axis(scores, best, 1), axis=1, kind="stable")
            best = np.take_along_axis(best, order, 1)
            values = np.take_along_axis(scores, best, 1).astype(np.float64)
            parents, chosen = best // size, best % size
            candidates = np.take_along_axis(tokens, parents[:, :, None], 1)
            candidates[:, :, length - 1] = chosen
            is_eos = chosen == EOS
            ends = is_eos.copy()
            ends[:, k:] = False
            if length == LONGEST:
                ends[:, :k] = True
            merged = np.concatenate([pool_scores, np.where(ends, values / length, -np.inf)], 1)
            keep = np.argsort(-merged, axis=1, kind="stable")[:, :k]
            pool_scores = np.take_along_axis(merged, keep, 1)
            pool_tokens = np.take_along_axis(np.concatenate([pool_tokens, candidates], 1), keep[:, :, None], 1)
            pool_lengths = np.take_along_axis(
                np.concatenate([pool_lengths, np.full((live, 2 * k), length)], 1), keep, 1)
            going = np.argsort(is_eos, axis=1, kind="stable")[:, :k]  # those that do not end, in their order
            tokens = np.take_along_axis(candidates, going[:, :, None], 1)
            totals = np.take_along_axis(values, going, 1)
            last = np.take_along_axis(chosen, going, 1)
            stop = np.isfinite(pool_scores[:, -1]) & (totals[:, 0] / length <= pool_scores[:, -1])
            if length == LONGEST:
                stop[:] = True
            for i in np.flatnonzero(stop):
                done[of[i]] = pool_tokens[i, 0, :pool_lengths[i, 0]].tolist()
            left = ~stop
            of, source, tokens, totals, last = of[left], source[left], tokens[left], totals[left], last[left]
            pool_scores, pool_tokens, pool_lengths = pool_scores[left], pool_tokens[left], pool_lengths[left]
            if not len(of):
                break
        found += done
    return found


def main():
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, usual in ("vocabulary", 8000), ("sentences", 256), ("batch", 64), ("beam", 5), ("times", 5):
        parse.add_argument("--" + name, type=int, default=usual)
    o = parse.parse_args()
    model = TableModel(o.vocabulary)
    sources = list(range(1, o.sentences + 1))
    search = sluice.presets.huggingface(o.beam, length=sluice.LengthLimits(max=LONGEST))
    decoder = sluice.Decoder(model)

    def ours():
        return [result.tokens for result in decoder.decode([sluice.Request(s) for s in sources], search, batch=o.batch)]

    outputs, figures = {}, {}
    for _ in range(o.times):  # in turns
        for name, run in ("sluice", ours), ("NumPy", lambda: numpy_beam(model, sources, o.beam, o.batch)):
            model.seconds, model.steps, began = 0.0, 0, time.process_time()
            outputs[name] = run()
            figures.setdefault(name, []).append((time.process_time() - began, model.seconds, model.steps))
    same = sum(one == other for one, other in zip(outputs["sluice"], outputs["NumPy"]))
    tokens = sum(map(len, outputs["sluice"]))
    print(f"V {o.vocabulary}, beam {o.beam}, batch {o.batch}: {o.sentences} sentences of {tokens / o.sentences:.1f} tokens; "
          f"{same} of {o.sentences} outputs are the same")
    for name, runs in figures.items():
        total, inside, steps = (statistics.median(column) for column in zip(*runs))
        print(f"{name:7} {total:7.3f} s, of which the model {inside:.3f} s; {steps:.0f} steps; loop {(total - inside) / steps * 1e3:7.2f} "
              "ms a step")
    ratio = [statistics.median(t - m for t, m, _ in figures[name]) for name in ("NumPy", "sluice")]
    print(f"beside the model, NumPy takes {ratio[0] / ratio[1]:.1f} times as long")
    if same < 0.99 * o.sentences:
        raise SystemExit("the two searches differ")


if __name__ == "__main__":
    main()

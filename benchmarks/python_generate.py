#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python_generate.py [--vocabulary V] [--inputs N] [--times T]: what rules of generate() cost a step, without the model, which looks its logits up:
time of the processor, the best of T runs. docs/huggingface.md has what it prints."""
import argparse
import time

import numpy as np

import sluice

RULES = [("no rules", {}), ("`repetition_penalty`", dict(repetition_penalty=1.3)), ("`logits_processor`, a function", dict(logits_processor=lambda ids, scores: scores)),
         ("beams, no rules", dict(num_beams=4)), ("beams, `bad_words_ids`, `min_new_tokens`", dict(num_beams=4, bad_words_ids=[[5]], min_new_tokens=9)),
         ("beams, `sequence_bias`", dict(num_beams=4, sequence_bias={(5,): 1.0})),
         ("beams, `logits_processor`, a function", dict(num_beams=4, logits_processor=lambda ids, scores: scores))]


class Lookup:
    abilities = sluice.Abilities(ragged=True)

    def __init__(self, table):
        self.table, self.seconds, self.steps = table, 0.0, 0
        self.vocabulary = sluice.Vocabulary(table.shape[1], bos=1, eos=2)

    def start(self, sources, slots):
        pass

    def step(self, rows):
        began = time.process_time()
        lines = self.table[rows.tokens % len(self.table)]
        self.seconds, self.steps = self.seconds + time.process_time() - began, self.steps + 1
        return lines


def main():
    parser = argparse.ArgumentParser()
    for name, usual in ("vocabulary", 32000), ("inputs", 64), ("times", 3):
        parser.add_argument(f"--{name}", type=int, default=usual)
    options = parser.parse_args()
    table = np.random.default_rng(0).normal(0, 2, (256, options.vocabulary)).astype(np.float32)
    table[:, 2] = -9  # eos: hardly
    for name, arguments in RULES:
        times = []
        for _ in range(options.times):
            model, began = Lookup(table), time.process_time()
            sluice.generate(model, [[i + 3, i + 4] for i in range(options.inputs)], max_new_tokens=20, **arguments)
            times.append((time.process_time() - began - model.seconds) / model.steps * 1000)
        print(f"| {name} | {min(times):.1f} |")


if __name__ == "__main__":
    main()

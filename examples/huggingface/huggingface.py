#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""huggingface.py MODEL [--beams N] [--tokens N] [--device cuda] < LINES: what a model of transformers says to each line, printed in the
order of the lines. Up to --batch are decoded together, and the next one joins as soon as one is over."""
import argparse
import collections
import sys

import transformers

import sluice
import sluice.huggingface


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a folder, or a name on the Hugging Face Hub")
    parser.add_argument("--device", default="cpu")
    for name, usual in ("beams", 1), ("tokens", 40), ("batch", 16):
        parser.add_argument(f"--{name}", type=int, default=usual)
    options = parser.parse_args()

    tokenizer = transformers.AutoTokenizer.from_pretrained(options.model)
    config = transformers.AutoConfig.from_pretrained(options.model)
    if config.is_encoder_decoder:
        theirs, ours = transformers.AutoModelForSeq2SeqLM, sluice.huggingface.Seq2Seq
    else:
        theirs, ours = transformers.AutoModelForCausalLM, sluice.huggingface.CausalLM
    model = ours(theirs.from_pretrained(options.model).eval().to(options.device))

    search = sluice.presets.huggingface(options.beams) if options.beams > 1 else sluice.Greedy()
    search.length.max = options.tokens
    with sluice.Server(model, search, batch=options.batch) as server:
        waiting = collections.deque()
        for line in sys.stdin:
            tokens = tokenizer(line.rstrip("\n")).input_ids
            waiting.append(server.submit(sluice.Request(tokens) if config.is_encoder_decoder else sluice.Request(prompt=tokens)))
            while waiting and waiting[0].done() or len(waiting) > 4 * options.batch:
                show(tokenizer, waiting.popleft())
        for future in waiting:
            show(tokenizer, future)


def show(tokenizer, future):
    print(tokenizer.decode(future.result().tokens, skip_special_tokens=True), flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python_huggingface.py [--layers L] [--width D] [--vocabulary V] [--threads N] [--times T]: model.generate of transformers and sluice.generate over the
same model with random weights, in turns; medians of the processor's time. docs/huggingface.md has what it prints."""
import argparse
import statistics
import time

import numpy as np
import torch
import transformers

import sluice
import sluice.huggingface


def main():
    parser = argparse.ArgumentParser()
    for name, usual in ("layers", 6), ("width", 512), ("vocabulary", 32000), ("threads", 1), ("times", 5), ("requests", 64), ("batch", 16), ("tokens", 64):
        parser.add_argument(f"--{name}", type=int, default=usual)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    transformers.logging.set_verbosity_error()
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=options.vocabulary, hidden_size=options.width, intermediate_size=4 * options.width, num_hidden_layers=options.layers,
        num_attention_heads=options.width // 64, num_key_value_heads=options.width // 64, bos_token_id=1, eos_token_id=2, pad_token_id=0)).eval()
    with torch.no_grad():
        model.lm_head.weight.normal_(0, 0.3)  # scores far enough from each other that rounding decides nothing
        model.lm_head.weight[2] = 0  # eos: hardly
    mine = sluice.huggingface.CausalLM(model)
    generator = np.random.default_rng(0)
    V, N = options.vocabulary, options.tokens
    prompts = [generator.integers(3, V, 16).tolist() for _ in range(8)]
    lengths = generator.integers(4, 65, options.requests)
    limits = np.clip(generator.geometric(3 / N, options.requests), 4, N).tolist()  # most outputs are short, few are long
    ragged = [generator.integers(3, V, n).tolist() for n in lengths]

    def theirs(inputs, new, **given):
        width = max(map(len, inputs))
        ids = torch.tensor([[0] * (width - len(one)) + one for one in inputs])
        out = model.generate(ids, attention_mask=(ids != 0).long(), max_new_tokens=new, pad_token_id=0, **given)
        return [line[width:] for line in out.tolist()]

    def ours(inputs, new, **given):
        return [result.tokens for result in sluice.generate(mine, inputs, max_new_tokens=new, **given)]

    def in_batches():
        made = []
        for begin in range(0, len(ragged), options.batch):
            part = slice(begin, begin + options.batch)
            made += theirs(ragged[part], max(limits[part]))
        return [tokens[:limit] for tokens, limit in zip(made, limits)]

    def continuous():
        requests = [sluice.Request(prompt=prompt, search=sluice.Greedy(length=sluice.LengthLimits(max=limit)))
                    for prompt, limit in zip(ragged, limits)]
        return [result.tokens for result in sluice.decode(mine, requests, batch=options.batch)]

    print(f"{options.layers} layers of {options.width}, V = {V}, threads {options.threads}; torch {torch.__version__}, transformers {transformers.__version__}")
    print("| | transformers, s | sluice, s | times | same tokens |\n| --- | --- | --- | --- | --- |")
    for name, one, other in (
            ("greedy, 1 prompt", lambda: theirs(prompts[:1], N), lambda: ours(prompts[:1], N)),
            ("greedy, 8 prompts", lambda: theirs(prompts, N), lambda: ours(prompts, N)),
            ("beam 4, 1 prompt", lambda: theirs(prompts[:1], N, num_beams=4), lambda: ours(prompts[:1], N, num_beams=4)),
            ("beam 4, 8 prompts", lambda: theirs(prompts, N, num_beams=4), lambda: ours(prompts, N, num_beams=4)),
            (f"{options.requests} ragged requests, {sum(limits)} tokens, {options.batch} at a time", in_batches, continuous)):
        same = sum(a[:len(b)] == b for a, b in zip(one(), other()))  # and warms up
        times = [[], []]
        for _ in range(options.times):
            for its, run in zip(times, (one, other)):
                began = time.process_time()
                run()
                its.append(time.process_time() - began)
        first, second = map(statistics.median, times)
        count = options.requests if "ragged" in name else 1 if ", 1 prompt" in name else 8
        print(f"| {name} | {first:.2f} | {second:.2f} | {first / second:.2f} | {same} of {count} |", flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What PyTorch takes for what sluice.bench.log_softmax_top_k measures: bias, log_softmax, topk; one thread, outputs
allocated beforehand. Nanoseconds a line (medians), as Markdown, or with --json as that benchmark's counters.

  apt-get install python3-torch      (Debian 12: PyTorch 1.13.1)
  benchmarks/peer_pytorch.py [--all] [--json] [--rounds N]
  benchmarks/peer_pytorch.py --ours FILE    adds the quotient; FILE: sluice.bench.log_softmax_top_k --benchmark_format=json

  three      add(out=), log_softmax into a tensor that is there, topk(out=)
  two        add(out=), logsumexp(out=), topk(out=) of the sums: less than most programs ask for
  argmax     bias and argmax alone
"""
import argparse
import json
import os
import statistics
import sys
import time

if "OPENBLAS_CORETYPE" in os.environ:  # OpenBLAS reads it when it is loaded
    del os.environ["OPENBLAS_CORETYPE"]
    os.execv(sys.executable, [sys.executable, *sys.argv])
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import torch  # noqa: E402


def blocks(rows):
    """Calls in a block, each with lines of its own; as in the benchmark."""
    return max(1, (64 + rows - 1) // rows)


def lines(vocabulary, count):
    torch.manual_seed(1)
    return 3 * torch.randn(count, vocabulary), 0.1 * torch.randn(vocabulary)


def ways(data, bias, rows, k):
    """Each works off the block with the rows at `first`."""
    biased, log_probs = torch.empty_like(data[:rows]), torch.empty_like(data[:rows])
    values, indices = torch.empty(rows, k), torch.empty(rows, k, dtype=torch.int64)
    sums, best = torch.empty(rows), torch.empty(rows, dtype=torch.int64)

    def three(first):
        torch.add(data[first:first + rows], bias, out=biased)
        torch._log_softmax(biased, -1, False, out=log_probs)  # what torch.log_softmax calls, which has no out argument
        torch.topk(log_probs, k, out=(values, indices))
        return values, indices

    def two(first):
        torch.add(data[first:first + rows], bias, out=biased)
        torch.logsumexp(biased, -1, out=sums)
        torch.topk(biased, k, out=(values, indices))
        return values.sub_(sums[:, None]), indices

    def argmax(first):
        torch.add(data[first:first + rows], bias, out=biased)
        torch.argmax(biased, -1, out=best)

    return {"three": three, "two": two, "argmax": argmax}


def measure(way, rows, rounds):
    """Median nanoseconds a line, of the thread's CPU time."""
    times = []
    for i in range(rounds + 2):
        begin = time.thread_time_ns()
        for block in range(blocks(rows)):
            way(block * rows)
        if i >= 2:  # two rounds to warm up
            times.append((time.thread_time_ns() - begin) / (blocks(rows) * rows))
    return statistics.median(times)


def check(some, data, bias, rows, k):
    expected = torch.topk(torch.log_softmax(data[:rows] + bias, -1), k)
    for way in (some["three"], some["two"]):
        values, indices = way(0)
        assert torch.equal(indices, expected.indices) and torch.allclose(values, expected.values, atol=1e-4)


def run(arguments):
    ours = {}
    if arguments.ours:
        with open(arguments.ours, encoding="utf-8") as file:
            for b in json.load(file)["benchmarks"]:
                if b.get("aggregate_name", "median") == "median":
                    ours[b["run_name"]] = b["ns"]
    for vocabulary in (32000, 8000, 128000, 250000) if arguments.all else (32000, 8000):
        for rows in (1, 5, 40, 64, 320) if arguments.all else (1, 5, 64):
            data, bias = lines(vocabulary, blocks(rows) * rows)
            for k in (1, 5, 10, 50):
                some = ways(data, bias, rows, k)
                check(some, data, bias, rows, k)
                for way in ("three", "two", "argmax") if k == 1 else ("three", "two"):
                    ns = measure(some[way], rows, arguments.rounds)
                    name = f"normal/float/V:{vocabulary}/rows:{rows}"
                    name = f"argmax/{name}" if way == "argmax" else f"log_softmax_top_k/{name}/k:{k}"
                    yield {"run_name": name, "way": way, "V": vocabulary, "rows": rows, "k": k, "ns": ns,
                           "x": ns / ours[name] if name in ours else None}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="all shapes, up to 320 x 250,000")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--ours", help="JSON of sluice.bench.log_softmax_top_k")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    results = run(arguments)
    with torch.no_grad():
        if arguments.json:
            json.dump({"torch": torch.__version__, "benchmarks": list(results)}, sys.stdout, indent=1)
            return
        print(f"PyTorch {torch.__version__}\n\n| way | V | rows | k | ns | of ours |\n| --- | --- | --- | --- | ---: | ---: |")
        for r in results:
            print(f"| {r['way']} | {r['V']} | {r['rows']} | {r['k']} | {r['ns']:,.0f} | "
                  f"{'' if r['x'] is None else format(r['x'], '.2f')} |", flush=True)


if __name__ == "__main__":
    main()

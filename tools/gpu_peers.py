#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What PyTorch takes on a device for what sluice.bench.cuda.top_k measures: log_softmax and topk of the same shapes. Lines
of JSON like that program's.

  tools/gpu_peers.py --measured FILE [--seconds N]     FILE: what sluice.bench.cuda.top_k printed; its shapes are taken
  tools/gpu_peers.py --rows 320 --columns 32000 --k 5 --type float32

  eager          log_softmax, topk, called one after the other
  graph          the same in a CUDA graph
  sums           topk and logsumexp in a CUDA graph: less than most programs ask for
  compile        torch.compile of log_softmax and topk, in a CUDA graph

As there: inputs take turns until they are four times as large as the second-level cache together (cold), or one is read again
and again where it fits (warm); medians. Exit code 1 where an answer was wrong or a way did not run, 3 without PyTorch or a
device, 4 where time did not allow for all.
"""
import argparse
import json
import statistics
import sys
import time


def shapes_of(path):
    """The shapes of the experiment "peers", each once."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            try:
                r = json.loads(line)
            except json.JSONDecodeError:  # from an interrupted run
                continue
            if r.get("experiment") == "peers":
                found.setdefault((r["rows"], r["V"], r["k"], r["type"]), None)
    return list(found)


def ways(torch, k):
    def both(x):
        return torch.topk(torch.log_softmax(x, -1), k)

    def sums(x):
        values, indices = torch.topk(x, k)
        return values - torch.logsumexp(x, -1, keepdim=True), indices

    return {"eager": both, "graph": both, "sums": sums, "compile": torch.compile(both, dynamic=False)}


def check(torch, x, answer, k):
    """Log-probabilities against double precision; a 16-bit type rounds them."""
    rows = sorted({0, len(x) // 2, len(x) - 1})
    expected = torch.log_softmax(x[rows].double(), -1)
    values, indices = answer[0][rows].double(), answer[1][rows]
    tolerance = 1e-3 if x.dtype == torch.float32 else 0.15
    best = torch.topk(expected, k).values
    if not torch.allclose(values, best, atol=tolerance) or not torch.allclose(expected.gather(1, indices), best, atol=tolerance):
        raise ArithmeticError("another answer than double precision's")


def elapsed(torch, work):
    """Microseconds."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    work()
    end.record()
    end.synchronize()
    return 1000 * begin.elapsed_time(end)


def measure(torch, name, way, inputs, sets):
    """The median, lowest and highest time of one piece of work."""
    for i in range(3):
        way(inputs[i % sets])
    torch.cuda.synchronize()
    once = elapsed(torch, lambda: way(inputs[0]))
    pieces = max(sets, min(int(1500 / max(once, 1)), 128))

    def work():
        for i in range(pieces):
            way(inputs[i % sets])

    run = work
    if name != "eager":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        run = graph.replay
    for _ in range(2):
        elapsed(torch, run)
    times = []
    while len(times) < 5 or (len(times) < 21 and sum(times) * pieces < 60_000):
        times.append(elapsed(torch, run) / pieces)
    return {"us": statistics.median(times), "us_low": min(times), "us_high": max(times), "pieces": pieces,
            "replays": len(times)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", help="lines of JSON with the shapes")
    parser.add_argument("--rows", type=int, default=320)
    parser.add_argument("--columns", type=int, default=32000)
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--type", default="float32", choices=["float32", "float16", "bfloat16"])
    parser.add_argument("--seconds", type=float, default=float("inf"))
    arguments = parser.parse_args()
    began = time.monotonic()
    try:
        import torch
        import torch._dynamo
    except ImportError:
        print("gpu_peers: PyTorch is missing; nothing was compared", file=sys.stderr)
        return 1 if arguments.measured else 3
    if not torch.cuda.is_available():
        print("SKIPPED: there is no device for PyTorch; nothing was compared", file=sys.stderr)
        return 3
    for limit in ("recompile_limit", "cache_size_limit"):  # one compilation per shape; which, the version says
        if hasattr(torch._dynamo.config, limit):
            setattr(torch._dynamo.config, limit, 64)
            break
    device = torch.cuda.get_device_properties(0)
    cache = device.L2_cache_size
    shapes = shapes_of(arguments.measured) if arguments.measured else [
        (arguments.rows, arguments.columns, arguments.k, arguments.type)]
    wrong = late = False

    def write(record):
        print(json.dumps(record), flush=True)

    with torch.no_grad():
        for name in ("eager", "graph", "sums", "compile"):  # the slowest last
            for rows, columns, k, kind in shapes:
                record = {"name": f"PyTorch, {name}", "experiment": "peers", "rows": rows, "V": columns, "k": k,
                          "type": kind, "data": "normal", "torch": torch.__version__}
                if time.monotonic() - began > arguments.seconds:
                    late = True
                    write(record | {"error": "no time was left"})
                    continue
                size = rows * columns * (4 if kind == "float32" else 2)
                sets = max(1, min(1024, -(-4 * cache // size)))
                torch.manual_seed(1)
                inputs = [3 * torch.randn(rows, columns, device="cuda", dtype=torch.float32) for _ in range(sets)]
                inputs = [x.to(getattr(torch, kind)) for x in inputs]
                way = ways(torch, k)[name]
                try:
                    check(torch, inputs[0], way(inputs[0]), k)
                    write(record | {"bytes": size, "cache": "cold"} | measure(torch, name, way, inputs, sets))
                    if size <= cache // 4 * 3:
                        write(record | {"bytes": size, "cache": "warm"} | measure(torch, name, way, inputs, 1))
                except Exception as error:  # whatever a compiler or driver throws, the other ways must still run
                    wrong = True
                    write(record | {"error": f"{type(error).__name__}: {str(error)[:200]}"})
                del inputs
    return 1 if wrong else 4 if late else 0


if __name__ == "__main__":
    sys.exit(main())

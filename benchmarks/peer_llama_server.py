#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""serve_llama beside llama.cpp's llama-server: tokens a second of the server's processor time, over POST /v1/completions.

  benchmarks/peer_llama_server.py --serve-llama EXE --llama-server EXE --model GGUF [--rounds N] [--json] [-- FLAGS of serve_llama]

Both answer the same requests, one after the other on the same processor, with one thread; and once more other requests, in the other order: a
row counts both times. Build both with the same llama.cpp; --library DIR is where they find it. llama-server gets 16 slots of
1,024 tokens, in streams of their own; serve_llama as many cells, and FLAGS.

Requests are streamed, greedy, all different: prompts of about 60 tokens, and 64 more; or of about 500, and 32 more. Rows: how many clients ask at a
time. "After": short prompts once more, when the servers have answered all of that.
"""
import argparse
import http.client
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import threading
import time

WORDS = {
    "name": "Anna Boris Carla Dario Edith Fabian Gerda Hugo Ilse Jonas Katia Leon Mona Niklas Olga Pedro Rita Simon Tessa Viktor".split(),
    "did": "mended drew found lost bought sold opened closed carried counted weighed cleaned".split(),
    "kind": "old blue heavy broken small round wooden silent golden empty narrow warm".split(),
    "thing": "clock boat ladder piano window letter basket mirror wagon candle kettle saddle bell".split(),
    "place": "Bergen Porto Turin Ghent Basel Lyon Malaga Tartu Split Leeds Kassel Varna".split(),
}


def prompt(seed, sentences):
    draw = random.Random(repr(seed))
    one = {kind: lambda kind=kind: draw.choice(WORDS[kind]) for kind in WORDS}
    said = (f"{one['name']()} {one['did']()} the {one['kind']()} {one['thing']()} in {one['place']()} on day {draw.randint(1, 99)}." for _ in range(sentences))
    return f"{draw.randint(1000, 9999)} {one['name']()}: {' '.join(said)} What happened next is a long story. First,"


class Server:
    def __init__(self, command, port, library):
        self.port, self.log = port, open(os.devnull, "wb")
        variables = dict(os.environ)
        if library:
            variables["LD_LIBRARY_PATH"] = str(library)
        self.process = subprocess.Popen([str(c) for c in command], stdout=self.log, stderr=self.log, env=variables)
        for _ in range(600):
            if self.process.poll() is not None:
                sys.exit(f"peer_llama_server: {command[0]} ended with {self.process.returncode}")
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        sys.exit(f"peer_llama_server: {command[0]} does not answer")

    def pin(self, processor):
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            try:
                os.sched_setaffinity(int(task), {processor})
            except OSError:
                pass  # a thread that has ended

    def seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def complete(port, text, tokens):
    """-> tokens, seconds to the first."""
    begin, first, count = time.perf_counter(), None, None
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    body = {"model": "m", "prompt": text, "max_tokens": tokens, "temperature": 0, "stream": True, "stream_options": {"include_usage": True}}
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    if answer.status != 200:
        raise RuntimeError(f"port {port} answers {answer.status}: {answer.read()[:200]}")
    for line in answer:
        if not line.startswith(b"data: {"):
            continue
        event = json.loads(line[6:])
        if "error" in event:
            raise RuntimeError(f"port {port} answers {event['error']}")
        if first is None and any(choice.get("text") for choice in event.get("choices", [])):
            first = time.perf_counter() - begin
        if event.get("usage"):
            count = event["usage"]["completion_tokens"]
    connection.close()
    if not count:
        raise RuntimeError(f"port {port} gives no usage")
    return count, first if first is not None else time.perf_counter() - begin


def load(server, texts, tokens, clients):
    """All prompts by so many clients -> what failed, tokens, seconds of processor, median seconds to the first token."""
    todo, found, failed = list(reversed(texts)), [], []

    def client():
        try:
            while todo:
                found.append(complete(server.port, todo.pop(), tokens))
        except (IndexError, OSError, RuntimeError, http.client.HTTPException) as error:
            if not isinstance(error, IndexError):
                failed.append(error)
    before = server.seconds()
    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (failed[0] if failed else None, sum(count for count, _ in found), server.seconds() - before,
            statistics.median(first for _, first in found) if found else 0)


def in_turn(servers, backwards, texts, tokens, clients):
    """-> of each server what load() finds."""
    found = [load(server, texts, tokens, clients) for server in (servers[::-1] if backwards else servers)]
    for failed, *_ in found:
        if failed:
            sys.exit(f"peer_llama_server: {failed}")
    return found[::-1] if backwards else found


def rows(quick):
    """title, sentences of a prompt, prompts, tokens more, clients"""
    many = (1, 2) if quick else (1, 4, 8, 16)
    for kind, sentences, tokens in (("short", 3, 64), ("long", 36, 32), ("short, after", 3, 64)):
        for clients in many:
            count = max(clients, 1 if quick or kind == "long" else 4)
            yield f"{kind}, {clients}", sentences, count, 4 if quick else tokens, clients


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serve-llama", type=pathlib.Path, required=True)
    parser.add_argument("--llama-server", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--library", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="two rows of each, four tokens: to see whether it runs")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("flags", nargs="*", help="of serve_llama, behind --")
    arguments = parser.parse_args()
    processor = min(os.sched_getaffinity(0))
    commands = ([arguments.serve_llama, "-m", arguments.model, "--threads", 1, "--context", 16384, "--port", 18101, "--name", "m", *arguments.flags],
                [arguments.llama_server, "-m", arguments.model, "-t", 1, "-tb", 1, "-c", 16384, "-np", 16, "--host", "127.0.0.1", "--port", 18102,
                 "--alias", "m", "--offline", "--no-ui"])
    found = {}
    for turn in range(arguments.rounds):
        servers = []
        try:
            for command, port in zip(commands, (18101, 18102)):
                servers.append(Server(command, port, arguments.library))
                complete(port, "Hello", 4)
                servers[-1].pin(processor)
            for title, sentences, count, tokens, clients in rows(arguments.quick):
                both = [in_turn(servers, backwards, [prompt((turn, title, backwards, i), sentences) for i in range(count)], tokens, clients)
                        for backwards in (False, True)]
                speeds = [sum(one[i][1] for one in both) / max(1e-9, sum(one[i][2] for one in both)) for i in (0, 1)]
                found.setdefault(title, []).append((speeds, [statistics.mean(one[i][3] for one in both) for i in (0, 1)]))
                print(f"round {turn + 1}: {title}: {speeds[0]:.1f} and {speeds[1]:.1f}", file=sys.stderr, flush=True)
        finally:
            for server in servers:
                server.stop()
    table = [{"row": title, "times": [ours / theirs for (ours, theirs), _ in turns],
              "first": [statistics.median(first[i] for _, first in turns) for i in (0, 1)]} for title, turns in found.items()]
    if arguments.json:
        print(json.dumps({"rows": table}))
        return
    print("| prompts, clients | serve_llama over llama-server, tokens a second | seconds to the first token: ours, theirs |\n| --- | --- | --- |")
    for row in table:
        print("| %s | **%.2f** (%.2f to %.2f) | %.2f, %.2f |" % (row["row"], statistics.median(row["times"]), min(row["times"]), max(row["times"]), *row["first"]))


if __name__ == "__main__":
    main()

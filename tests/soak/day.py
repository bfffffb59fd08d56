# SPDX-License-Identifier: Apache-2.0
"""A day of serve_http in as little time as it takes: day.py BIN MODEL_FOLDER [--requests N] [--seed S], called by tools/soak http.

A day is 86,400 requests, one a second, sent without the pauses between them. Its 24 hours have as many clients at a time as
`clients` says: a quiet night, two peaks. Every request is drawn: JSON or a stream or OpenAI's shape, one to three sentences by
three searches; some leave in the middle, some make no sense, some read slowly, some are late by their own deadline. Whoever stays
must have the answer that `translate` gives for the sentence. After each hour the server must be as it was: nobody open, no
descriptor more; and at the end no larger than at noon but for a tenth (the second peak may need a thread more), and gone with code
0 when told so.
Prints the head and the row of a table."""
import argparse
import http.client
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

clients = [2, 1, 1, 1, 1, 2, 8, 16, 32, 48, 48, 32, 16, 32, 48, 48, 32, 24, 16, 8, 8, 4, 4, 2]
searches = {"beam": ({}, []), "greedy": ({"search": "greedy"}, ["--search", "greedy"]),
            "narrow": ({"width": 2}, ["--width", "2"])}
# In a hundred: what becomes of a request.
kinds = ["json"] * 46 + ["stream"] * 16 + ["completion"] * 10 + ["leaves"] * 10 + ["nonsense"] * 8 + ["dawdles"] * 4 + [
    "late"] * 3 + ["looks"] * 3
nonsense = [(400, b'{"text": '), (400, b'{"text": "a", "width": 0}'), (400, b'{"text": "a", "frobnicate": 1}'),
            (400, b"[" * 5000), (400, b'{"text": "\xff"}'), (413, json.dumps({"text": ["a"] * 129}).encode()),
            (400, b'{"text": "a", "search": "sample", "temperature": -1}'), (413, b" " * (1 << 21))]
lock = threading.Lock()
counts, wrong = Counter(), []


def note(kind, good, what=""):
    with lock:
        counts[kind] += 1
        if not good:
            wrong.append(f"{kind}: {what}"[:300])


class Client:
    """One connection, which is kept as browsers do."""

    def __init__(self, port, texts, answers, dice):
        self.port, self.texts, self.answers, self.dice = port, texts, answers, dice
        self.connection = None

    def post(self, path, body, method="POST"):
        for fresh in (False, True):  # the server closes idle ones
            if self.connection is None or fresh:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=3600)
                fresh = True
            try:
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.connection.request(method, path, data if method == "POST" else None, {"Content-Type": "application/json"})
                response = self.connection.getresponse()
                return response.status, response.read()
            except (ConnectionError, http.client.HTTPException):
                self.connection.close()
                self.connection = None
                if fresh:
                    raise
        raise AssertionError

    def raw(self, body):
        """A connection of its own, which has sent this."""
        one = socket.create_connection(("127.0.0.1", self.port), timeout=3600)
        data = json.dumps(body).encode()
        return one, (f"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
                     f"Content-Length: {len(data)}\r\n\r\n").encode() + data

    def one(self):
        dice, kind = self.dice, self.dice.choice(kinds)
        search = dice.choice(["greedy", "greedy", "narrow", "beam"])
        chosen = [dice.randrange(len(self.texts)) for _ in range(dice.choice([1, 1, 1, 2, 3]))]
        right = [self.answers[search][i] for i in chosen]
        body = {"text": [self.texts[i] for i in chosen], **searches[search][0]}
        getattr(self, kind)(body, right)

    def json(self, body, right):
        code, text = self.post("/translate", body)
        note("json", code == 200 and [r["text"] for r in json.loads(text)["results"]] == right, (code, text, right))

    def streamed(self, text, right):
        settled, results = {}, {}
        for name, data in re.findall(r"event: (\w+)\ndata: (.*)\n\n", text):
            data = json.loads(data)
            if name == "delta":
                settled[data["index"]] = settled.get(data["index"], "") + data["text"]
            elif name == "result":
                if data["index"] in results or not data["text"].startswith(settled.get(data["index"], "")):
                    return False
                results[data["index"]] = data["text"]
        return [results.get(i) for i in range(len(right))] == right and text.endswith("event: done\ndata: {}\n\n")

    def stream(self, body, right):
        code, text = self.post("/translate", {**body, "stream": True})
        note("stream", code == 200 and self.streamed(text.decode(), right), (code, text, right))

    def completion(self, body, right):
        if body.get("search") != "greedy":  # OpenAI's shape knows no width
            self.json(body, right)
            return
        code, text = self.post("/v1/completions", {"prompt": body["text"], "temperature": 0})
        note("completion", code == 200 and [c["text"] for c in json.loads(text)["choices"]] == right, (code, text, right))

    def leaves(self, body, _):
        one, data = self.raw({**body, "stream": self.dice.random() < 0.5})
        one.sendall(data[:self.dice.randrange(1, len(data))] if self.dice.random() < 0.4 else data)
        if self.dice.random() < 0.5:
            time.sleep(self.dice.random() * 0.03)
        if self.dice.random() < 0.5:  # as a process that is killed
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.close()
        note("leaves", True)

    def nonsense(self, *_):
        want, data = self.dice.choice(nonsense)
        try:
            code, text = self.post("/translate", data)
            note("nonsense", code == want and b'"error"' in text, (code, want, text))
        except OSError:  # cut while it sent what is too large
            note("nonsense", want == 413, "cut")

    def dawdles(self, body, right):
        one, data = self.raw({**body, "stream": True})
        one.sendall(data[:20])
        time.sleep(self.dice.random() * 0.02)
        one.sendall(data[20:])
        got = b""
        while more := one.recv(64):
            got += more
            time.sleep(0.001)
        one.close()
        chunks, rest = b"", got.partition(b"\r\n\r\n")[2]
        while b"chunked" in got.partition(b"\r\n\r\n")[0].lower() and rest:
            size, _, rest = rest.partition(b"\r\n")
            chunks, rest = chunks + rest[:int(size, 16)], rest[int(size, 16) + 2:]
        note("dawdles", self.streamed((chunks or rest).decode(), right), (got, right))

    def late(self, body, right):
        code, text = self.post("/translate", {**body, "deadline_ms": 1})
        results = json.loads(text).get("results", [])
        ok = all(r["text"] == t or r.get("error", {}).get("name") == "late" for r, t in zip(results, right))
        note("late", code in (200, 504) and len(results) == len(right) and ok, (code, text))

    def looks(self, *_):
        path = self.dice.choice(["/metrics", "/health", "/", "/v1/models", "/nowhere"])
        code, _ = self.post(path, b"", "GET")
        note("looks", code == (404 if path == "/nowhere" else 200), (code, path))


class Server:
    def __init__(self, program, model):
        # Limits that a machine which has other work, or sleeps, does not reach: nobody is late but by an own deadline.
        self.process = subprocess.Popen([program, "--model", model, "--port", "0", "--time-limit", "3600", "--patience", "3600"],
                                        stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        self.port = int(re.search(r":(\d+)/$", self.process.stdout.readline().strip()).group(1))

    def metrics(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=3600)
        connection.request("GET", "/metrics", headers={"Connection": "close"})
        text = connection.getresponse().read().decode()
        connection.close()
        return {name: float(value) for name, value in re.findall(r"^(\w+(?:{[^}]*})?) ([-+.e\d]+)$", text, re.M)}

    def look(self):
        """What the system says of it: resident KiB, descriptors, threads."""
        proc = Path(f"/proc/{self.process.pid}")
        status = (proc / "status").read_text()
        return (int(re.search(r"VmRSS:\s*(\d+)", status).group(1)), len(os.listdir(proc / "fd")),
                int(re.search(r"Threads:\s*(\d+)", status).group(1)))

    def quiet(self, descriptors):
        """Waits until nobody is open and no more descriptors are than these; what look() says."""
        until = time.time() + 60
        while True:
            m, now = self.metrics(), self.look()
            if m["sluice_requests_open"] == 0 and m["sluice_sentences_open"] == 0 and now[1] <= descriptors:
                return now
            if time.time() > until:
                note("quiet", False, (now, m["sluice_requests_open"], m["sluice_sentences_open"]))
                return now
            time.sleep(0.1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--requests", type=int, default=86400)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sample, model = options.folder / "translate" / "sample.de", options.folder / "translate" / "model"
    texts = sorted(sample.read_text(encoding="utf-8").split("\n")[:-1], key=len)[:40]
    answers = {name: subprocess.run([options.bin / "translate", "--model", model, *flags], input="\n".join(texts) + "\n", text=True,
                                    capture_output=True, check=True).stdout.split("\n")[:-1]
               for name, (_, flags) in searches.items()}

    server = Server(options.bin / "serve_http", model)
    began = time.time()
    idle = server.quiet(1 << 20)
    looks = []
    for hour, count in enumerate(clients):
        left = iter(range(options.requests * hour // 24, options.requests * (hour + 1) // 24))

        def work(number, hour=hour, left=left):
            client = Client(server.port, texts, answers, random.Random(f"{options.seed}.{hour}.{number}"))
            while True:
                with lock:
                    if next(left, None) is None:
                        break
                try:
                    client.one()
                except Exception as error:  # a client that is cut is a finding, not the end
                    note("client", False, repr(error))
            if client.connection is not None:
                client.connection.close()

        threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        looks.append(server.quiet(idle[1] + 1))
        print(f"hour {hour}: {int(time.time() - began)} s, {sum(counts.values())} requests, {len(wrong)} wrong, "
              f"resident {looks[-1][0]} KiB, descriptors {looks[-1][1]}, threads {looks[-1][2]}", file=sys.stderr)
    seconds = time.time() - began
    after = server.metrics()
    cancelled = int(after.get('sluice_sentences_total{failure="cancelled"}', 0))
    good = int(after.get('sluice_sentences_total{failure="none"}', 0))
    if looks[-1][0] > looks[11][0] * 1.1:
        note("memory", False, looks)
    server.process.send_signal(signal.SIGTERM)
    code = server.process.wait(120)
    if code != 0:
        note("end", False, code)
    for one in wrong[:20]:
        print("FAILED:", one, file=sys.stderr)
    requests = sum(n for kind, n in counts.items() if kind not in ("quiet", "memory", "end"))
    print("| requests, seed | seconds | json | stream | completion | leave | nonsense | dawdle | late | look | sentences ok | "
          "cancelled | wrong | resident KiB after hours 3, 6, ... 24 | descriptors, idle and after hours | exit code |")
    print(f"| {requests}, {options.seed} | {seconds:.0f} | "
          + " | ".join(str(counts[k]) for k in ("json", "stream", "completion", "leaves", "nonsense", "dawdles", "late", "looks"))
          + f" | {good} | {cancelled} | {len(wrong)} | {' '.join(str(look[0]) for look in looks[2::3])} | {idle[1]}, "
          + f"{min(look[1] for look in looks)} to {max(look[1] for look in looks)} | {code} |")
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())

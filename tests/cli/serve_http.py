# SPDX-License-Identifier: Apache-2.0
"""Clients of serve_http, well behaved and not, for serve_http.test.sh: serve_http.py COMMAND PORT [ARGUMENT]...

ask OPTIONS       posts the lines of standard input to /translate, prints text ||| score of every hypothesis
stream OPTIONS    the same as server-sent events; what is settled must be how the result begins
logprobs          what the model says of tokens, and of those beside them: lines of standard input
trace             pages of traces hold what was answered
bodies            what makes no sense is refused, with the field named
wire              what is no HTTP, or not all of it, or never read
storm EXPECTED    many clients at once, some of whom go away; standard input and EXPECTED are lines that belong together
full              more than may wait (of --size 1 --queue 1)
farewell PID EXPECTED  requests at work while the server is told to end
"""
import json
import math
import os
import random
import signal
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True
from http_client import check, events, finish, head, lines, metrics, port, post, raw, wait_for  # noqa: E402  (beside this file)


def ask(options):
    code, text, _ = post("/translate", {"text": lines(), **json.loads(options)})
    if code != 200:
        sys.exit(f"code {code}: {text}")
    for i, result in enumerate(json.loads(text)["results"]):
        check("results are in order", result["index"] == i)
        for one in result["hypotheses"] or [{"text": "", "score": 0}]:
            print(one["text"], "|||", "%.6f" % one.get("score", 0))


def stream(options):
    code, text, response = post("/translate", {"text": lines(), "stream": True, **json.loads(options)})
    check("code of a stream", code == 200 and response.getheader("Content-Type") == "text/event-stream")
    settled, results, ended = {}, {}, 0
    for name, data in events(text):
        if name == "settled":
            check("settled text grows", data["text"].startswith(settled.get(data["index"], "")))
            settled[data["index"]] = data["text"]
        if name == "result":
            check("one result each", data["index"] not in results)
            results[data["index"]] = data["text"]
        ended += name == "done"
    check("something is settled early", settled)
    check("what is settled stays", all(results[i].startswith(text) for i, text in settled.items()))
    check("the stream ends once", ended == 1 and text.endswith("event: done\ndata: {}\n\n"))
    for i in sorted(results):
        print(results[i])


def logprobs():
    for text in lines():
        for options in [{"temperature": 0}, {"temperature": 1, "seed": 3, "n": 3}, {"n": 3}]:
            greedy = options == {"temperature": 0}
            answers = {}
            for count in (0, 5):
                code, answer, _ = post("/v1/completions", {"prompt": text, "logprobs": count, **options})
                check(f"code {code}", code == 200)
                answers[count] = json.loads(answer)["choices"]
            for one, five in zip(answers[0], answers[5]):
                told = five["logprobs"]
                check(f"the same, told or not: {options}", one["text"] == five["text"] and
                      one["logprobs"]["tokens"] == told["tokens"] and
                      one["logprobs"]["token_logprobs"] == told["token_logprobs"] and one["logprobs"]["top_logprobs"] is None)
                for token, log_prob, best in zip(told["tokens"], told["token_logprobs"], told["top_logprobs"], strict=True):
                    check("five or fewer", 1 <= len(best) <= 5 and sum(map(math.exp, best.values())) <= 1.0001)
                    check("one number for one token", best.get(token, log_prob) == log_prob)
                    check("none beside them is better", token in best or log_prob <= min(best.values()))
                    check("greedy takes the best", not greedy or best[token] == max(best.values()))
        score = json.loads(post("/translate", {"text": text, "search": "greedy", "scores": True})[1])["results"][0]
        total = sum(json.loads(post("/v1/completions", {"prompt": text, "logprobs": 0, "temperature": 0})[1])
                    ["choices"][0]["logprobs"]["token_logprobs"])
        check(f"their sum: {total}", abs(total - score["hypotheses"][0]["log_prob"]) < 1e-3)


def trace():
    texts = lines()
    for options in [{"n_best": 3}, {"search": "greedy", "scores": True}, {"search": "sample", "n_best": 3, "seed": 4},
                    {"search": "blockwise", "scores": True}, {"constraints": {"none": ["the"]}}, {"stop": "e"}]:
        results = json.loads(post("/translate", {"text": texts, **options})[1])["results"]
        for index, result in enumerate(results):
            code, page, response = post("/trace", {"text": texts, "index": index, **options})
            told = [json.loads(line) for line in page[page.index('id="trace">'):].split("\n") if line.startswith("{")]
            ends = [event for event in told if "end" in event]
            check(f"{options}: a page: {code}", code == 200 and response.getheader("Content-Type").startswith("text/html"))
            check("one sentence", len(ends) == 1 and [e["about"] for e in told if "about" in e] == [texts[index]])
            check(f"{options}: the same, scored as alone: {ends}", [round(h["log_prob"], 4) for h in ends[0]["hypotheses"]] ==
                  [round(h["log_prob"], 4) for h in result["hypotheses"]])
    for field, code, body in [("index", 400, {"text": "a", "index": 1}), ("index", 400, {"text": "a", "index": -1}),
                              ("stream", 400, {"text": "a", "stream": True}), ("text", 400, {}),
                              (None, 504, {"text": texts[0] * 3, "deadline_ms": 1, "min_length": 200})]:
        got, text, _ = post("/trace", body)
        check(f"{body}: {got} {text[:200]}", got == code and json.loads(text)["error"]["param"] == field)
    code, page, _ = post("/trace", {"text": " "})
    check("of nothing", code == 200 and "What a decoder did" in page)
    check("nothing is left", metrics()["sluice_sentences_open"] == 0 and metrics()["sluice_requests_open"] == 0)


def bodies():
    for field, body in [
            (None, b""), (None, b"{"), (None, b"[1]"), (None, b'{"text": "Gr\xfc\xdfe"}'), (None, b'{"text": "a", "text": "b"}'),
            (None, b"[" * 100000), (None, b'{"text": "a\\ud800"}'), (None, b"\x00" * 50), ("text", {}), ("text", {"text": 5}),
            ("text", {"text": []}), ("text[1]", {"text": ["a", None]}), ("frobnicate", {"text": "a", "frobnicate": 1}),
            ("width", {"text": "a", "width": "5"}), ("width", {"text": "a", "width": 0}), ("width", {"text": "a", "width": 2.5}),
            ("width", {"text": "a", "width": 10 ** 30}), ("width", {"text": "a", "width": 65}),
            ("width", {"text": "a", "search": "greedy", "width": 2}), ("n_best", {"text": "a", "n_best": 6}),
            ("search", {"text": "a", "search": "best"}), ("search", {"text": "a", "search": ["beam"]}),
            ("temperature", {"text": "a", "search": "sample", "temperature": 0}), ("temperature", {"text": "a", "temperature": 1}),
            ("seed", {"text": "a", "search": "sample", "seed": -1}), ("stream", {"text": "a", "stream": "yes"}),
            ("min_length", {"text": "a", "min_length": 300}), ("deadline_ms", {"text": "a", "deadline_ms": 0}),
            ("prefix", {"text": ["a", "b"], "prefix": ["a"]}), ("constraints", {"text": "a", "constraints": {"all": "x"}}),
            ("constraints", {"text": "a", "constraints": {"all": ["x"], "none": ["x"]}}),
            ("constraints", {"text": "a", "constraints": [{}, {}]}), ("glossary", {"text": "a", "glossary": ["a"]}),
            ("glossary.Hund", {"text": "a", "glossary": {"Hund": 5}}), ("stop", {"text": "a", "stop": ""}),
            ("bias", {"text": "a", "bias": "Ann"}), ("bias[0]", {"text": "a", "bias": ["Ann"]}),
            ("bias[0]", {"text": "a", "bias": [{"boost": 3}]}), ("bias[1]", {"text": "a", "bias": [{"phrase": "a"}, {"phrase": " "}]}),
            ("bias[0].boost", {"text": "a", "bias": [{"phrase": "Ann", "boost": "3"}]}),
            ("bias[0].boost", {"text": "a", "bias": [{"phrase": "Ann", "boost": 1e39}]}),
            ("bias[0]", {"text": "a", "bias": [{"phrase": "Ann", "boost": 3, "per_token": 1}]}),
            ("bias[0].weight", {"text": "a", "bias": [{"phrase": "Ann", "weight": 3}]}), ("bias_once", {"text": "a", "bias_once": True}),
            ("block", {"text": "a", "block": 4}), ("search", {"text": "a", "search": "blockwise"}),
            ("prune_finished", {"text": "a", "prune_finished": 1})]:
        code, text, _ = post("/translate", body)
        error = json.loads(text).get("error", {})
        check(f"{str(body)[:80]}: {code} {text[:200]}", code == 400 and error["param"] == field and error["message"])
    code, text, _ = post("/translate", {"text": ["a"] * 129})
    check(f"129 sentences: {code}", code == 413 and json.loads(text)["error"]["param"] == "text")
    for field, code, body in [
            ("prompt", 400, {}), ("prompt[0]", 400, {"prompt": [1, 2]}), ("model", 404, {"prompt": "a", "model": "gpt"}),
            ("n", 400, {"prompt": "a", "n": 0}), ("logprobs", 400, {"prompt": "a", "logprobs": 6}),
            ("best_of", 400, {"prompt": "a", "best_of": 2}),
            ("echo", 400, {"prompt": "a", "echo": True}), ("max_tokens", 400, {"prompt": "a", "max_tokens": 0}),
            ("suffix", 400, {"prompt": "a", "suffix": "b"}), ("tools", 400, {"prompt": "a", "tools": []}),
            ("stop", 400, {"prompt": "a", "stop": list("abcde")}), ("logit_bias", 400, {"prompt": "a", "logit_bias": {"5": 1}})]:
        got, text, _ = post("/v1/completions", body)
        check(f"{body}: {got} {text[:200]}", got == code and json.loads(text)["error"]["param"] == field)


def code_of(answer):
    return int(answer[9:12]) if answer.startswith(b"HTTP/1.1 ") else 0


def wire():
    """The server has --patience 1 and --max-body 10000."""
    for data in [b"garbage\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00" + os.urandom(200) + b"\r\n\r\n", b"GET\r\n\r\n"]:
        got = code_of(raw(data, shutdown=True))
        check(f"garbage {data[:20]}: {got}", got in (0, 400))
    for what, data, code in [
            ("half a body", head(100) + b'{"text": "Gu', 408), ("half a head", b"POST /translate HTTP/1.1\r\nHo", 408),
            ("a body too large", head(20000) + b"x" * 20000, 413), ("a body said to be too large", head(10 ** 9) + b"x" * 50, 413),
            ("no length", b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\r\n", 411),
            ("two lengths", head(5, "Content-Length: 6\r\n") + b"{}   ", 400),
            ("a length that is none", head("5x") + b"{}   ", 400),
            ("chunks too large", b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
             b"Transfer-Encoding: chunked\r\n\r\n" + b"4000\r\n" + b"x" * 0x4000 + b"\r\n0\r\n\r\n", 413),
            ("another host", b"GET /health HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n", 403),
            ("a name like an address", b"GET /health HTTP/1.1\r\nHost: 127.attacker.example\r\nConnection: close\r\n\r\n", 403),
            ("an address and more", b"GET /health HTTP/1.1\r\nHost: 127.0.0.1.example:80\r\nConnection: close\r\n\r\n", 403),
            ("its own address", b"GET /health HTTP/1.1\r\nHost: 127.1.2.3:80\r\nConnection: close\r\n\r\n", 200),
            ("another site", head(2, "Origin: http://example.org\r\n") + b"{}", 403),
            ("a form", head(2).replace(b"application/json", b"text/plain") + b"{}", 415),
            ("packed", head(2, "Content-Encoding: gzip\r\n") + b"{}", 415),
            ("headers without end", b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10000 + b"\r\n", 431),
            ("no such path", b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 404)]:
        got = code_of(raw(data))
        check(f"{what}: {got}, not {code}", got == code)
    # Two requests in one piece have two answers.
    body = json.dumps({"text": "Danke.", "search": "greedy"}).encode()
    answer = raw(head(len(body)) + body + head(len(body), "Connection: close\r\n") + body)
    check("two at once", answer.count(b"HTTP/1.1 200") == 2)
    # Who does not read is cut, and nobody waits for it.
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    client.settimeout(20)
    client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000)
    time.sleep(2.5)
    got = 0
    try:
        while more := client.recv(1 << 20):
            got += more.count(b"HTTP/1.1 200")
    except ConnectionResetError:
        pass
    check(f"a client that does not read got {got} answers", got < 1000)
    client.close()
    # Whoever is late is told so; who goes away is not decoded further.
    slow = {"text": ["Wo hast du meine Brille hingelegt?"] * 30, "width": 64, "n_best": 64}
    code, text, _ = post("/translate", {**slow, "deadline_ms": 1})
    check(f"late: {code} {text[:200]}", code == 504 and json.loads(text)["error"]["message"].startswith("late")
          and json.loads(text)["results"][0]["error"]["name"] == "late")
    before = metrics().get('sluice_sentences_total{failure="cancelled"}', 0)
    for accept in ["application/json", "text/event-stream"]:
        client = socket.create_connection(("127.0.0.1", port))
        body = json.dumps(slow).encode()
        client.sendall(head(len(body), f"Accept: {accept}\r\n") + body)
        wait_for("the request is open", lambda m: m["sluice_requests_open"] >= 1)
        client.close()
        wait_for("it is closed", lambda m: m["sluice_requests_open"] == 0)
    after = metrics().get('sluice_sentences_total{failure="cancelled"}', 0)
    check(f"{after - before} sentences cancelled", after - before > 0)


def storm(expected):
    sources, targets = lines(), open(expected, encoding="utf-8").read().split("\n")[:-1]
    answered = [0] * 24
    before = metrics()

    def client(number):
        dice = random.Random(number)
        for _ in range(6):
            chosen = [dice.randrange(len(sources)) for _ in range(dice.randrange(1, 5))]
            body = {"text": [sources[i] for i in chosen]}
            kind = dice.randrange(5)
            if kind == 0:  # leaves before the answer, maybe before the end of its own request
                data = json.dumps(body).encode()
                data = head(len(data)) + data
                leaver = socket.create_connection(("127.0.0.1", port))
                leaver.sendall(data[:dice.randrange(len(data)) if dice.randrange(2) else len(data)])
                time.sleep(dice.random() * 0.05)
                if dice.randrange(2):  # as a process that is killed
                    leaver.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                leaver.close()
            elif kind == 1:
                code, text, _ = post("/translate", {**body, "stream": True})
                results = {data["index"]: data["text"] for name, data in events(text) if name == "result"}
                count = sum(name == "result" for name, data in events(text))
                check("stream: none lost, none twice", code == 200 and count == len(chosen))
                check("stream: its own answers", [results[i] for i in range(len(chosen))] == [targets[i] for i in chosen])
                answered[number] += count
            else:
                code, text, _ = post("/translate", body)
                results = json.loads(text)["results"]
                check("its own answers", code == 200 and [r["text"] for r in results] == [targets[i] for i in chosen])
                answered[number] += len(results)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_for("nobody is left", lambda m: m["sluice_requests_open"] == 0 and m["sluice_sentences_open"] == 0)
    after = metrics()
    good = [m.get('sluice_sentences_total{failure="none"}', 0) for m in (before, after)]
    check(f"{sum(answered)} answers, {good} results", sum(answered) > 0 and good[1] - good[0] >= sum(answered))


def full():
    slow = {"text": ["Wo hast du meine Brille hingelegt?"] * 2, "width": 16, "max_length": 256, "min_length": 200}
    busy = threading.Thread(target=lambda: check("who is in gets an answer", post("/translate", slow)[0] == 200))
    busy.start()
    wait_for("two are in", lambda m: m["sluice_sentences_open"] == 2)
    code, text, response = post("/translate", {"text": "Danke."})
    check(f"full: {code} {text}", code == 429 and response.getheader("Retry-After"))
    code, text, _ = post("/translate", {"text": ["Danke."] * 3})
    check(f"more than there is room for: {code}", code == 413)
    busy.join()
    check("room again", post("/translate", {"text": "Danke."})[0] == 200)


def farewell(pid, expected):
    sources, targets = lines(), open(expected, encoding="utf-8").read().split("\n")[:-1]
    answers = []

    def client():
        code, text, _ = post("/translate", {"text": sources})
        answers.append((code, [r["text"] for r in json.loads(text)["results"]] if code == 200 else text))

    threads = [threading.Thread(target=client) for _ in range(8)]
    for thread in threads:
        thread.start()
    wait_for("all are in", lambda m: m["sluice_requests_open"] == 8)
    os.kill(int(pid), signal.SIGTERM)
    time.sleep(0.1)
    try:
        code, _, response = post("/translate", {"text": "Danke."})
        check(f"somebody new: {code}", code == 503 and response.getheader("Retry-After"))
    except OSError:
        pass  # it has ended already
    for thread in threads:
        thread.join()
    check(f"{len(answers)} answers", answers == [(200, targets)] * 8)


{"ask": ask, "stream": stream, "logprobs": logprobs, "trace": trace, "bodies": bodies, "wire": wire, "storm": storm, "full": full,
 "farewell": farewell}[sys.argv[1]](*sys.argv[3:])
finish()

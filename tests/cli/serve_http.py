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
marks PROGRAM KEY SCHEME OPTION...  what is marked is found, by /detect and by watermark, PROGRAM, with these options beside --key KEY
policies POLICY   which requests are marked, or refused (gumbel)
remembers         guesses from earlier outputs: fewer rounds, the same text, nothing of who does not want it
kept              the same from an earlier run's file
farewell PID EXPECTED  requests at work while the server is told to end
"""
import json
import math
import os
import random
import signal
import socket
import subprocess
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
        if name == "delta":
            check("a delta has text", data["text"] and data["index"] not in results)
            settled[data["index"]] = settled.get(data["index"], "") + data["text"]
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
    slow = {"text": ["Wo hast du meine Brille hingelegt?"] * 30, "width": 64, "n_best": 64, "min_length": 200}
    code, text, _ = post("/translate", {**slow, "deadline_ms": 100})
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


LONG = {"text": "Wo hast du meine Brille hingelegt?", "min_length": 80, "max_length": 90}
SAMPLED = {**LONG, "search": "sample", "temperature": 2}
PLAIN = ("The library decodes sequences: it takes a model that gives scores of the next token, and finds outputs that are good. "
         "A search decides which hypotheses go on, a schedule which sentences step together, and a rule may forbid or prefer. "
         "Nothing of this depends on the model, and so the same code translates, writes, reads lines and parses questions.")


def detect(body, wanted=200):
    code, text, _ = post("/detect", body)
    check(f"detect {str(body)[:80]}: {code} {text[:200]}", code == wanted)
    return json.loads(text)


def marked_text(body):
    code, text, _ = post("/translate", body)
    check(f"{body}: {code} {text[:200]}", code == 200)
    return json.loads(text)["results"][0]["text"] if code == 200 else ""


def marks(program, key, scheme, *options):
    def told(tokens, window=0, mask=()):
        line = " ".join(f"[{token}]" if i in mask else str(token) for i, token in enumerate(tokens))
        return json.loads(subprocess.run([program, "detect", "--key", key, "--scheme", scheme, "--window", str(window), *options],
                                         input=line + "\n", capture_output=True, text=True, check=True).stdout)

    bodies = [SAMPLED]
    if scheme in ("red_green", "sbw"):  # beams are marked, too
        bodies += [{**LONG, "search": search} for search in ("greedy", "beam", "blockwise")]
    for body in bodies:
        text = marked_text(body)
        check("the same among others", marked_text({**body, "text": [body["text"]] + ["Danke.", "Guten Morgen!"] * 2}) == text)
        found = detect({"text": text, "window": 20, "return_token_ids": True})
        check(f"{scheme}, {body.get('search')}: {found['p_value']}", found["p_value"] < 1e-5 and found["scored"] > 50)
        check("scheme", found["scheme"] == scheme and found["tokens"] == len(found["token_ids"]))
        other = told(found["token_ids"], 20)
        check("the same p-value", all(found[name] == other[name] for name in
                                      ("p_value", "score", "expected", "tokens", "scored", "masked", "repeated", "windows_p_value")))
        check("the same windows", len(found["windows"]) > 3 and
              [(w["begin"], w["end"], w["p_value"]) for w in found["windows"]] == [(w["begin"], w["end"], w["p_value"]) for w in other["windows"]])
        tokens = found["token_ids"]
        again = detect({"tokens": tokens, "window": 20})
        check("tokens are a text", again["p_value"] == found["p_value"] and "token_ids" not in again)
        masked = detect({"tokens": tokens, "mask": [[0, 30], [20, 40], [len(tokens), len(tokens)]]})
        check("a mask of tokens", masked["masked"] == 40 and masked["p_value"] == told(tokens, 0, range(40))["p_value"])
    plain = detect({"text": PLAIN, "return_token_ids": True})
    check(f"no mark: {plain['p_value']}", plain["p_value"] > 0.01 and "windows" not in plain)
    check("no mark, said twice", plain["p_value"] == told(plain["token_ids"])["p_value"])
    # Places in a text are characters; a token counts as masked if a part of it is.
    some = "Grüße and thanks. The car is new."
    all_of_it = detect({"text": some, "return_token_ids": True})
    check("all of a text", detect({"text": some, "mask": [[0, len(some)]]})["masked"] == all_of_it["tokens"])
    first = detect({"text": some, "mask": [[0, 5]]})["masked"]
    second = detect({"text": some, "mask": [[5, len(some)]]})["masked"]
    check("two parts", first >= 1 and second >= 1 and first + second == all_of_it["tokens"])
    check("as many windows as there may be", len(detect({"tokens": [1] * 1025, "window": 2})["windows"]) == 1024)
    check("of nothing", detect({"text": " "})["p_value"] == 1 and detect({"tokens": []})["tokens"] == 0)
    for field, code, body in [
            ("text", 400, {}), ("text", 400, {"text": 5}), ("text", 400, {"text": ["a"]}), ("tokens", 400, {"text": "a", "tokens": [1]}),
            ("tokens", 400, {"tokens": "1 2"}), ("tokens[1]", 400, {"tokens": [1, -1]}), ("tokens[0]", 400, {"tokens": [1.5]}),
            ("tokens[0]", 400, {"tokens": [2 ** 31]}), ("tokens", 413, {"tokens": [1] * 65537}), ("text", 413, {"text": "a b " * 60000}),
            ("mask", 400, {"tokens": [1, 2], "mask": 1}), ("mask[0]", 400, {"tokens": [1, 2], "mask": [[1, 3]]}),
            ("mask[1]", 400, {"tokens": [1, 2], "mask": [[0, 1], [1, 0]]}), ("mask[0]", 400, {"text": "ab", "mask": [[0, 3]]}),
            ("mask[0]", 400, {"text": "ab", "mask": [[-1, 1]]}), ("mask", 400, {"text": "a   b", "mask": [[0, 1]]}),
            ("window", 400, {"text": "a", "window": 1}), ("window", 400, {"text": "a", "window": 65537}),
            ("window", 400, {"tokens": [1] * 1026, "window": 2}),
            ("return_token_ids", 400, {"text": "a", "return_token_ids": 1}), ("key", 400, {"text": "a", "key": 1})]:
        error = detect(body, code).get("error", {})
        check(f"{str(body)[:60]}: {error}", error.get("param") == field and error.get("message"))
    numbers = metrics()
    check("nothing is left", numbers["sluice_sentences_open"] == 0 and numbers["sluice_requests_open"] == 0)
    check("it is counted", numbers['sluice_http_requests_total{path="/detect",code="200"}'] > 5)


def policies(policy):
    def refused(path, body, field):
        code, text, _ = post(path, body)
        check(f"{policy}: {body}: {code} {text[:200]}", code == 400 and json.loads(text)["error"]["param"] == field)

    def p_value(body):
        return detect({"text": marked_text(body)})["p_value"]

    beam, completion = {"text": "Danke."}, {"prompt": LONG["text"]}
    wanted = {"always": (None, True), "default": (None, True), "requested": (True,), "none": ()}[policy]
    unwanted = {"always": (), "default": (False,), "requested": (None, False), "none": (None, False)}[policy]
    for flag in wanted:
        own = {} if flag is None else {"watermark": flag}
        check("marked", p_value({**SAMPLED, **own}) < 1e-5)
        refused("/translate", {**beam, **own}, "search")
        refused("/trace", {**beam, **own}, "search")
        refused("/v1/completions", {**completion, "temperature": 0, **own}, "temperature")
        refused("/v1/completions", {**completion, "temperature": 1, "n": 2, **own}, "n")
        refused("/translate", {**SAMPLED, "n_best": 2, **own}, "n_best")
        refused("/translate", {**SAMPLED, "mbr": "chrf", **own}, "mbr")
        check("a completion", post("/v1/completions", {**completion, "temperature": 1, **own})[0] == 200)
    for flag in unwanted:
        own = {} if flag is None else {"watermark": flag}
        if policy != "none":
            check("not marked", p_value({**SAMPLED, **own}) > 0.01)
        for body in (beam, {**SAMPLED, "n_best": 2}):
            check("not refused", post("/translate", {**body, **own})[0] == 200)
    if policy == "always":
        refused("/translate", {**SAMPLED, "watermark": False}, "watermark")
    if policy == "none":
        refused("/translate", {**SAMPLED, "watermark": True}, "watermark")
        refused("/v1/completions", {**completion, "watermark": True}, "watermark")
        refused("/translate", {**beam, "remember": True}, "remember")
        check("declined in vain", post("/translate", {**beam, "remember": False})[0] == 200)
        check("no detector", post("/detect", {"text": "a"})[0] == 404)
    refused("/translate", {**SAMPLED, "watermark": "yes"}, "watermark")


BLOCKWISE = {"text": "Der alte Mann hat seinen Hut im Garten verloren, weil der Wind sehr stark war.", "search": "blockwise", "block": 8}


def rounds_of(body):
    """Its text, and the rounds of the model that it took."""
    before = metrics()
    text = marked_text(body)
    after = metrics()
    return text, after["sluice_rounds_total"] - before["sluice_rounds_total"], after["sluice_remembered_texts"] - before["sluice_remembered_texts"]


def remembers():
    greedy = marked_text({"text": BLOCKWISE["text"], "search": "greedy", "remember": False})
    private = {**BLOCKWISE, "remember": False}
    first, second = rounds_of(private), rounds_of(private)
    check(f"nothing is stored, nothing read: {first} {second}", first == second and first[2] == 0 and first[0] == greedy)
    stored, hit = rounds_of(BLOCKWISE), rounds_of({**BLOCKWISE, "remember": True})
    check(f"stored, then found: {first} {stored} {hit}", stored[1] == first[1] and stored[2] == 1 and hit[1] < first[1] / 2)
    check("the same text", stored[0] == hit[0] == greedy)
    plainly = rounds_of({name: BLOCKWISE[name] for name in ("text", "search")})
    check(f"and without a choice of the block: {plainly}", plainly[1] < first[1] / 2 and plainly[0] == greedy)
    check("still nothing is read", rounds_of(private) == first)
    among = {**BLOCKWISE, "text": [BLOCKWISE["text"]] + ["Danke.", "Guten Morgen!"] * 20}
    check("the same among others", marked_text(among) == greedy)
    before = metrics()
    post("/trace", BLOCKWISE)
    post("/translate", {**BLOCKWISE, "accept_top": 2})
    check("neither traces nor relaxed outputs are stored", metrics()["sluice_remembered_texts"] == before["sluice_remembered_texts"])
    post("/v1/completions", {"prompt": BLOCKWISE["text"], "remember": False})
    check("nor completions that decline", metrics()["sluice_remembered_texts"] == before["sluice_remembered_texts"])
    post("/v1/completions", {"prompt": "Danke."})
    check("but others", metrics()["sluice_remembered_texts"] == before["sluice_remembered_texts"] + 1)
    for body in ({**BLOCKWISE, "accept_top": 2, "remember": True}, {**BLOCKWISE, "remember": 1}):
        code, text, _ = post("/translate", body)
        check(f"{body}: {code} {text}", code == 400 and json.loads(text)["error"]["param"] == "remember")
    numbers = metrics()
    check("their numbers", numbers["sluice_remembered_tokens"] > 10 and numbers["sluice_remembered_bytes"] > 80 and
          numbers["sluice_round_tokens_total"] > numbers["sluice_rounds_total"])


def kept():
    private, hit = rounds_of({**BLOCKWISE, "remember": False}), rounds_of(BLOCKWISE)
    check(f"found in the file: {private} {hit}", hit[1] < private[1] / 2 and hit[0] == private[0])


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
 "farewell": farewell, "marks": marks, "policies": policies, "remembers": remembers, "kept": kept}[sys.argv[1]](*sys.argv[3:])
finish()

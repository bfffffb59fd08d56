# SPDX-License-Identifier: Apache-2.0
"""Clients of serve_llama, for llama_serve.test.sh: llama_serve.py COMMAND PORT [ARGUMENT]...; prompts on standard input

same OPTIONS FILE  answers are those of llama_generate --json
same_texts OPTIONS FILE  their texts are
streams            chunks together are the answer without
logprobs           of tokens and of those beside them, of prompts too
samples            seeds; the best of several
stops              cut
grammars           schemas, regular expressions, GBNF, biases
many               16 at once: none lost, each its own
shared             a long beginning is fed once
leaves             whoever goes away is not decoded further
told               answers of many kinds, to be compared
remembers          the second time fewer rounds, and nothing of who does not want it
marks              what is marked is found; what cannot be marked is refused
chat               messages in the model's template
template FILE      a template, as jinja2 of Python renders it
own                what a template is given
built_in           a template of which only the form is known takes no variables
many_messages      what a template takes long for is bounded
little_memory      what it takes memory for, too
formats            outputs of a chat match response_format
tools              calls of tools, whole and streamed
thinks             what was thought comes first, at most so many tokens of it
calls              one call, after others with results
tokens             prompts of tokens are those of texts
late               what was written in time is not dropped
bodies             what makes no sense is refused, with the field named
"""
import json
import math
import re
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True
from http_client import check, finish, head, lines, metrics, port, post, wait_for  # noqa: E402  (beside this file)


def complete(prompt, **fields):
    code, text, _ = post("/v1/completions", {"prompt": prompt, **fields})
    if code != 200:
        sys.exit(f"{fields}: code {code}: {text}")
    return json.loads(text)


def texts(prompt, **fields):
    return [choice["text"] for choice in complete(prompt, **fields)["choices"]]


def same(options, expected):
    prompts, options = lines(), json.loads(options)
    generated = [json.loads(line) for line in open(expected, encoding="utf-8")]
    answer = complete(prompts, **options, logprobs=0)
    check("one choice each", [c["index"] for c in answer["choices"]] == list(range(len(generated))))
    for one, choice in zip(generated, answer["choices"]):
        check(f"{choice['text']!r}, not {one['text']!r}", choice["text"] == one["text"])
        check("why it ended", choice["finish_reason"] == ("stop" if one["finished"] else "length"))
        total = sum(choice["logprobs"]["token_logprobs"])
        check(f"log-probability {total}, not {one['log_prob']}", abs(total - one["log_prob"]) < 2e-3)
        check("a number a token", len(choice["logprobs"]["tokens"]) == len(one["tokens"]))
    used = answer["usage"]
    check(f"usage {used}", used["completion_tokens"] == sum(len(one["tokens"]) for one in generated)
          and used["total_tokens"] == used["completion_tokens"] + used["prompt_tokens"])


def same_texts(options, expected):
    prompts, options = lines(), json.loads(options)
    wanted = [json.loads(line)["text"] for line in open(expected, encoding="utf-8")]
    found = [choice["text"] for choice in complete(prompts, **options)["choices"]]
    check(f"{found!r}, not {wanted!r}", found == wanted)


def near(one, other):
    """Whether two logprobs are the same but for the last digits, which depend on what else is in the batch."""
    if one is None or other is None:
        return one == other
    return one["tokens"] == other["tokens"] and one["text_offset"] == other["text_offset"] and all(
        abs(a - b) < 1e-3 for a, b in zip(one["token_logprobs"], other["token_logprobs"], strict=True)) and all(
        all(abs(value - b.get(name, value)) < 1e-3 for name, value in a.items())
        for a, b in zip(one["top_logprobs"] or [], other["top_logprobs"] or [], strict=True))


def streams():
    grown = 0
    for prompt in lines():
        for fields in [{"temperature": 0}, {"seed": 5}, {"temperature": 0, "echo": True}, {"seed": 5, "logprobs": 2},
                       {"temperature": 0, "n": 3}]:
            fields["max_tokens"] = 30
            whole = complete(prompt, **fields)["choices"]
            code, text, response = post("/v1/completions",
                                        {"prompt": prompt, "stream": True, "stream_options": {"include_usage": True}, **fields})
            check("code of a stream", code == 200 and response.getheader("Content-Type") == "text/event-stream")
            check("its end", text.endswith("data: [DONE]\n\n"))
            chunks = [json.loads(chunk[6:]) for chunk in text.split("\n\n")[:-2]]
            check("usage comes last", chunks[-1]["choices"] == [] and chunks[-1]["usage"]["completion_tokens"] > 0)
            for choice in whole:
                mine = [c for chunk in chunks for c in chunk["choices"] if c["index"] == choice["index"]]
                check(f"chunks of {fields}", "".join(c["text"] for c in mine) == choice["text"])
                check("the last says why", [c["finish_reason"] for c in mine][-1] == choice["finish_reason"]
                      and not any(c["finish_reason"] for c in mine[:-1]))
                check("and what was probable", near(mine[-1]["logprobs"], choice["logprobs"]))
            grown += len(chunks) > len(whole) + 1
    check("it comes as it grows", grown > 0)  # not always: who reads late is shown more at once


def logprobs():
    for prompt in lines():
        answer = complete(prompt, temperature=0, max_tokens=12, logprobs=5)["choices"][0]
        told = answer["logprobs"]
        for token, log_prob, best in zip(told["tokens"], told["token_logprobs"], told["top_logprobs"], strict=True):
            check("five", len(best) == 5 and sum(map(math.exp, best.values())) <= 1.0001)
            allowed = [value for name, value in best.items() if name != "<spare>"]  # which the model's file suppresses
            check(f"greedy takes the best: {token!r} of {best}", log_prob == max(allowed) == best[token])
        # The same text as a prompt is told of in the same way.
        if all(one.isascii() and not one.startswith("bytes:") for one in told["tokens"]):
            whole = complete(prompt + answer["text"], max_tokens=0, echo=True, logprobs=5)["choices"][0]
            again = whole["logprobs"]
            check("the prompt", whole["text"] == prompt + answer["text"] and whole["finish_reason"] == "length")
            if again["tokens"][-len(told["tokens"]):] == told["tokens"]:
                for a, b in zip(again["token_logprobs"][-len(told["tokens"]):], told["token_logprobs"]):
                    check(f"{a} and {b}", abs(a - b) < 1e-3)
        both = complete(prompt, temperature=0, max_tokens=12, logprobs=5, echo=True)["choices"][0]
        count = len(told["tokens"])
        three = complete(prompt, max_tokens=0, echo=True, logprobs=1, n=3)["choices"]
        check(f"{len(three)} choices of nothing", [c["index"] for c in three] == [0, 1, 2] and
              all(c["text"] == prompt and c["logprobs"] == three[0]["logprobs"] for c in three))
        check("echo", both["text"] == prompt + answer["text"] and both["logprobs"]["tokens"][-count:] == told["tokens"])
        for a, b in zip(both["logprobs"]["token_logprobs"][-count:], told["token_logprobs"], strict=True):
            check(f"behind the prompt: {a} and {b}", abs(a - b) < 1e-3)
        check("a sample is told of without its temperature",
              complete(prompt, temperature=0.01, max_tokens=1, logprobs=0, seed=1)["choices"][0]["logprobs"]
              ["token_logprobs"][0] < -1e-4)


def samples():
    for prompt in lines():
        one = texts(prompt, seed=3, n=3, max_tokens=20)
        check("the same seed", one == texts(prompt, seed=3, n=3, max_tokens=20))
        check("another", one != texts(prompt, seed=4, n=3, max_tokens=20))
        check("none is another each time", texts(prompt, n=12, max_tokens=30) != texts(prompt, n=12, max_tokens=30))
        check("sixteen tokens", complete(prompt, seed=3)["usage"]["completion_tokens"] <= 16)
        answer = complete(prompt, seed=3, n=1, best_of=8, max_tokens=10)
        every = complete(prompt, seed=3, n=8, max_tokens=10, logprobs=0)["choices"]

        def mean(choice):
            return sum(choice["logprobs"]["token_logprobs"]) / len(choice["logprobs"]["tokens"])
        best = max(every, key=mean)
        check("the best of eight", len(answer["choices"]) == 1 and
              any(c["text"] == answer["choices"][0]["text"] and mean(c) > mean(best) - 1e-3 for c in every))
        check("all eight were paid", answer["usage"]["completion_tokens"] ==
              sum(len(c["logprobs"]["tokens"]) for c in every))


def stops():
    for prompt in lines():
        whole = texts(prompt, temperature=0, max_tokens=40)[0]
        word = next((whole[i:i + 3] for i in range(8, len(whole) - 3) if whole[i:i + 3].isascii()), None)
        if word is None:
            continue
        answer = complete(prompt, temperature=0, max_tokens=40, stop=["never there", word])["choices"][0]
        check(f"before {word!r}", answer["text"] == whole[:whole.index(word)] and answer["finish_reason"] == "stop")
        _, text, _ = post("/v1/completions", {"prompt": prompt, "temperature": 0, "max_tokens": 40, "stop": word, "stream": True})
        streamed = "".join(json.loads(chunk[6:])["choices"][0]["text"] for chunk in text.split("\n\n")[:-2])
        check("a stream shows nothing of it", streamed == answer["text"])


def grammars():
    for prompt in lines():  # the drawn model has letters, spaces and the line's end
        for fields in [{"temperature": 0}, {"seed": 2, "n": 3}, {"temperature": 0, "n": 3}]:
            for text in texts(prompt, regex="[a-f]{3}( [x-z]{2})+", max_tokens=12, **fields):
                check(f"{text!r}", re.fullmatch("[a-f]{3}( [x-z]{2})+", text))
            for text in texts(prompt, grammar='root ::= "yes" | "no"', max_tokens=12, **fields):
                check(f"{text!r}", text in ("yes", "no"))
            for text in texts(prompt, lark='start: word ("x" word)?\nword: /[a-c]+/', max_tokens=12, **fields):
                check(f"{text!r}", re.fullmatch("[a-c]+(x[a-c]+)?", text))
            for text in texts(prompt, json_schema={"enum": [True, None]}, max_tokens=12, **fields):
                check(f"{text!r}", text in ("true", "null"))
        first = texts(prompt, temperature=0, max_tokens=1)[0]
        check("a bias", {texts(prompt, temperature=0, max_tokens=1, logit_bias={str(token): 100})[0] for token in range(7, 59)} >=
              set("abc"))
        check("none", texts(prompt, temperature=0, max_tokens=1, logit_bias={}) == [first])
        plain = texts(prompt, temperature=0, max_tokens=24)[0]
        for fields in [{"temperature": 0}, {"temperature": 0, "n": 3}, {"seed": 2}]:
            boosted = texts(prompt, max_tokens=24, bias=[{"phrase": "zqx", "boost": 60}], **fields)[0]
            check(f"a phrase: {boosted!r}", boosted.count("zqx") > 1)
            once = texts(prompt, max_tokens=24, bias=[{"phrase": "zqx", "boost": 60}], bias_once=True, **fields)[0]
            check(f"once: {once!r}", once.count("zqx") >= 1 and once.count("zqx") < boosted.count("zqx"))
        check("no phrases", texts(prompt, temperature=0, max_tokens=24, bias=[])[0] == plain)


def many():
    prompts = lines()
    expected = {p: texts(p, temperature=0, max_tokens=24)[0] for p in prompts}
    before = metrics()
    got = []

    def ask(number):
        for i in range(3):
            prompt = prompts[(number + i) % len(prompts)]
            got.append(texts(prompt, temperature=0, max_tokens=24) == [expected[prompt]])

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after = metrics()
    check(f"{sum(got)} of {len(got)} right", len(got) == 48 and all(got))
    good = 'sluice_sentences_total{failure="none"}'
    check("a result each", after[good] - before[good] == 48)
    check("together", after["sluice_step_rows_sum"] - before["sluice_step_rows_sum"] >
          after["sluice_step_rows_count"] - before["sluice_step_rows_count"])


def shared():
    beginning = "a long text that stands before every one of them " * 6
    texts(beginning + "first", temperature=0, max_tokens=4)
    before = metrics()
    fed = complete([beginning + name for name in "abcde"], temperature=0, max_tokens=4)["usage"]["prompt_tokens"]
    after = metrics()
    count = after["sluice_shared_total"] - before["sluice_shared_total"]
    check(f"{count} of {fed} tokens shared", count >= fed * 0.9)


def leaves():
    slow = json.dumps({"prompt": ["a b c"] * 8, "n": 6, "max_tokens": 400, "regex": "[a-z ]{390,}"}).encode()
    before = metrics().get('sluice_sentences_total{failure="cancelled"}', 0)
    for accept in ("application/json", "text/event-stream"):
        client = socket.create_connection(("127.0.0.1", port))
        body = slow if accept == "application/json" else slow[:-1] + b', "stream": true}'
        client.sendall(head(len(body), path="/v1/completions") + body)
        wait_for("the request is open", lambda m: m["sluice_requests_open"] >= 1)
        client.close()
        wait_for("it is closed", lambda m: m["sluice_requests_open"] == 0)
    after = metrics().get('sluice_sentences_total{failure="cancelled"}', 0)
    check(f"{after - before} prompts cancelled", after - before >= 2)


def told():
    prompts = lines()
    for fields in [{"temperature": 0}, {"seed": 4}, {"seed": 4, "top_k": 5, "temperature": 0.7}, {"seed": 4, "mirostat": 2},
                   {"temperature": 0, "repeat_penalty": 1.3, "dry_multiplier": 1}, {"seed": 4, "regex": "[a-z ]{20,40}"},
                   {"temperature": 0, "n": 3}, {"seed": 4, "n": 3}, {"temperature": 0, "stop": ["a", "e"]},
                   {"temperature": 0, "logprobs": 0, "echo": True}]:
        for choice in complete(prompts, max_tokens=40, **fields)["choices"]:
            print(fields, choice["index"], repr(choice["text"]), choice["finish_reason"])


def remembers():
    for prompt in lines():
        for fields in [{"temperature": 0}, {"seed": 4, "top_k": 5}]:
            seen = []
            for remember in (False, False, True, True, False):
                before = metrics()
                text = texts(prompt, max_tokens=60, remember=remember, **fields)
                after = metrics()
                seen.append((text, *(after[name] - before[name] for name in ("sluice_fed_total", "sluice_remembered_texts"))))
            check(f"the same text: {seen}", all(one[0] == seen[0][0] for one in seen))
            check(f"what is stored: {seen}", [one[2] for one in seen] == [0, 0, 1, 1, 0])
    long = {"max_tokens": 60, "temperature": 0, "regex": "[a-z ]{50,}"}
    before = metrics()
    texts("one more", **long)
    middle = metrics()
    texts("one more", **long)
    after = metrics()
    first, second = (b["sluice_rounds_total"] - a["sluice_rounds_total"] for a, b in ((before, middle), (middle, after)))
    check(f"{first} rounds, then {second}", first > 20 and second < first / 2)
    for _ in range(2):
        before = metrics()
        texts("one more", **long, remember=False)
        private = metrics()["sluice_rounds_total"] - before["sluice_rounds_total"]
        check(f"{private} rounds of who gets nothing", private > 2 * second)


def marks():
    found = []
    for prompt in lines():
        text = texts(prompt, max_tokens=150, seed=3, regex="[a-z ]{100,}")[0]
        check("the same among others", texts([prompt] + ["x y"] * 8, max_tokens=150, seed=3, regex="[a-z ]{100,}")[0] == text)
        code, answer, _ = post("/detect", {"text": text, "return_token_ids": True})
        answer = json.loads(answer)
        code, again, _ = post("/detect", {"tokens": answer["token_ids"]})
        check("tokens are a text", json.loads(again)["p_value"] == answer["p_value"])
        found.append(answer["p_value"])
    check(f"marks are found: {found}", sorted(found)[len(found) // 2] < 1e-4)
    code, answer, _ = post("/detect", {"text": "the quick brown fox jumps over the lazy dog and runs away from the watering place"})
    check(f"no mark: {answer}", code == 200 and json.loads(answer)["p_value"] > 0.01)
    for field, body in [("temperature", {"temperature": 0}), ("n", {"n": 2}), ("best_of", {"best_of": 2}), ("watermark", {"watermark": False}),
                        ("watermark", {"watermark": 1}), ("remember", {"remember": True})]:
        code, text, _ = post("/v1/completions", {"prompt": "a", "max_tokens": 4, **body})
        check(f"{body}: {code} {text}", code == 400 and json.loads(text)["error"]["param"] == field)
    code, text, _ = post("/detect", {"text": "\ufdfa" * 100000})
    check(f"too long: {code} {text}", code == 413 and json.loads(text)["error"]["param"] == "text")


def chat():
    """The drawn model has the template `monarch`: <s>role, a line end, content</s>, a line end."""
    for one in lines():
        written = [{"role": "system", "content": "abc"}, {"role": "user", "content": [{"type": "text", "text": one}]}]
        spelled = f"system\nabc</s>\n<s>user\n{one}</s>\n<s>assistant\n"
        for fields in [{"temperature": 0}, {"temperature": 0, "n": 3}, {"seed": 4, "temperature": 1}]:
            body = {"messages": written, "max_tokens": 20, **fields}
            code, text, _ = post("/v1/chat/completions", body)
            check(f"chat: {code} {text[:200]}", code == 200)
            answer = json.loads(text)
            found = [choice["message"] for choice in answer["choices"]]
            check("its kind", answer["object"] == "chat.completion" and all(m["role"] == "assistant" for m in found))
            wanted = complete(spelled, max_tokens=20, **fields)  # the server has --special
            check(f"{found}, not {wanted}", [m["content"] for m in found] == [c["text"] for c in wanted["choices"]]
                  and answer["usage"] == wanted["usage"])
            code, text, _ = post("/v1/chat/completions", {**body, "stream": True})
            chunks = [json.loads(chunk[6:]) for chunk in text.split("\n\n")[:-2]]
            for i, message in enumerate(found):
                mine = [c for chunk in chunks for c in chunk["choices"] if c["index"] == i]
                check(f"chunks of {fields}", "".join(c["delta"]["content"] for c in mine) == message["content"]
                      and mine[-1]["finish_reason"] == answer["choices"][i]["finish_reason"])
            check("kind of chunks", all(chunk["object"] == "chat.completion.chunk" for chunk in chunks))
        code, text, _ = post("/v1/chat/completions", {"messages": written, "temperature": 0, "max_completion_tokens": 5, "logprobs": True,
                                                      "top_logprobs": 2})
        told = json.loads(text)["choices"][0]["logprobs"]["content"]
        check("logprobs", 0 < len(told) <= 5 and all(len(t["top_logprobs"]) == 2 and t["logprob"] < 0 for t in told))
    asked = [{"role": "user", "content": "a"}]
    for field, body in [("messages", {}), ("messages", {"messages": []}), ("messages[0].role", {"messages": [{"content": "a"}]}),
                        ("messages[0].content", {"messages": [{"role": "user"}]}), ("tools", {"messages": asked, "tools": [{"type": "function"}]}),
                        ("messages[0].tool_calls", {"messages": [{"role": "user", "content": "a", "tool_calls": []}]}),
                        ("max_tokens", {"messages": asked, "max_tokens": 3, "max_completion_tokens": 3}), ("echo", {"messages": asked, "echo": True}),
                        ("top_logprobs", {"messages": asked, "top_logprobs": 3}), ("prompt", {"messages": asked, "prompt": "a"})]:
        code, text, _ = post("/v1/chat/completions", body)
        check(f"{body}: {code} {text}", code == 400 and json.loads(text)["error"]["param"] == field)


ASKED = [{"role": "user", "content": "a"}]
COLOR = {"type": "object", "properties": {"color": {"enum": ["red", "blue"]}, "times": {"type": "integer", "minimum": 0, "maximum": 99}},
         "required": ["color", "times"], "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": "paint", "description": "Paints.", "parameters": COLOR, "strict": True}},
         {"type": "function", "function": {"name": "halt", "parameters": {"type": "object", "additionalProperties": False}}}]


def chats(**fields):
    """The choices, whole; and the same again from chunks."""
    body = {"messages": ASKED, "max_tokens": 300, **fields}
    code, text, _ = post("/v1/chat/completions", body)
    check(f"{fields}: {code} {text[:300]}", code == 200)
    whole = json.loads(text)["choices"] if code == 200 else []
    code, text, _ = post("/v1/chat/completions", {**body, "stream": True})
    check(f"{fields}, streamed: {code} {text[:300]}", code == 200)
    found = [{"content": "", "reasoning": "", "calls": [], "finish_reason": None} for _ in whole]
    for chunk in text.split("\n\n")[:-2]:
        for choice in json.loads(chunk[6:])["choices"]:
            mine, delta = found[choice["index"]], choice["delta"]
            check("nothing behind the end", mine["finish_reason"] is None)
            mine["content"] += delta.get("content", "")
            mine["reasoning"] += delta.get("reasoning_content", "")
            mine["finish_reason"] = choice["finish_reason"]
            for call in delta.get("tool_calls", []):
                if "id" in call:
                    check(f"a new call: {call}", call["index"] == len(mine["calls"]) and call["type"] == "function")
                    mine["calls"].append([call["function"]["name"], call["function"]["arguments"]])
                else:
                    mine["calls"][call["index"]][1] += call["function"]["arguments"]
    for choice, streamed in zip(whole, found, strict=True):
        message = choice["message"]
        calls = message.get("tool_calls", [])
        check(f"{streamed}, not {choice}", streamed["content"] == (message["content"] or "") and
              streamed["reasoning"] == message.get("reasoning_content", "") and streamed["finish_reason"] == choice["finish_reason"] and
              streamed["calls"] == [[c["function"]["name"], c["function"]["arguments"]] for c in calls])
        check("ids", len({c["id"] for c in calls}) == len(calls) and all(c["type"] == "function" for c in calls))
        check(f"null beside calls: {message}", message["content"] is None or not calls or message["content"] != "")
    return whole


def valid(call):
    function = call["function"]
    arguments = json.loads(function["arguments"])
    if function["name"] == "halt":
        return arguments == {}
    return (function["name"] == "paint" and list(arguments) == ["color", "times"] and arguments["color"] in ("red", "blue") and
            0 <= arguments["times"] <= 99)


def tools():
    """The drawn model spells JSON; <tool_call> (127) is a control token of it."""
    for fields in [{"temperature": 0}, {"seed": 4}, {"temperature": 0, "n": 3}, {"seed": 5, "n": 3, "logprobs": True}]:
        for more, most, names in [({"tool_choice": "required", "parallel_tool_calls": False}, 1, ("paint", "halt")),
                                  ({"tool_choice": {"type": "function", "function": {"name": "halt"}}}, 1, ("halt",)),
                                  ({"logit_bias": {"127": 100}, "parallel_tool_calls": False}, 1, ("paint", "halt")),
                                  ({"tool_choice": "required", "logit_bias": {"127": 100}}, 100, ("paint", "halt"))]:
            for choice in chats(tools=TOOLS, **fields, **more):
                calls = choice["message"].get("tool_calls", [])
                check(f"calls: {choice}", 0 < len(calls) <= most and (choice["message"]["content"] is None or "tool_choice" not in more))
                check(f"valid: {calls}", all(valid(c) and c["function"]["name"] in names for c in calls))
                check(f"why it ended: {choice}", choice["finish_reason"] in ("tool_calls", "tool_calls" if most == 1 else "length"))
        for choice in chats(tools=TOOLS, tool_choice="none", **{**fields, "max_tokens": 40}):
            check(f"no calls: {choice}", "tool_calls" not in choice["message"] and "tool_call" not in choice["message"]["content"] and
                  choice["finish_reason"] in ("stop", "length"))
    # Calls and their results are in the prompt as the model writes them.
    call = {"id": "x", "type": "function", "function": {"name": "paint", "arguments": '{"color": "red"}'}}
    other = {"id": "y", "type": "function", "function": {"name": "halt", "arguments": "{}"}}
    told = [*ASKED, {"role": "assistant", "content": None, "tool_calls": [call, other]},
            {"role": "tool", "tool_call_id": "x", "content": "done"}, {"role": "tool", "tool_call_id": "y", "content": "ok"}]
    spelled = ('user\na</s>\n<s>assistant\n<tool_call>\n{"name": "paint", "arguments": {"color": "red"}}\n</tool_call>\n'
               '<tool_call>\n{"name": "halt", "arguments": {}}\n</tool_call></s>\n<s>user\n<tool_response>\ndone\n</tool_response>\n'
               '<tool_response>\nok\n</tool_response></s>\n<s>assistant\n')
    code, text, _ = post("/v1/chat/completions", {"messages": told, "temperature": 0, "max_tokens": 20})
    wanted = complete(spelled, temperature=0, max_tokens=20)
    answer = json.loads(text)
    check(f"results: {text}, not {wanted}", code == 200 and answer["choices"][0]["message"]["content"] == wanted["choices"][0]["text"] and
          answer["usage"] == wanted["usage"])
    # The tools stand in the system message, byte for byte in the order in which they came.
    fed = {}
    for name, body in [("none", {}), ("tools", {"tools": TOOLS}), ("none, system", {"messages": [{"role": "system", "content": "b"}, *ASKED]}),
                       ("system", {"tools": TOOLS, "messages": [{"role": "system", "content": "b"}, *ASKED]})]:
        code, text, _ = post("/v1/chat/completions", {"messages": ASKED, "max_tokens": 60, "temperature": 0, **body})
        check(f"{body}: {code} {text[:200]}", code == 200)
        fed[name] = json.loads(text)["usage"]["prompt_tokens"]
    check(f"told: {fed}", fed["tools"] > fed["none"] + len(json.dumps(TOOLS)) * 0.8 and
          0 < fed["system"] - fed["none, system"] <= fed["tools"] - fed["none"])
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    for field, body in [
            ("tools", {"tools": {}}), ("tools", {"tools": [{"type": "function"}]}), ("tools", {"tools": [TOOLS[0], TOOLS[0]]}),
            ("tools", {"tools": [{"type": "function", "function": {"name": "a", "parameters": {"type": "circle"}}}]}),
            ("tool_choice", {"tool_choice": "required"}), ("tool_choice", {"tools": TOOLS, "tool_choice": "any"}),
            ("tool_choice", {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "b"}}}),
            ("parallel_tool_calls", {"parallel_tool_calls": True}), ("parallel_tool_calls", {"tools": TOOLS, "parallel_tool_calls": 1}),
            ("functions", {"functions": [{"name": "a"}]}), ("function_call", {"function_call": "auto"}),
            ("response_format", {"tools": TOOLS, "response_format": {"type": "json_object"}}), ("regex", {"tools": TOOLS, "regex": "a"}),
            ("messages[1].tool_call_id", {"messages": [*ASKED, {"role": "tool", "content": "a"}]}),
            ("messages", {"messages": [*ASKED, {"role": "tool", "content": "a", "tool_call_id": "z"}]}),
            ("messages[0].tool_calls[0].id", {"messages": [{**message, "tool_calls": [{**call, "id": None}]}]}),
            ("messages[0].tool_calls[0].function.arguments",
             {"messages": [{**message, "tool_calls": [{**call, "function": {"name": "a", "arguments": "[]"}}]}]}),
            ("messages[0].tool_calls[0]", {"messages": [{**message, "tool_calls": [{**call, "type": "custom"}]}]}),
            (None, {"tools": TOOLS, "tool_choice": "required", "max_tokens": 3})]:
        code, text, _ = post("/v1/chat/completions", {"messages": ASKED, **body})
        param = json.loads(text)["error"]["param"] if code == 400 else None
        check(f"{body}: {code} {text[:300]}", code == 400 and param == (field or "max_tokens"))


def calls():
    """In any format that the drawn model spells."""
    made = {"id": "x", "type": "function", "function": {"name": "paint", "arguments": '{"color": "red", "times": 3, "more": {"a": [1]}}'}}
    told = [*ASKED, {"role": "assistant", "content": "b", "tool_calls": [made]}, {"role": "tool", "tool_call_id": "x", "content": "done"}]
    for messages in (ASKED, told):
        for choice in chats(messages=messages, tools=TOOLS, tool_choice="required", parallel_tool_calls=False, seed=1, max_tokens=400):
            found = choice["message"].get("tool_calls", [])
            check(f"a call: {choice}", len(found) == 1 and valid(found[0]) and choice["finish_reason"] == "tool_calls")


def thinks():
    """The server has --reasoning-parser and --reasoning-budget 12; of the drawn model, </think> is a token."""
    schema = {"type": "json_schema", "json_schema": {"name": "c", "schema": COLOR}}
    for fields in [{"temperature": 0}, {"seed": 5, "n": 3}]:
        for most, more in [(12, {}), (0, {"thinking_token_budget": 0}), (40, {"thinking_token_budget": 40, "logit_bias": {"130": -100}})]:
            for rest in [{"max_tokens": 80}, {"response_format": schema}, {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False}]:
                for choice in chats(logprobs=True, **fields, **more, **rest):
                    message, names = choice["message"], [one["token"] for one in choice["logprobs"]["content"]]
                    end = names.index("</think>")
                    check(f"a budget of {most}: {names}", end <= most and (end == most or most < 40))
                    spelled = "".join(bytes(one["bytes"]).decode() or one["token"] for one in choice["logprobs"]["content"][:end])
                    check(f"thought: {choice}", message.get("reasoning_content", "").lstrip() == spelled.lstrip().removeprefix("<think>").lstrip())
                    check(f"apart: {message}", "</think>" not in (message.get("reasoning_content", "") if "max_tokens" in rest else str(message)))
                    if "tools" in rest:
                        check(f"calls: {choice}", len(message["tool_calls"]) == 1 and valid(message["tool_calls"][0]))
                    if "response_format" in rest:
                        check(f"JSON: {choice}", set(json.loads(message["content"])) == {"color", "times"})
    for value in (-1, "many", 100000):
        code, text, _ = post("/v1/chat/completions", {"messages": ASKED, "thinking_token_budget": value})
        check(f"{value}: {code} {text[:300]}", code == 400 and json.loads(text)["error"]["param"] == "thinking_token_budget")


def formats():
    """In a chat; the drawn model spells JSON."""
    schema = {"type": "json_schema", "json_schema": {"name": "c", "strict": True, "schema": COLOR}}
    tag = {"type": "structural_tag", "format": {"type": "tag", "begin": "<paint>", "content": {"type": "json_schema", "json_schema": COLOR},
                                                "end": "</paint>"}}
    older = {"type": "structural_tag", "structures": [{"begin": "<paint>", "schema": COLOR, "end": "</paint>"}], "triggers": ["<paint"]}
    for fields in [{"temperature": 0}, {"seed": 4}, {"temperature": 0, "n": 3}]:
        for choice in chats(response_format=schema, **fields):
            check(f"a schema: {choice}", set(json.loads(choice["message"]["content"])) == {"color", "times"})
        for choice in chats(response_format={"type": "json_object"}, max_tokens=80, **fields):
            check(f"an object: {choice}", isinstance(json.loads(choice["message"]["content"]), dict))
        for choice in chats(response_format=tag, **fields):
            found = re.fullmatch("<paint>(.*)</paint>", choice["message"]["content"], re.S)
            check(f"a tag: {choice}", found and set(json.loads(found[1])) == {"color", "times"})
        for choice in chats(response_format=older, max_tokens=40, **fields):
            for one in re.findall("<paint>(.*?)</paint>", choice["message"]["content"], re.S):
                check(f"tags: {choice}", set(json.loads(one)) == {"color", "times"})
        plain = chats(max_tokens=20, **fields)
        check("a text", [c["message"] for c in chats(response_format={"type": "text"}, max_tokens=20, **fields)] ==
              [c["message"] for c in plain])
    for field, one in [("response_format", "json"), ("response_format", {"type": "xml"}), ("response_format", {"type": "json_schema"}),
                       ("response_format.schema", {"type": "json_object", "schema": {}}),
                       ("response_format.json_schema.strict", {"type": "json_schema", "json_schema": {"schema": {}, "strict": 1}}),
                       ("response_format.json_schema.name", {"type": "json_schema", "json_schema": {"schema": {}, "name": 1}}),
                       ("response_format.json_schema.rules", {"type": "json_schema", "json_schema": {"schema": {}, "rules": 1}}),
                       ("response_format", {"type": "structural_tag"}), ("response_format", {**tag, "format": {"type": "circle"}})]:
        code, text, _ = post("/v1/chat/completions", {"messages": ASKED, "response_format": one})
        check(f"{one}: {code} {text[:300]}", code == 400 and json.loads(text)["error"]["param"] == field)


def jinja(file):
    """A function that renders the template, as Hugging Face's apply_chat_template does; of another author's engine."""
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(why):
        raise ValueError(why)

    def to_json(value, indent=None, ensure_ascii=False, separators=None, sort_keys=False):
        return json.dumps(value, indent=indent, ensure_ascii=ensure_ascii, separators=separators, sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    env.filters["tojson"] = to_json
    env.globals.update(raise_exception=refuse, strftime_now=time.strftime)
    with open(file, encoding="utf-8", newline="") as source:
        pattern = env.from_string(source.read())

    def render(messages, tools=None, **variables):
        messages = json.loads(json.dumps(messages))
        for message in messages:
            for call in message.get("tool_calls", []):
                call["function"]["arguments"] = json.loads(call["function"]["arguments"])
        return pattern.render(messages=messages, tools=tools, add_generation_prompt=True, bos_token="<s>", eos_token="</s>",
                              date_string=time.strftime("%d %b %Y"), datetime=time.strftime("%b %d %Y"), **variables).removeprefix("<s>")
    return render


def applied(**body):
    code, text, _ = post("/apply-template", body)
    return code, json.loads(text).get("prompt") if code == 200 else json.loads(text)["error"]


# With what templates get wrong: quotes, marks, letters of others, empty lines, order of members.
SAID = [{"role": "system", "content": "Be <kind> & brief."}, {"role": "user", "content": "\"a\" 'b' ü\n\nc"},
        {"role": "assistant", "content": "d"}, {"role": "user", "content": "e"}]
CALLED = [{"role": "user", "content": "Paint."},
          {"role": "assistant", "content": "", "tool_calls": [
              {"id": "call00001", "type": "function", "function": {"name": "paint", "arguments": '{"times": 3, "color": "red"}'}}]},
          {"role": "tool", "tool_call_id": "call00001", "name": "paint", "content": "done"}]


def template(file):
    try:
        render = jinja(file)
    except ImportError:
        return print("not tried: chat templates beside jinja2, which was not found (python3-jinja2)")
    for messages, tools, variables in [(SAID, None, {}), (SAID, TOOLS[:1], {}), (CALLED, TOOLS[:1], {}), (SAID, None, {"enable_thinking": False}),
                                       (SAID, None, {"enable_thinking": True, "own": {"b": 1, "a": [None, 1.5]}})]:
        body = {"messages": messages, **({"tools": tools} if tools else {}), **({"chat_template_kwargs": variables} if variables else {})}
        code, prompt = applied(**body)
        wanted = render(messages, tools, **variables)
        check(f"{file}, {variables}: {prompt!r}, not {wanted!r}", code == 200 and prompt == wanted)
    code, prompt = applied(messages=SAID, reasoning_effort="low")
    check(f"{file}: effort", code == 200 and prompt == render(SAID, reasoning_effort="low", reasoning_strength="low"))
    check(f"{file}: no effort", applied(messages=SAID, reasoning_effort="none") == applied(messages=SAID, chat_template_kwargs={"enable_thinking": False}))


def own():
    """The test's own template, which says what it is given."""
    code, prompt = applied(messages=[{"role": "developer", "content": "a"}, {"role": "assistant", "content": "b", "reasoning_content": "c", "name": "d"}])
    check(f"roles, names, thoughts: {prompt}", code == 200 and "<|im_start|>system\na<|im_end|>" in prompt and "<think>c</think>b" in prompt and "[d]" in prompt)
    body = {"messages": ASKED, "chat_template_kwargs": {"own": "xyz"}}
    prompt = applied(**body)[1]
    check(f"a variable: {prompt}", "own=xyz" in prompt)
    code, text, _ = post("/v1/chat/completions", {**body, "temperature": 0, "max_tokens": 20})
    wanted, answer = complete(prompt, temperature=0, max_tokens=20), json.loads(text)
    check(f"the prompt of a chat: {text[:300]}, not {wanted}", code == 200 and answer["usage"] == wanted["usage"] and
          answer["choices"][0]["message"]["content"] == wanted["choices"][0]["text"])
    for field, more in [("chat_template_kwargs", {"chat_template_kwargs": 1}), ("chat_template_kwargs", {"chat_template_kwargs": {"messages": []}}),
                        ("chat_template_kwargs", {"chat_template_kwargs": {"chat_template": "{{ 1 }}"}}),
                        ("chat_template_kwargs.enable_thinking", {"chat_template_kwargs": {"enable_thinking": "no"}}),
                        ("reasoning_effort", {"reasoning_effort": 1}), ("chat_template", {"chat_template": "{{ 1 }}"}),
                        ("messages", {"messages": [{"role": "nobody", "content": "a"}]}), ("messages", {}), ("max_tokens", {"max_tokens": 1})]:
        code, error = applied(**{"messages": ASKED, **more} if more else {})
        check(f"{more}: {code} {error}", code == 400 and error["param"] == field)
    code, error = applied(messages=[{"role": "nobody", "content": "a"}])
    check(f"why: {error}", "no role nobody" in error["message"])


def built_in():
    for field, more in [("chat_template_kwargs", {"chat_template_kwargs": {"own": 1}}), ("reasoning_effort", {"reasoning_effort": "low"})]:
        code, error = applied(messages=ASKED, **more)
        check(f"{more}: {code} {error}", code == 400 and error["param"] == field)
    check("without", applied(messages=ASKED)[0] == 200 and applied(messages=ASKED, chat_template_kwargs={})[0] == 200)


def many_messages():
    """The template looks at all messages for each; the server's time limit is a second."""
    begun = time.monotonic()
    code, error = applied(messages=[{"role": "user", "content": "a"}] * 7000)
    check(f"late: {code} {error}", code == 504 and time.monotonic() - begun < 30)
    code, error = applied(messages=[{"role": "user", "content": "a"}] * 9000)
    check(f"too many: {code} {error}", code == 413 and error["param"] == "messages")


def little_memory():
    """2 MiB a request."""
    found = {count: applied(messages=[{"role": "user", "content": "ab"}] * count)[0] for count in (10, 200, 400, 500, 1000, 3000, 6000, 8000)}
    check(f"codes: {found}", found[10] == 200 and found[1000] == found[8000] == 413 and set(found.values()) == {200, 413})


def tokens():
    """The tokens of a prompt in place of its text: <s>, then letters behind a space (7 to 32) and others (33 to 58)."""
    spelled = {"ab c": [1, 7, 34, 9], "q": [1, 23]}
    for fields in [{"temperature": 0}, {"temperature": 0, "echo": True, "logprobs": 1}, {"seed": 3, "n": 2}]:
        fields["max_tokens"] = 12
        for text, ids in spelled.items():
            by_text, by_ids = complete(text, **fields), complete(ids, **fields)
            same = [a["text"].lstrip() == b["text"].lstrip() for a, b in zip(by_text["choices"], by_ids["choices"], strict=True)]
            check(f"{ids}: {by_ids}, not {by_text}", all(same) and by_ids["usage"] == by_text["usage"])
    both = complete(list(spelled.values()), temperature=0, max_tokens=12)["choices"]
    check("several", [c["text"] for c in both] == [texts(t, temperature=0, max_tokens=12)[0] for t in spelled])


def late():
    """The server's time limit is short: what was written until then is an answer."""
    code, text, _ = post("/v1/completions", {"prompt": ["abc", "x", "y", "z"], "max_tokens": 4000, "temperature": 0, "regex": "[a-z ]{1900}[a-z ]{1900,}"})
    check(f"not dropped: {code} {text[:200]}", code == 200 and all(
        c["finish_reason"] == "length" and 0 < len(c["text"]) for c in json.loads(text)["choices"]))


def bodies():
    for field, code, body in [
            ("prompt", 400, {}), ("prompt", 400, {"prompt": "a\u00e9"}), ("prompt", 400, {"prompt": []}), ("prompt[1]", 400, {"prompt": [1, 59]}),
            ("prompt[0]", 400, {"prompt": [-1]}), ("prompt[1]", 400, {"prompt": [[1], "a"]}), ("prompt[1]", 400, {"prompt": [[1], []]}),
            ("white_space", 400, {"prompt": "a", "white_space": 0}), ("white_space", 400, {"prompt": "a", "json_schema": {}, "white_space": -2}),
            ("json_digits", 400, {"prompt": "a", "regex": "a", "json_digits": 3}),
            ("response_format", 400, {"prompt": "a", "response_format": {"type": "xml"}}),
            ("response_format", 400, {"prompt": "a", "response_format": {"type": "json_schema"}}),
            ("json_schema", 400, {"prompt": "a", "json_schema": {}, "response_format": {"type": "json_object"}}),
            ("stream_options", 400, {"prompt": "a", "stream": True, "stream_options": {"usage": True}}),
            ("model", 404, {"prompt": "a", "model": "gpt"}), ("n", 400, {"prompt": "a", "n": 0}), ("n", 400, {"prompt": "a", "n": 64}),
            ("best_of", 400, {"prompt": "a", "n": 3, "best_of": 2}), ("best_of", 400, {"prompt": "a", "best_of": 2, "stream": True}),
            ("logprobs", 400, {"prompt": "a", "logprobs": 6}), ("max_tokens", 400, {"prompt": "a", "max_tokens": 0}),
            ("max_tokens", 400, {"prompt": "a", "max_tokens": 100000}), ("temperature", 400, {"prompt": "a", "temperature": -1}),
            ("top_p", 400, {"prompt": "a", "top_p": 0}), ("seed", 400, {"prompt": "a", "seed": 1.5}),
            ("echo", 400, {"prompt": "a", "echo": "yes"}), ("suffix", 400, {"prompt": "a", "suffix": "b"}),
            ("presence_penalty", 400, {"prompt": "a", "presence_penalty": 3}), ("xtc_probability", 400, {"prompt": "a", "xtc_probability": 2}),
            ("mirostat", 400, {"prompt": "a", "mirostat": 1}), ("tools", 400, {"prompt": "a", "tools": []}),
            ("stop", 400, {"prompt": "a", "stop": list("abcde")}), ("stop", 400, {"prompt": "a", "stop": ""}),
            ("logit_bias.900", 400, {"prompt": "a", "logit_bias": {"900": 1}}),
            ("bias", 400, {"prompt": "a", "bias": {}}), ("bias[0]", 400, {"prompt": "a", "bias": [{"phrase": ""}]}),
            ("logit_bias.5", 400, {"prompt": "a", "logit_bias": {"5": 101}}),
            ("regex", 400, {"prompt": "a", "regex": "[a"}), ("grammar", 400, {"prompt": "a", "grammar": "leaf ::= x"}), ("lark", 400, {"prompt": "a", "lark": "start: x"}),
            ("grammar", 400, {"prompt": "a", "grammar": 5}), ("json_schema", 400, {"prompt": "a", "json_schema": {"type": "circle"}}),
            (None, 400, {"prompt": "a", "json_schema": {"type": "number"}}),  # digits: no token spells them
            ("json_schema", 400, {"prompt": "a", "json_schema": "{"}),
            ("regex", 400, {"prompt": "a", "regex": "a", "json_schema": {}}),
            ("max_tokens", 400, {"prompt": "a", "regex": "[a-c]{40}", "max_tokens": 5}),
            ("stream_options", 400, {"prompt": "a", "stream_options": {}})]:
        got, text, _ = post("/v1/completions", body)
        check(f"{body}: {got} {text[:300]}", got == code and json.loads(text)["error"]["param"] == field)
    got, text, _ = post("/v1/completions", {"prompt": "a", "regex": "[a-c]{40}", "max_tokens": 16})
    check(f"names max_tokens: {text}", "max_tokens = 16: the grammar needs 40 tokens more" in json.loads(text)["error"]["message"])
    check("room for a form", len(texts("a", regex="[a-c]{40}")[0]) == 40)
    # What is too ambiguous, or longer than ever fits, is refused, and soon.
    long = {"grammar": "root ::= [a-z ] | [a-z ] root | [a-z ] root root", "max_tokens": 500, "logit_bias": {"3": -100}}  # 3: the end
    begin = time.time()
    for code, why, body in [
            (400, "so ambiguous", {"prompt": "a", **long, "temperature": 0}),
            (400, "so ambiguous", {"prompt": ["a"] * 8, **long, "seed": 1}),
            (413, "more than 131072", {"prompt": "\ufdfa" * 340000})]:
        got, text, _ = post("/v1/completions", json.dumps(body, ensure_ascii=False).encode())
        check(f"{str(body)[:80]}: {got} {text[:300]}", got == code and why in json.loads(text)["error"]["message"])
    check(f"soon: {time.time() - begin:.1f} s", time.time() - begin < 10)
    got, text, _ = post("/v1/completions", {"prompt": "a", "max_tokens": 2, "grammar": "root ::= " + " | ".join(f's "{c}"' for c in
                        "abcdefghijklmnopqrstuvwxyz" * 8) + '\ns ::= " "*'})
    check(f"many alternatives are not ambiguous: {got} {text[:300]}", got == 200)
    # Schemas are read as they were sent; what takes too much is refused at once.
    many = json.dumps({f"a{i}": {} for i in range(50000)})
    for schema, why in [
            ('{ "enum" : [1],\n "type" : "circle"} ', "line 2, column 11: is no type"), ('{"type": "null", "type": "null"}', "comes twice"),
            ('{"const": {"\\u0061": "}", "a": 1}}', "comes twice"), ("12345678901234567890123", "must be an object"),
            ('{"properties": %s}' % many, "limits.text = 65536"), ('{"type": "array", "minItems": 3000}', "limits.repetition = 2000")]:
        got, text, _ = post("/v1/completions", b'{"prompt": "a", "stop": ["{,\\""], "json\\u005fschema":' + schema.encode() + b"}")
        check(f"{schema[:80]}: {got} {text[:300]}", got == 400 and why in json.loads(text)["error"]["message"])


{"same": same, "same_texts": same_texts, "streams": streams, "logprobs": logprobs, "samples": samples, "stops": stops,
 "grammars": grammars, "many": many, "shared": shared, "leaves": leaves, "told": told,
 "remembers": remembers, "marks": marks, "chat": chat, "tools": tools, "thinks": thinks, "calls": calls, "formats": formats,
 "template": template, "own": own, "built_in": built_in, "many_messages": many_messages,
 "little_memory": little_memory, "tokens": tokens, "late": late,
 "bodies": bodies}[sys.argv[1]](*sys.argv[3:])
finish()

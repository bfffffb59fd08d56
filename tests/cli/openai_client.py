# SPDX-License-Identifier: Apache-2.0
"""OpenAI's own client at serve_llama with a drawn model: openai_client.py PORT, run by llama_serve.test.sh"""
import json
import sys
from typing import Literal

import openai
from pydantic import BaseModel

client = openai.OpenAI(base_url=f"http://127.0.0.1:{sys.argv[1]}/v1", api_key="none", max_retries=0, timeout=60)
failures = []


def check(what, good):
    if not good:
        failures.append(what)


class Color(BaseModel):
    color: Literal["red", "blue"]
    times: int


ASKED = [{"role": "user", "content": "a"}]
PAINT = {"type": "function", "function": {"name": "paint", "description": "paints", "parameters": Color.model_json_schema()}}

models = client.models.list().data
model = models[0].id
check(f"models: {models}", len(models) == 1 and client.models.retrieve(model).id == model)
always = {"model": model, "messages": ASKED, "max_tokens": 300, "temperature": 0}

# ---- completions ----
one = client.completions.create(model=model, prompt=["ab", "q"], max_tokens=12, temperature=0, logprobs=2)
check(f"two prompts: {one}", [choice.index for choice in one.choices] == [0, 1] and one.usage.total_tokens > one.usage.completion_tokens > 0)
check(f"logprobs: {one.choices[0].logprobs}", len(one.choices[0].logprobs.tokens) == len(one.choices[0].logprobs.token_logprobs) > 0)
pieces = client.completions.create(model=model, prompt="ab", max_tokens=12, temperature=0, stream=True)
streamed = "".join(chunk.choices[0].text for chunk in pieces)
check(f"streamed {streamed!r}, not {one.choices[0].text!r}", streamed == one.choices[0].text)
drawn = [client.completions.create(model=model, prompt="ab", max_tokens=12, seed=7, n=3) for _ in range(2)]
check("a seed", [choice.text for choice in drawn[0].choices] == [choice.text for choice in drawn[1].choices])

# ---- chats ----
whole = client.chat.completions.create(**always, logprobs=True, top_logprobs=3)
said = whole.choices[0]
check(f"a message: {said}", said.message.role == "assistant" and said.finish_reason in ("stop", "length"))
check(f"top_logprobs: {said.logprobs}", all(len(token.top_logprobs) == 3 for token in said.logprobs.content))
chunks = list(client.chat.completions.create(**always, stream=True, stream_options={"include_usage": True}))
text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
check(f"streamed {text!r}, not {said.message.content!r}", text == said.message.content and chunks[-1].usage == whole.usage)
parsed = client.chat.completions.parse(**always, response_format=Color).choices[0].message.parsed
check(f"parsed: {parsed}", isinstance(parsed, Color) and parsed.color in ("red", "blue"))
loose = client.chat.completions.create(**always, response_format={"type": "json_object"}).choices[0]
check(f"an object: {loose}", loose.finish_reason == "length" or isinstance(json.loads(loose.message.content), dict))

# ---- tools ----
call = client.chat.completions.create(**always, tools=[PAINT], tool_choice="required", parallel_tool_calls=False).choices[0]
made = call.message.tool_calls
check(f"a call: {call}", call.finish_reason == "tool_calls" and len(made) == 1 and made[0].function.name == "paint" and
      Color.model_validate_json(made[0].function.arguments))
with client.chat.completions.stream(**always, tools=[openai.pydantic_function_tool(Color, name="paint")], tool_choice="required",
                                    parallel_tool_calls=False) as stream:
    kinds = {event.type for event in stream}
    final = stream.get_final_completion().choices[0]
check(f"events: {kinds}", {"chunk", "tool_calls.function.arguments.delta", "tool_calls.function.arguments.done"} <= kinds)
check(f"a call, streamed: {final}", isinstance(final.message.tool_calls[0].function.parsed_arguments, Color))
told = [*ASKED, call.message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": made[0].id, "content": "done"}]
after = client.chat.completions.create(**{**always, "messages": told}).choices[0]
check(f"after a result: {after}", after.message.content is not None)

# ---- refused ----
for field, fields in [("temperature", {"temperature": 3}), ("tool_choice", {"tool_choice": "required"}), ("modalities", {"modalities": ["audio"]}),
                      ("response_format", {"response_format": {"type": "xml"}}), ("reasoning_effort", {"reasoning_effort": "low"})]:
    try:
        client.chat.completions.create(**{**always, **fields})
        check(f"not refused: {fields}", False)
    except openai.BadRequestError as error:
        check(f"{fields}: {error}", error.param == field)
try:
    client.chat.completions.create(**{**always, "model": "another"})
    check("another model", False)
except openai.NotFoundError:
    pass

for failure in failures:
    print(f"FAILED: {failure}"[:2000])
sys.exit(1 if failures else 0)

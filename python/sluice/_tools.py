# SPDX-License-Identifier: Apache-2.0
"""Calls of tools, read from what a model writes."""

from __future__ import annotations

import ctypes as C
import json
import weakref
from dataclasses import dataclass
from typing import Any, Literal

from ._library import CToolEvent, call, create, library, size_t, text_bytes


def json_text(value: Any, name: str) -> str:
    """A text of JSON as it is, and anything else as JSON."""
    try:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise TypeError(f"sluice: {name} = {value!r}: must be JSON: {error}") from None


@dataclass
class ToolCall:
    """A call that a model wrote."""

    name: str
    arguments: str = ""
    """JSON, as far as it was read."""
    finished: bool = False
    """Its end was read."""


@dataclass(frozen=True)
class ToolCallEvent:
    """What a text of tool calls says, piece by piece."""

    kind: Literal["content", "reasoning", "begun", "arguments", "ended"]
    """content: more of the text for the user; reasoning: of what the model thinks; begun: a call of the tool `text`;
    arguments: more of them, JSON; ended: the call is whole."""
    call: int
    """Its number, from 0; -1 before the first."""
    text: str


class ToolCallParser:
    """Reads calls from a model's output while it is written: docs/tool-calls.md.

    format
        How the model writes calls: the name that vLLM's --tool-call-parser has for it, as in Grammar.tool_calls.
    tools
        As there. The formats qwen3_coder and glm45 need them: schemas tell strings from other values.
    reasoning_end
        "</think>" where an output begins with what the model thinks, up to that mark; a <think> before it is left out. An output without the mark
        is all thought. None: there is no such beginning. With a mark, `format` may be None: there are no calls.

    Append what `Decoder.spelling` makes of tokens, as they come or all at once, and call finish() at the end. Both return what is new;
    `content`, `reasoning` and `calls` hold all of it. What may still become a mark waits. Python's json.loads reads the arguments of a
    call that is `finished`.
    """

    content: str
    """The text for the user."""
    reasoning: str
    """What the model thinks: up to `reasoning_end`, or what the format marks (openai)."""
    calls: list[ToolCall]

    def __init__(self, format: str | None, tools: str | list[Any] | None = None, *, reasoning_end: str | None = None):
        self.content, self.reasoning, self.calls = "", "", []
        self._handle = create("tool_parser_create", None if format is None else text_bytes(format, "format"),
                              None if tools is None else text_bytes(json_text(tools, "tools"), "tools"),
                              None if reasoning_end is None else text_bytes(reasoning_end, "reasoning_end"))
        weakref.finalize(self, library.sluice_tool_parser_free, self._handle)
        self._cut = b""  # the beginning of a character

    def append(self, text: str | bytes) -> list[ToolCallEvent]:
        """More of the output, which may be cut anywhere; returns what is new."""
        if not isinstance(text, (str, bytes)):
            raise TypeError(f"sluice: text = {text!r}: must be a string, or bytes")
        given = self._cut + (text.encode() if isinstance(text, str) else text)
        end = _whole_characters(given)
        self._cut = given[end:]
        return self._take("append", given[:end], end)

    def finish(self) -> list[ToolCallEvent]:
        """The output has ended; returns what is left of it."""
        rest, self._cut = self._cut, b""
        return (self._take("append", rest, len(rest)) if rest else []) + self._take("finish")

    def _take(self, name: str, *arguments: Any) -> list[ToolCallEvent]:
        seen, count = C.POINTER(CToolEvent)(), size_t()
        call("tool_parser_" + name, self._handle, *arguments, C.byref(seen), C.byref(count))
        events = []
        for one in seen[:count.value]:
            text = C.string_at(one.text, one.count).decode(errors="replace") if one.count else ""
            event = ToolCallEvent(one.kind.decode(), one.call, text)
            events.append(event)
            if event.kind == "content":
                self.content += text
            elif event.kind == "reasoning":
                self.reasoning += text
            elif event.kind == "begun":
                self.calls.append(ToolCall(text))
            elif event.kind == "arguments":
                self.calls[event.call].arguments += text
            else:
                self.calls[event.call].finished = True
        return events


def _whole_characters(text: bytes) -> int:
    """How many of the bytes are before a character of UTF-8 that is cut at the end."""
    for back in range(1, min(4, len(text) + 1)):
        byte = text[-back]
        if byte >= 0xC0:
            return len(text) - back if back < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4) else len(text)
        if byte < 0x80:
            break
    return len(text)

# SPDX-License-Identifier: Apache-2.0
"""What all searches share; rules: grammars, catalogues, boosted phrases and marks."""

from __future__ import annotations

import contextlib
import ctypes as C
import dataclasses
import enum
import json
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from ._library import (ArgumentError, CBiasedPhrase, CBiasOptions, CGrammarOptions, Over, Process, call, create, expect, library, listed, need_numpy, path_bytes,
                       real, size_t, text_bytes, token_array, whole)
from ._tools import json_text

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._model import State
    from .options import NoRepeatNgram, Penalties, Watermark

Phrase = Sequence[int]


@dataclass(frozen=True)
class Grammar:
    """Outputs must match it: guided (structured) decoding. The model needs `token_bytes`.

    `Grammar.gbnf(text)`, `Grammar.lark(text)`, `Grammar.regex(pattern)`, `Grammar.json_schema(schema)`, `Grammar.from_model(model)`,
    `Grammar.structural_tag(tag)` and `Grammar.tool_calls(tools)` make one; docs/structure.md says what they accept. It is compiled once for each model that meets it, and checked then.
    """

    kind: str
    """"gbnf", "lark", "regex", "json_schema", "structural_tag", "tool_calls" or "compiled"."""
    text: str
    behind_space: bool = False
    """A leading space of the output is not part of the text that must match."""
    white_space: int = 0
    """For json_schema: at most this many where JSON allows some; 0: compact, -1: any number."""
    longest: bool = False
    """Forced text is spelt with the longest tokens; else with any."""
    options: str = ""
    """For json_schema: a JSON object of further options."""
    grammars: tuple[tuple[str, Grammar], ...] = ()
    """For gbnf and lark: rules that the text calls by name and does not define."""
    data: bytes = b""
    """For compiled: what `Decoder.to_bytes` gave."""

    @classmethod
    def from_bytes(cls, data: bytes, *, longest: bool = False) -> Grammar:
        """A grammar that was compiled before: what `Decoder.to_bytes` gave, for any model. Damaged or other bytes are refused."""
        return cls("compiled", "", longest=longest, data=bytes(data))

    @classmethod
    def gbnf(cls, text: str, *, grammars: Mapping[str, Grammar] | None = None, behind_space: bool = False, longest: bool = False) -> Grammar:
        """A grammar in the notation of llama.cpp (GBNF) or xgrammar (EBNF).

        `grammars`: rules that it calls by name and does not define, in any notation: `gbnf('root ::= "at " time', grammars={"time": Grammar.regex(...)})`.
        """
        return cls("gbnf", text, behind_space=behind_space, longest=longest, grammars=_named(grammars))

    @classmethod
    def lark(cls, text: str, *, grammars: Mapping[str, Grammar] | None = None, behind_space: bool = False, longest: bool = False) -> Grammar:
        """A grammar in Lark's syntax, with what llguidance adds to it: %json, tokens, attributes of rules. It calls `grammars` as `@name`."""
        return cls("lark", text, behind_space=behind_space, longest=longest, grammars=_named(grammars))

    @classmethod
    def regex(cls, pattern: str, *, behind_space: bool = False, longest: bool = False) -> Grammar:
        """A regular expression that all of the output must match."""
        return cls("regex", pattern, behind_space=behind_space, longest=longest)

    @classmethod
    def json_schema(cls, schema: str | dict[str, Any] | bool, *, white_space: int = 0, behind_space: bool = False,
                    longest: bool = False, options: dict[str, Any] | None = None) -> Grammar:
        """JSON that is valid under a schema: its text, or what `json.loads` makes of it.

        `options`: more of how it is written, named as in docs/structure.md: `{"indent": 2, "order": "any", "lenient": True}`.
        """
        more = "" if options is None else json_text(options, "options")
        return cls("json_schema", json_text(schema, "schema"), behind_space=behind_space, white_space=white_space, longest=longest, options=more)

    @classmethod
    def from_model(cls, model: Any, *, white_space: int = 0, behind_space: bool = False, longest: bool = False,
                   options: dict[str, Any] | None = None) -> Grammar:
        """JSON that a class of pydantic reads: whatever has `model_json_schema()`. Options are those of `json_schema`."""
        schema = getattr(model, "model_json_schema", None)
        if not callable(schema):
            raise TypeError(f"sluice: model = {model!r}: must be a class with model_json_schema(), as pydantic's BaseModel has it")
        return cls.json_schema(schema(), white_space=white_space, behind_space=behind_space, longest=longest, options=options)

    @classmethod
    def structural_tag(cls, tag: str | dict[str, Any], *, behind_space: bool = False, longest: bool = False) -> Grammar:
        """Free text in which triggers open structure, in the JSON of xgrammar's and vLLM's `structural_tag`."""
        return cls("structural_tag", json_text(tag, "tag"), behind_space=behind_space, longest=longest)

    @classmethod
    def tool_calls(cls, tools: str | list[Any], format: str = "hermes", *, tool_choice: str | dict[str, Any] = "auto",
                   parallel_tool_calls: bool = True, behind_space: bool = False, longest: bool = False) -> Grammar:
        """What a model writes that may, must or must not call tools, whose arguments obey their schemas: docs/tool-calls.md.

        tools
            As in OpenAI's requests: [{"type": "function", "function": {"name": ..., "parameters": ...}}, ...].
        format
            How the model writes calls: the name that vLLM's --tool-call-parser has for it (llama3_json, hermes, qwen3_coder,
            deepseek_v3, deepseek_v31, mistral, kimi_k2, glm45, openai), or mistral_v11.
        tool_choice
            "auto": text, calls, or text and then calls; "required": calls; "none": text; or the tool to call,
            {"type": "function", "function": {"name": ...}}.
        parallel_tool_calls
            Several calls may come.
        """
        given = json_text(tools, "tools")
        try:
            listed_tools = json.loads(given)
        except ValueError as error:
            raise ArgumentError(f"sluice: tools: must be JSON: {error}") from None
        fields = {"format": format, "tools": listed_tools, "tool_choice": tool_choice, "parallel_tool_calls": bool(parallel_tool_calls)}
        return cls("tool_calls", json_text(fields, "tool_choice"), behind_space=behind_space, longest=longest)

    def _create(self, owner: int, how: str = "grammar_create") -> int:
        """A handle, for a model or, by `how`, for a decoder of frames."""
        options = CGrammarOptions(size=C.sizeof(CGrammarOptions), behind_space=bool(self.behind_space),
                                  white_space=whole(self.white_space, "white_space"), longest=bool(self.longest),
                                  json=text_bytes(self.options, "options") if self.options else None)
        inner: list[int] = []
        try:
            for _, one in self.grammars:
                inner.append(one._create(owner, how))
            count = len(inner)
            if count:
                options.grammar_names = (C.c_char_p * count)(*(text_bytes(name, "grammars") for name, _ in self.grammars))
                options.grammars = (C.c_void_p * count)(*inner)
                options.grammar_count = count
            if self.kind == "compiled":
                options.bytes, options.byte_count = self.data, len(self.data)
            text = None if self.kind == "compiled" else text_bytes(self.text, self.kind)
            return create(how, owner, text_bytes(self.kind, "kind"), text, C.byref(options))
        finally:
            for handle in inner:
                library.sluice_grammar_free(handle)


def _named(grammars: Mapping[str, Grammar] | None) -> tuple[tuple[str, Grammar], ...]:
    if grammars is None:
        return ()
    expect(grammars, Mapping, "grammars", '{"name": Grammar.regex(...)}')
    return tuple((name, expect(one, Grammar, f"grammars[{name!r}]", "Grammar.regex(...)")) for name, one in grammars.items())


class Catalogue:
    """Outputs must be one of its sequences of tokens: generative retrieval; docs/catalogues.md.

    `Catalogue(sequences)` takes different sequences in any order. `Catalogue.open(file)` maps a file of `build_catalogue`, whose
    memory processes share.
    """

    def __init__(self, sequences: Iterable[Sequence[int]]):
        tokens: list[int] = []
        lengths: list[int] = []
        for i, sequence in enumerate(listed(sequences, "sequences", "sequences of tokens")):
            before = len(tokens)
            tokens += listed(sequence, f"sequences[{i}]", "tokens")
            if len(tokens) == before:
                raise ArgumentError(f"sluice: sequences[{i}] = []: must not be empty")
            lengths.append(len(tokens) - before)
        array, _ = token_array(tokens, "sequences")
        self._own(create("catalogue_create", array, (size_t * len(lengths))(*lengths), len(lengths)))

    @classmethod
    def open(cls, file: str | os.PathLike[str]) -> Catalogue:
        """The catalogue in a file. It must not change while it is used."""
        made = cls.__new__(cls)
        made._own(create("catalogue_open", path_bytes(file)))
        return made

    def _own(self, handle: int) -> None:
        self._handle = handle
        weakref.finalize(self, library.sluice_catalogue_free, handle)


@dataclass(frozen=True, kw_only=True)
class BiasedPhrase:
    """A phrase that outputs should rather contain, in tokens, with its boost."""

    spellings: Sequence[Phrase]
    """Any of these counts as the phrase: cases, with and without the space before it, other cuts of a tokenizer."""
    boost: float = 1.0
    """In nats: what the phrase adds to the log-probability of an output."""
    per_token: bool = False
    """Each of its tokens adds the boost; else the whole phrase."""


class Bias:
    """Outputs that contain its phrases score more: hotwords, contextual biasing; docs/biasing.md.

    `Bias([([5, 6], 3.0), BiasedPhrase(spellings=[[7], [8, 9]], boost=2.0)])` takes phrases, or pairs of tokens and boost. `once`:
    each is paid only the first time that it occurs. `matches`: "all", "longest" or "first". `lead`: beginnings of so many tokens
    are lent nothing yet. Any number of searches may share one.
    """

    _matches = ("all", "longest", "first")

    def __init__(self, phrases: Iterable[BiasedPhrase | tuple[Phrase, float]], *, once: bool = False, matches: str = "all",
                 lead: int = 0):
        if matches not in self._matches:
            raise ArgumentError(f"sluice: matches = {matches!r}: must be one of " + ", ".join(self._matches))
        made, arrays = [], []
        for i, one in enumerate(listed(phrases, "phrases", "BiasedPhrase(...), or of pairs of tokens and boost")):
            name = f"phrases[{i}]"
            if not isinstance(one, BiasedPhrase):
                pair = listed(one, name, "two: tokens and a boost")
                if len(pair) != 2:
                    raise TypeError(f"sluice: {name} = {one!r}: must be BiasedPhrase(...), or a pair of tokens and boost")
                one = BiasedPhrase(spellings=[pair[0]], boost=pair[1])
            spellings = [listed(spelling, f"{name}.spellings", "lists of tokens")
                         for spelling in listed(one.spellings, f"{name}.spellings", "lists of tokens")]
            lengths = (size_t * len(spellings))(*map(len, spellings))
            tokens, _ = token_array([token for spelling in spellings for token in spelling], f"{name}.spellings")
            arrays.append((lengths, tokens))  # alive until the call
            made.append(CBiasedPhrase(tokens, lengths, len(lengths), real(one.boost, f"{name}.boost"), bool(one.per_token)))
        options = CBiasOptions(size=C.sizeof(CBiasOptions), matches=self._matches.index(matches), once=bool(once),
                               lead=whole(lead, "lead"))
        self._handle = create("bias_create", (CBiasedPhrase * len(made))(*made), len(made), C.byref(options))
        weakref.finalize(self, library.sluice_bias_free, self._handle)


def _no_penalties() -> Penalties:
    from .options import Penalties
    return Penalties()


def _no_ngrams() -> NoRepeatNgram:
    from .options import NoRepeatNgram
    return NoRepeatNgram()


@dataclass(kw_only=True)
class Search:
    """What all searches have: the rules that their outputs obey. Use Greedy, BeamSearch, DiverseBeamSearch, Sample,
    StochasticBeam, ParticleSample or Blockwise.
    """

    forbidden: Sequence[Phrase] = ()
    """Phrases that no output contains (Forbidden)."""
    demanded: Sequence[Phrase] = ()
    """Phrases that every output contains (ConstrainedBeamSearch): for BeamSearch."""
    penalties: Penalties = field(default_factory=_no_penalties)
    """For tokens that have occurred before."""
    no_repeat_ngram: NoRepeatNgram = field(default_factory=_no_ngrams)
    """No n-gram occurs twice in an output."""
    grammar: Grammar | None = None
    """Outputs match it (Structured). ParticleSample is weighted by it, all others masked."""
    catalogue: Catalogue | None = None
    """Outputs are sequences of it (InCatalogue)."""
    bias: Bias | None = None
    """Outputs with its phrases score more (Biased)."""
    watermark: Watermark | None = None
    """Marks in outputs, which detect_watermark() finds: Sample draws with any scheme, all others take green lists (GreenList)."""
    logits_processors: Sequence[Callable[[list[int], Any], Any]] = ()
    """Functions of the output so far and the scores of the next token, an array [V] that they change, or return another one: as vLLM's, and
    Hugging Face's for one row. The model's scores (Sample, or stage "before_softmax"), or log-probabilities. Called once a row, behind all that is above. What one
    raises ends its request. `generate` takes those of transformers."""
    stop: Sequence[str | bytes] = ()
    """Strings that end an output, wherever they begin and end within tokens (StopSequences). The model needs `token_bytes`."""
    stop_tokens: Sequence[Phrase] = ()
    """Sequences of tokens that end an output."""
    stopping_criteria: Sequence[Callable[[list[int]], Any]] = ()
    """Functions of the output so far that say whether it is over with its last token. Beams with `stop_at_once` call them for candidates. What one
    raises ends its request. `generate` takes those of transformers."""
    stop_minimum: int = 0
    """The number of output tokens from which on a stop counts."""

    _options: ClassVar[dict[str, str]] = {}
    _kind: ClassVar[str] = ""

    def replace(self, **changes: Any) -> Self:
        """A copy with some of the options changed."""
        return dataclasses.replace(self, **changes)

    def _stop_bytes(self) -> list[bytes]:
        made = listed(self.stop, "stop", "strings")
        for text in made:
            if not isinstance(text, (str, bytes)):
                raise TypeError(f"stop = {text!r}: must be a string, or bytes")
            if not text:
                raise ArgumentError(f"sluice: stop = {self.stop!r}: a string must not be empty")
        return [text.encode() if isinstance(text, str) else text for text in made]

    def _create(self, compile_grammar: Callable[[Grammar], int], state: State) -> SearchHandle:
        if not self._kind:
            raise TypeError("sluice: Search is no search of its own: use Greedy, BeamSearch, Sample, StochasticBeam, ParticleSample or "
                            "Blockwise")
        made = SearchHandle(create("search_create", self._kind.encode()))
        _set_all(made.handle, self)
        for phrase in listed(self.forbidden, "forbidden", "sequences of tokens"):
            call("search_forbid", made.handle, *token_array(phrase, "forbidden"))
        for phrase in listed(self.demanded, "demanded", "sequences of tokens"):
            if self._kind != "beam":
                raise ArgumentError(f"sluice: demanded = {self.demanded!r}: only a beam takes phrases that must come")
            call("search_demand", made.handle, *token_array(phrase, "demanded"))
        if self.grammar is not None:
            call("search_obey", made.handle, compile_grammar(self.grammar))
        if self.catalogue is not None:
            expect(self.catalogue, Catalogue, "catalogue", "Catalogue(sequences), or Catalogue.open(file)")
            call("search_choose", made.handle, self.catalogue._handle)
        if self.bias is not None:
            expect(self.bias, Bias, "bias", "Bias(phrases)")
            call("search_prefer", made.handle, self.bias._handle)
        if self.watermark is not None:
            with watermark_handle(self.watermark) as marks:
                call("search_mark", made.handle, marks)
        for i, processor in enumerate(listed(self.logits_processors, "logits_processors", "functions of tokens and scores")):
            made.kept.append(_process(processor, f"logits_processors[{i}]", state))
            call("search_process", made.handle, made.kept[-1], None)
        for phrase in listed(self.stop_tokens, "stop_tokens", "sequences of tokens"):
            tokens, count = token_array(phrase, "stop_tokens")
            if count == 0:
                raise ArgumentError("sluice: stop_tokens = []: must not be empty")
            call("search_stop", made.handle, tokens, count)
        for i, criterion in enumerate(listed(self.stopping_criteria, "stopping_criteria", "functions of tokens")):
            made.kept.append(_over(criterion, f"stopping_criteria[{i}]", state))
            call("search_stop_when", made.handle, made.kept[-1], None)
        for text in self._stop_bytes():
            call("search_stop_text", made.handle, text, len(text))
        if isinstance(self.stop_minimum, (int, float)) and self.stop_minimum < 0:
            raise ArgumentError(f"sluice: stop_minimum = {self.stop_minimum!r}: must not be negative")
        if self.stop_minimum != 0:
            _set("search_set", made.handle, "stop_minimum", self.stop_minimum, 0, "stop_minimum")
        return made


class SearchHandle:
    """A sluice_search, freed with this object."""

    def __init__(self, handle: int):
        self.handle = handle
        self.kept: list[Any] = []  # what the library calls
        weakref.finalize(self, library.sluice_search_free, handle)


def _process(processor: Any, name: str, state: State) -> Any:
    """A processor as the library calls it."""
    if not callable(processor):
        raise TypeError(f"sluice: {name} = {processor!r}: must be a function of tokens and scores")
    numpy = need_numpy("logits_processors")

    def process(_user: Any, tokens: Any, count: int, scores: Any, size: int) -> int:
        try:
            if state.stopped_by is not None:
                return -1
            line = numpy.ctypeslib.as_array(scores, (size,))
            answer = processor(tokens[:count] if count else [], line)
            if answer is not None and answer is not line:
                answer = numpy.asarray(answer)
                if answer.shape != line.shape:
                    raise ValueError(f"{name} returned an array of shape {answer.shape}: must be {line.shape}")
                line[:] = answer
            return 0
        except BaseException as error:
            return state.failed(error)

    return Process(process)


def _over(criterion: Any, name: str, state: State) -> Any:
    """A stopping criterion as the library calls it."""
    if not callable(criterion):
        raise TypeError(f"sluice: {name} = {criterion!r}: must be a function of tokens")

    def over(_user: Any, tokens: Any, count: int) -> int:
        try:
            return 2 if state.stopped_by is not None else 1 if criterion(tokens[:count] if count else []) else 0
        except BaseException as error:
            return state.failed(error)

    return Over(over)


@contextlib.contextmanager
def watermark_handle(watermark: Watermark) -> Iterator[int]:
    """A sluice_watermark, freed at the end."""
    from .options import Watermark, WatermarkScheme
    if not isinstance(watermark, Watermark):
        raise TypeError(f"watermark: a {type(watermark).__name__}: must be Watermark(...)")  # what it is may be a secret
    usual, key = Watermark(), watermark.key
    if key is not None and not hasattr(key, "_is_watermark_key"):
        raise TypeError("watermark.key: must be a WatermarkKey")
    scheme = WatermarkScheme(int(_number(watermark.scheme, usual.scheme, "watermark.scheme")))
    handle = create("watermark_create", scheme.name.encode(), None if key is None else key._handle)
    try:
        for name, c_name in watermark._options.items():
            _set("watermark_set", handle, c_name, getattr(watermark, name), getattr(usual, name), f"watermark.{name}")
        yield handle
    finally:
        library.sluice_watermark_free(handle)


_default_searches: dict[type, Any] = {}


def _set_all(handle: int, search: Search) -> None:
    """Sets what differs from what a new search of the library has."""
    _set_members(handle, search, "")


def _set_members(handle: int, search: Search, within: str) -> None:
    default = _default_searches.setdefault(type(search), type(search)())
    for member in dataclasses.fields(search):
        name, value, usual = member.name, getattr(search, member.name), getattr(default, member.name)
        if isinstance(usual, Search):  # the search of each group
            if type(value) is not type(usual):
                raise TypeError(f"{name} = {value!r}: must be {type(usual).__name__}(...)")
            for rule in (*(one.name for one in dataclasses.fields(Search)), "n_best"):
                if getattr(value, rule) != getattr(type(usual)(), rule):
                    raise ArgumentError(f"sluice: {name}.{rule} = {getattr(value, rule)!r}: is for all groups: set {type(search).__name__}.{rule}")
            _set_members(handle, value, f"{name}.")
        elif hasattr(usual, "_options"):  # options within options
            if type(value) is not type(usual):
                raise TypeError(f"{within}{name} = {value!r}: must be {type(usual).__name__}(...)")
            if value != usual:
                for its, c_name in value._options.items():
                    _set("search_set", handle, c_name, getattr(value, its), getattr(type(usual)(), its), f"{within}{name}.{its}")
        elif name in search._options and value != usual:
            _set("search_set", handle, search._options[name], value, usual, within + name)


def _set(function: str, handle: int, c_name: str, value: Any, usual: Any, name: str) -> None:
    """Sets an option; an error names it as it is called here."""
    number = _number(value, usual, name)
    try:
        call(function, handle, c_name.encode(), number)
    except ArgumentError as error:
        raise ArgumentError(str(error).replace(f"sluice: {c_name} = ", f"sluice: {name} = ", 1)) from None


def _number(value: Any, usual: Any, name: str) -> float:
    """What stands for an option in C; `usual`: its default, which has its type."""
    if isinstance(usual, enum.Enum):
        kind = type(usual)
        if isinstance(value, str) and value in kind.__members__:
            return float(kind[value].value)
        if isinstance(value, kind):
            return float(value.value)
        raise ArgumentError(f"sluice: {name} = {value!r}: must be one of " + ", ".join(kind.__members__))
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} = {value!r}: must be a number") from None
    except OverflowError:
        raise ArgumentError(f"sluice: {name} = {value!r}: is too large") from None

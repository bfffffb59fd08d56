# SPDX-License-Identifier: Apache-2.0
"""The C library and its structs: include/sluice/c/sluice.h, in ctypes. A test compares the two."""

from __future__ import annotations

import array
import ctypes as C
import os
import pathlib
import sys
from typing import Any

from ._processor import runs_v3

i32, u64, size_t, void_p = C.c_int32, C.c_uint64, C.c_size_t, C.c_void_p
Tokens = C.POINTER(i32)

ABI_VERSION = 1
RAGGED, BLOCKS, ROLL_BACK = 1, 2, 4
OK, BAD_ARGUMENT, REFUSED, FAILED = range(4)


class Error(Exception):
    """What the library refuses, or cannot do."""


class ArgumentError(Error, ValueError):
    """An argument that cannot be: the message names it and its value."""


class RefusedError(Error):
    """A server's queue is full, or it has closed."""


def _struct(name: str, **fields: Any) -> Any:
    return type(name, (C.Structure,), {"_fields_": [(key.rstrip("_"), kind) for key, kind in fields.items()]})


CRow = _struct("sluice_row", from_=i32, to=i32, length=i32, lines=i32, tokens=void_p, count=size_t)
CDraft = _struct("sluice_draft", slot=i32, length=i32, pending=Tokens, pending_count=size_t, guesses=Tokens, wanted=size_t,
                 made=size_t)
CBytes = _struct("sluice_bytes", data=C.c_char_p, count=size_t)

# Structs that come as arrays are passed by address.
Start = C.CFUNCTYPE(C.c_int, void_p, size_t, C.POINTER(void_p), Tokens)
StepView = C.CFUNCTYPE(C.c_int, void_p, size_t, void_p, C.POINTER(void_p), C.POINTER(size_t))
Over = C.CFUNCTYPE(C.c_int, void_p, Tokens, size_t)
Process = C.CFUNCTYPE(C.c_int, void_p, Tokens, size_t, C.POINTER(C.c_float), size_t)
Release = C.CFUNCTYPE(None, void_p, size_t, Tokens)
SourceLength = C.CFUNCTYPE(i32, void_p, void_p)
Propose = C.CFUNCTYPE(C.c_int, void_p, size_t, C.POINTER(CDraft))

Frames = C.CFUNCTYPE(i32, void_p, void_p)
Parts = C.CFUNCTYPE(C.c_int, void_p, size_t, void_p)

CModelFunctions = _struct(
    "sluice_model_functions", size=size_t, vocabulary=i32, bos=i32, eos=Tokens, eos_count=size_t, never=Tokens,
    never_count=size_t, abilities=i32, log_probs=i32, max_slots=i32, max_length=i32, user=void_p, start=Start, step=void_p,
    release=Release, source_length=SourceLength, destroy=void_p, propose=Propose, lookup=i32, reserved=i32, step_view=StepView)
CGrammarOptions = _struct("sluice_grammar_options", size=size_t, behind_space=i32, white_space=i32, longest=i32, reserved=i32,
                          json=C.c_char_p, grammar_names=C.POINTER(C.c_char_p), grammars=C.POINTER(void_p), grammar_count=size_t,
                          bytes=C.c_char_p, byte_count=size_t)
CToolEvent = _struct("sluice_tool_event", kind=C.c_char_p, call=i32, reserved=i32, text=void_p, count=size_t)
CBiasedPhrase = _struct("sluice_biased_phrase", tokens=Tokens, lengths=C.POINTER(size_t), spellings=size_t, boost=C.c_float,
                        per_token=i32)
CBiasOptions = _struct("sluice_bias_options", size=size_t, matches=i32, once=i32, lead=i32, reserved=i32)
CNgramOptions = _struct("sluice_ngram_options", size=size_t, vocabulary=i32, bos=i32, eos=Tokens, eos_count=size_t, never=Tokens,
                        never_count=size_t, words=Tokens, bytes=C.POINTER(CBytes), unknown=C.c_double)
CFusedOptions = _struct("sluice_fused_options", size=size_t, word_bonus=C.c_double, words=Tokens, word_count=size_t, tokens=Tokens,
                        token_count=size_t, unknown=Tokens, unknown_log_prob=C.c_double, normalise=i32, reserved=i32)
CDetectionOptions = _struct("sluice_detection_options", size=size_t, mask=C.c_char_p, mask_count=size_t, window=i32, reserved=i32)
CWatermarkWindow = _struct("sluice_watermark_window", begin=i32, end=i32, scored=i32, reserved=i32, score=C.c_double,
                           p_value=C.c_double)
CWatermarkDetection = _struct("sluice_watermark_detection", tokens=i32, scored=i32, masked=i32, repeated=i32, score=C.c_double,
                              expected=C.c_double, p_value=C.c_double, windows=C.POINTER(CWatermarkWindow), window_count=size_t,
                              windows_p_value=C.c_double)
CSuffixOptions = _struct("sluice_suffix_options", size=size_t, shortest=i32, samples=i32, factor=C.c_double,
                         least=C.POINTER(C.c_double), not_own=i32, reserved=i32)
CCtcOptions = _struct("sluice_ctc_options", size=size_t, labels=i32, blank=i32, log_probs=i32, reserved=i32, texts=C.POINTER(CBytes),
                      separators=Tokens, separator_count=size_t, words=C.POINTER(CBytes), tokens=Tokens, lengths=C.POINTER(size_t),
                      spellings=size_t, ngrams=void_p, ngram_words=Tokens, weight=C.POINTER(C.c_double), bonus=C.c_double,
                      unknown=C.c_double, model=void_p, model_tokens=Tokens)
CCtcMatrix = _struct("sluice_ctc_matrix", scores=void_p, frames=size_t, stride=size_t)
CPredictorRow = _struct("sluice_predictor_row", from_=i32, to=i32, label=i32)
CJoinerRow = _struct("sluice_joiner_row", utterance=i32, frame=i32, state=i32)
CTransducerFunctions = _struct(
    "sluice_transducer_functions", size=size_t, labels=i32, blank=i32, durations=Tokens, duration_count=size_t, blanks=Tokens,
    blank_frames=Tokens, blank_count=size_t, label_frames=i32, log_probs=i32, user=void_p, frames=Frames, start=Start, predict=Parts,
    join=StepView, release=Release, destroy=void_p)
CFramesWord = _struct("sluice_frames_word", begin=i32, end=i32, first_frame=i32, end_frame=i32, spelling=i32, confidence=C.c_float)
CFramesHypothesis = _struct("sluice_frames_hypothesis", tokens=Tokens, frames=Tokens, log_probs=C.POINTER(C.c_float), count=size_t,
                         log_prob=C.c_double, score=C.c_double, words=void_p, word_count=size_t)
CFramesResult = _struct("sluice_frames_result", failure=C.c_char_p, message=C.c_char_p, hypotheses=C.POINTER(CFramesHypothesis), count=size_t,
                     frames=i32, reserved=i32)
CRequest = _struct("sluice_request", size=size_t, source=void_p, prompt=Tokens, prompt_count=size_t, prefix=Tokens,
                   prefix_count=size_t, search=void_p, seed=C.POINTER(u64), trace=void_p, forget=i32, reserved=i32)
CHypothesis = _struct("sluice_hypothesis", tokens=Tokens, log_probs=C.POINTER(C.c_float), count=size_t, log_prob=C.c_double,
                      score=C.c_double, finished=i32, constraints_met=i32, constraints_total=i32, stop=i32,
                      blocks=Tokens, block_count=size_t)
CResult = _struct("sluice_result", id=u64, failure=C.c_char_p, message=C.c_char_p, hypotheses=C.POINTER(CHypothesis),
                  count=size_t, weights=C.POINTER(C.c_double), log_z=C.c_double, log_z_error=C.c_double)
Done = C.CFUNCTYPE(None, void_p, C.POINTER(CResult))
Delta = C.CFUNCTYPE(None, void_p, u64, Tokens, size_t)
CDelivery = _struct("sluice_delivery", size=size_t, user=void_p, done=Done, delta=Delta, seconds=C.c_double)

_FUNCTIONS = {  # those that return a status, by their argument types
    "model_create": [C.POINTER(CModelFunctions), C.POINTER(void_p)],
    "model_set_bytes": [void_p, C.POINTER(CBytes), size_t],
    "model_set_token_names": [void_p, Tokens, C.POINTER(CBytes), size_t],
    "search_create": [C.c_char_p, C.POINTER(void_p)],
    "search_set": [void_p, C.c_char_p, C.c_double],
    "search_demand": [void_p, Tokens, size_t],
    "search_forbid": [void_p, Tokens, size_t],
    "search_stop": [void_p, Tokens, size_t],
    "search_stop_text": [void_p, C.c_char_p, size_t],
    "search_text": [void_p, void_p, C.POINTER(CHypothesis), i32, C.c_char_p, size_t, C.POINTER(size_t)],
    "grammar_ignored": [void_p, C.POINTER(C.POINTER(CBytes)), C.POINTER(size_t)],
    "search_obey": [void_p, void_p],
    "search_prefer": [void_p, void_p],
    "bias_create": [C.POINTER(CBiasedPhrase), size_t, C.POINTER(CBiasOptions), C.POINTER(void_p)],
    "search_process": [void_p, Process, void_p],
    "search_stop_when": [void_p, Over, void_p],
    "search_choose": [void_p, void_p],
    "grammar_to_bytes": [void_p, C.c_char_p, size_t, C.POINTER(size_t)],
    "grammar_captures": [void_p, Tokens, size_t, C.POINTER(C.POINTER(CBytes)), C.POINTER(C.POINTER(CBytes)), C.POINTER(size_t)],
    "grammar_create": [void_p, C.c_char_p, C.c_char_p, C.POINTER(CGrammarOptions), C.POINTER(void_p)],
    "tool_parser_create": [C.c_char_p, C.c_char_p, C.c_char_p, C.POINTER(void_p)],
    "tool_parser_append": [void_p, C.c_char_p, size_t, C.POINTER(C.POINTER(CToolEvent)), C.POINTER(size_t)],
    "tool_parser_finish": [void_p, C.POINTER(C.POINTER(CToolEvent)), C.POINTER(size_t)],
    "catalogue_open": [C.c_char_p, C.POINTER(void_p)],
    "catalogue_create": [Tokens, C.POINTER(size_t), size_t, C.POINTER(void_p)],
    "watermark_key_open": [C.c_char_p, C.POINTER(void_p)],
    "watermark_key_create": [C.POINTER(u64), size_t, C.POINTER(void_p)],
    "watermark_key_from_bytes": [C.c_char_p, size_t, C.POINTER(void_p)],
    "watermark_key_write_new": [C.c_char_p, size_t, C.POINTER(void_p)],
    "watermark_create": [C.c_char_p, void_p, C.POINTER(void_p)],
    "watermark_set": [void_p, C.c_char_p, C.c_double],
    "search_mark": [void_p, void_p],
    "detect_watermark": [void_p, Tokens, size_t, C.POINTER(CDetectionOptions), C.POINTER(C.POINTER(CWatermarkDetection))],
    "suffix_cache_create": [C.c_int64, i32, C.POINTER(void_p)],
    "suffix_cache_save": [void_p, C.c_char_p],
    "suffix_cache_load": [void_p, C.c_char_p],
    "suffix_cache_insert": [void_p, Tokens, size_t, Tokens, size_t],
    "suffix_cache_clear": [void_p],
    "model_remember": [void_p, void_p, C.POINTER(CSuffixOptions), C.POINTER(void_p)],
    "ngrams_open": [C.c_char_p, C.POINTER(void_p)],
    "ngrams_find": [void_p, C.POINTER(CBytes), size_t, Tokens],
    "ngrams_spelling": [void_p, i32, C.POINTER(CBytes)],
    "ngrams_score": [void_p, Tokens, size_t, C.POINTER(C.c_double)],
    "ngrams_model": [void_p, C.POINTER(CNgramOptions), C.POINTER(void_p)],
    "model_fuse": [void_p, void_p, C.c_double, C.POINTER(CFusedOptions), C.POINTER(void_p)],
    "ctc_create": [C.POINTER(CCtcOptions), C.POINTER(void_p)],
    "ctc_grammar": [void_p, C.c_char_p, C.c_char_p, C.POINTER(CGrammarOptions), C.POINTER(void_p)],
    "ctc_decode": [void_p, void_p, C.POINTER(CCtcMatrix), size_t, size_t, C.POINTER(void_p)],
    "ctc_stream_create": [void_p, void_p, C.POINTER(void_p)],
    "ctc_stream_append": [void_p, C.POINTER(CCtcMatrix), i32, Tokens],
    "ctc_stream_settled": [void_p, C.POINTER(Tokens), C.POINTER(size_t)],
    "ctc_stream_result": [void_p, C.POINTER(C.POINTER(CFramesResult))],
    "ctc_stream_next": [void_p],
    "ctc_align": [void_p, C.POINTER(CCtcMatrix), Tokens, size_t, Tokens, C.POINTER(C.c_double), C.POINTER(C.c_double)],
    "transducer_create": [C.POINTER(CTransducerFunctions), C.POINTER(void_p)],
    "transducer_decode": [void_p, void_p, void_p, C.POINTER(void_p), size_t, size_t, C.POINTER(void_p)],
    "transducer_stream": [void_p, void_p, void_p, void_p, C.POINTER(void_p)],
    "trace_create": [C.c_char_p, C.POINTER(void_p)],
    "trace_lines": [void_p, C.POINTER(CBytes)],
    "trace_page": [void_p, C.POINTER(CBytes)],
    "decode": [void_p, void_p, C.POINTER(CRequest), size_t, size_t, C.POINTER(void_p)],
    "server_create": [void_p, void_p, size_t, size_t, C.POINTER(void_p)],
    "server_submit": [void_p, C.POINTER(CRequest), C.POINTER(CDelivery), C.POINTER(u64)],
    "server_cancel": [void_p, u64],
    "server_close": [void_p],
    "server_drain": [void_p],
}


def _path() -> str:
    """The library of SLUICE_LIBRARY, or one beside this file, or the system's."""
    if given := os.environ.get("SLUICE_LIBRARY"):
        return given
    folder = pathlib.Path(__file__).parent
    name = {"darwin": "libsluice.dylib", "win32": "sluice.dll"}.get(sys.platform, "libsluice.so.1")
    quick, any_processor = folder / "libsluice-v3.so.1", folder / name
    if quick.exists() and runs_v3():
        return str(quick)
    if quick.exists() and not any_processor.exists():
        raise ImportError("sluice: this wheel was compiled on another machine, for processors with AVX2 alone: install it again here, or "
                          "build it with SLUICE_LEVELS=all")
    return str(any_processor) if any_processor.exists() else name


def _load() -> C.CDLL:
    path = _path()
    try:
        loaded = C.CDLL(path)
    except OSError as error:
        raise ImportError(f"sluice: no library: {error}. Install the wheel, or set SLUICE_LIBRARY to libsluice.so.1") from error
    if not hasattr(loaded, "sluice_abi_version") or loaded.sluice_abi_version() < ABI_VERSION:
        raise ImportError(f"sluice: {path} is older than this package, which needs version {ABI_VERSION} of its interface")
    for name, arguments in _FUNCTIONS.items():
        function = getattr(loaded, "sluice_" + name)
        function.argtypes, function.restype = arguments, i32
    for name in ("model_free", "search_free", "bias_free", "grammar_free", "tool_parser_free", "catalogue_free", "ngrams_free", "trace_free",
                 "results_free", "server_free", "watermark_key_free", "watermark_free", "watermark_detection_free",
                 "suffix_cache_free", "ctc_free", "frames_results_free", "ctc_stream_free",
                 "transducer_free"):
        function = getattr(loaded, "sluice_" + name)
        function.argtypes, function.restype = [void_p], None
    loaded.sluice_last_error.restype = loaded.sluice_version.restype = C.c_char_p
    loaded.sluice_results_at.argtypes, loaded.sluice_results_at.restype = [void_p, size_t], C.POINTER(CResult)
    loaded.sluice_frames_results_at.argtypes, loaded.sluice_frames_results_at.restype = [void_p, size_t], C.POINTER(CFramesResult)
    loaded.sluice_frames_results_count.argtypes, loaded.sluice_frames_results_count.restype = [void_p], size_t
    loaded.sluice_ngrams_size.argtypes, loaded.sluice_ngrams_size.restype = [void_p], i32
    for name in ("tokens", "texts", "bytes"):
        function = getattr(loaded, "sluice_suffix_cache_" + name)
        function.argtypes, function.restype = [void_p], C.c_int64
    loaded.sluice_results_count.argtypes, loaded.sluice_results_count.restype = [void_p], size_t
    return loaded


def need_numpy(what: str) -> Any:
    """The module, or a sentence that says who needs it."""
    try:
        import numpy
    except ImportError:
        raise ImportError(f"sluice: {what} needs NumPy, which is not installed: pip install numpy") from None
    return numpy


library = _load()
version: str = library.sluice_version().decode()


def call(name: str, *arguments: Any) -> None:
    """Calls a function that returns a status, and raises what it reports. Python's lock is not held meanwhile."""
    status = getattr(library, "sluice_" + name)(*arguments)
    if status != OK:
        message = library.sluice_last_error().decode(errors="replace")
        raise {BAD_ARGUMENT: ArgumentError, REFUSED: RefusedError}.get(status, Error)(message)


def create(name: str, *arguments: Any) -> int:
    """Calls a function whose last argument is where it writes a handle, and returns that."""
    handle = void_p()
    call(name, *arguments, C.byref(handle))
    assert handle.value is not None
    return handle.value


def whole(value: Any, name: str, least: int = -2**31, most: int = 2**31 - 1) -> int:
    """A whole number for C, which would cut off what does not fit."""
    try:
        number: int = value.__index__()
    except (AttributeError, TypeError):
        if not isinstance(value, float) or not value.is_integer():  # 1e6
            raise TypeError(f"sluice: {name} = {value!r}: must be a whole number") from None
        number = int(value)
    if not least <= number <= most:
        raise ArgumentError(f"sluice: {name} = {value!r}: must be " + (
            f"at least {least}" if most >= 2**31 - 1 and number < least else f"from {least} to {most}"))
    return number


def real(value: Any, name: str) -> float:
    """A number for C."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"sluice: {name} = {value!r}: must be a number") from None
    except OverflowError:
        raise ArgumentError(f"sluice: {name} = {value!r}: is too large") from None


def expect(value: Any, kind: type, name: str, how: str = "") -> Any:
    """The value, if it is of the class."""
    if not isinstance(value, kind):
        raise TypeError(f"sluice: {name} = {value!r}: must be {how or 'a ' + kind.__name__}")
    return value


def listed(values: Any, name: str, what: str) -> list[Any]:
    """A list of what can be iterated over, other than text."""
    if isinstance(values, (str, bytes)):
        raise TypeError(f"sluice: {name} = {values!r}: must be a list of {what}")
    try:
        return list(values)
    except TypeError:
        raise TypeError(f"sluice: {name} = {values!r}: must be a list of {what}") from None


def path_bytes(file: Any, name: str = "file") -> bytes:
    """A path for C."""
    try:
        return _no_zero(os.fsencode(file), file, name)
    except TypeError:
        raise TypeError(f"sluice: {name} = {file!r}: must be a path") from None


def text_bytes(text: Any, name: str) -> bytes:
    """A text for C, where a zero byte would end it."""
    if not isinstance(text, (str, bytes)):
        raise TypeError(f"sluice: {name} = {text!r}: must be a string")
    return _no_zero(text.encode() if isinstance(text, str) else text, text, name)


def _no_zero(made: bytes, given: Any, name: str) -> bytes:
    if 0 in made:
        raise ArgumentError(f"sluice: {name} = {given!r}: must not have a zero byte in it")
    return made


def bytes_array(texts: Any, name: str) -> Any:
    """Texts as an array of sluice_bytes, which refers to them."""
    kept = []
    for i, text in enumerate(listed(texts, name, "strings, or bytes")):
        if not isinstance(text, (str, bytes, bytearray, memoryview)):
            raise TypeError(f"sluice: {name}[{i}] = {text!r}: must be a string, or bytes")
        kept.append(text.encode() if isinstance(text, str) else bytes(text))
    made = (CBytes * len(kept))(*((text, len(text)) for text in kept))
    made.kept = kept
    return made


def bytes_of(seen: Any) -> bytes:
    """A copy of what a sluice_bytes of the library shows."""
    return C.string_at(void_p.from_buffer(seen).value or 0, seen.count) if seen.count else b""


def token_array(tokens: Any, name: str) -> tuple[Any, int]:
    """Tokens as an array of C, from any sequence or array of integers. An empty one is null."""
    try:
        if isinstance(tokens, (bytes, bytearray)) or isinstance(tokens, memoryview) and tokens.itemsize == 1:  # which array.array takes for numbers in memory
            raise TypeError
        made = array.array("i", tokens.tolist() if hasattr(tokens, "tolist") else tokens)
    except TypeError:
        raise TypeError(f"{name} = {tokens!r}: must be a sequence of tokens, which are integers") from None
    except OverflowError:
        raise ArgumentError(f"sluice: {name} = {tokens!r}: tokens are below 2^31") from None
    return ((i32 * len(made)).from_buffer(made), len(made)) if made else (None, 0)

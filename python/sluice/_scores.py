# SPDX-License-Identifier: Apache-2.0
"""Lines of scores where they lie: NumPy arrays, whatever has `__dlpack__` (tensors of torch on the CPU), buffers. Nothing is copied
that holds float32 in lines without gaps; lines may be apart."""

from __future__ import annotations

import ctypes as C
import sys
from typing import Any

from ._library import need_numpy


class _DLTensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("device_type", C.c_int32), ("device_id", C.c_int32), ("ndim", C.c_int32),
                ("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16), ("shape", C.POINTER(C.c_int64)),
                ("strides", C.POINTER(C.c_int64)), ("byte_offset", C.c_uint64)]


_capsule_pointer = C.pythonapi.PyCapsule_GetPointer
_capsule_pointer.argtypes, _capsule_pointer.restype = [C.py_object, C.c_char_p], C.c_void_p
_FLOAT32 = ("<f4", "=f4", "f4") if sys.byteorder == "little" else (">f4", "=f4", "f4")


def _described(array: Any) -> tuple[int, tuple[int, ...], tuple[int, ...] | None, Any] | None:
    """(address, shape, strides in floats or None, what keeps it) of float32 in this machine's memory; None for anything else."""
    interface = getattr(array, "__array_interface__", None)
    if interface is not None:
        if interface["typestr"] not in _FLOAT32:
            return None
        strides = interface.get("strides")
        if strides is not None:
            if any(stride % 4 for stride in strides):
                return None
            strides = tuple(stride // 4 for stride in strides)
        return interface["data"][0], tuple(interface["shape"]), strides, array
    if hasattr(array, "__dlpack__"):
        device = array.__dlpack_device__()[0]
        if int(device) != 1:
            raise TypeError(f"scores are on a device (DLPack's kind {int(device)}): copy them to the host's memory first")
        capsule = array.__dlpack__()  # not consumed: it lives, and with it the memory, until the next step
        tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
        if (tensor.code, tensor.bits, tensor.lanes) != (2, 32, 1):
            return None
        shape = tuple(tensor.shape[:tensor.ndim])
        strides = tuple(tensor.strides[:tensor.ndim]) if tensor.strides else None
        return tensor.data + tensor.byte_offset, shape, strides, (array, capsule)
    try:
        view: Any = memoryview(array)
    except TypeError:
        return None
    if view.format not in ("f", "<f", "=f") or not view.c_contiguous:
        return None
    if view.readonly:
        view = memoryview(bytearray(view)).cast("f", tuple(view.shape or ()))  # ctypes takes no address of what is read-only
    return C.addressof(C.c_char.from_buffer(view.cast("B"))), tuple(view.shape or ()), None, view


def lines_of(array: Any, lines: int, vocabulary: int, source: str) -> tuple[int, int, Any]:
    """(address of the first line, distance of lines in floats, what keeps them) of [lines, vocabulary] scores.

    One line may be [vocabulary], too. Other numbers than float32 are converted by NumPy, which copies.
    """
    found = _described(array)
    strides = None if found is None else found[2]
    if found is None or (strides is not None and len(strides) > 0 and strides[-1] != 1 and found[1][-1] > 1):
        # a list, other numbers, gaps within lines
        numpy = need_numpy(f"{source} gave scores that are not float32 in lines without gaps, and converting them")
        if hasattr(array, "__dlpack__") and not hasattr(array, "__array_interface__"):
            try:
                array = numpy.from_dlpack(array)
            except (RuntimeError, BufferError) as error:  # bfloat16, for example
                raise TypeError(f"{source} gave scores that NumPy cannot convert ({error}): must be float32") from error
        array = numpy.ascontiguousarray(array, numpy.float32)
        found = _described(array)
        assert found is not None
        strides = found[2]
    address, shape, _, keep = found
    if shape == (lines, vocabulary):
        stride = vocabulary if strides is None else strides[0]
        if lines < 2 or stride >= vocabulary:
            return address, max(stride, vocabulary), keep
        numpy = need_numpy(f"{source} gave lines that overlap or run backwards, and copying them")
        return lines_of(numpy.array(array, numpy.float32, order="C"), lines, vocabulary, source)
    if lines == 1 and shape == (vocabulary,):
        return address, vocabulary, keep
    raise ValueError(f"{source} gave scores of shape {shape}, but {lines} lines of {vocabulary} tokens were asked for: "
                     f"must be {(lines, vocabulary)}")

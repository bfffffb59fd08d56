#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bigrams.py LIBRARY: a model in NumPy under sluice's searches, by ctypes over include/sluice/c/sluice.h."""
import ctypes as C
import sys

import numpy as np

TEXT = "time flies like an arrow . fruit flies like a banana . time waits for nobody . time flies . fruit flies like an apple ."
words = ["."] + sorted(set(TEXT.split()) - {"."})
counts = np.full((len(words), len(words)), 1e-3)  # [word, word that follows]
for word, following in zip(["."] + TEXT.split(), TEXT.split()):
    counts[words.index(word), words.index(following)] += 1
log_probs = np.log(counts / counts.sum(axis=1, keepdims=True)).astype(np.float32)

Tokens, void, size, i32 = C.POINTER(C.c_int32), C.c_void_p, C.c_size_t, C.c_int32
Start = C.CFUNCTYPE(C.c_int, void, size, C.POINTER(void), Tokens)
def structure(name, **fields): return type(name, (C.Structure,), {"_fields_": list(fields.items())})
Row = structure("Row", from_=i32, to=i32, length=i32, lines=i32, tokens=Tokens, count=size)
Step = C.CFUNCTYPE(C.c_int, void, size, C.POINTER(Row), C.POINTER(C.c_float))
Model = structure("Model", size=size, vocabulary=i32, bos=i32, eos=Tokens, eos_count=size, never=Tokens, never_count=size, abilities=i32,
                  log_probs=i32, max_slots=i32, max_length=i32, user=void, start=Start, step=Step, release=void,
                  source_length=void, destroy=void, propose=void, lookup=i32, reserved=i32, step_view=void)
Request = structure("Request", size=size, source=void, prompt=Tokens, prompt_count=size, prefix=Tokens, prefix_count=size, search=void,
                    seed=C.POINTER(C.c_uint64))
Hypothesis = structure("Hypothesis", tokens=Tokens, log_probs=C.POINTER(C.c_float), count=size, log_prob=C.c_double,
                       score=C.c_double, finished=i32, met=i32, total=i32, blocks=Tokens, block_count=size)
Result = structure("Result", id=C.c_uint64, failure=C.c_char_p, message=C.c_char_p, found=C.POINTER(Hypothesis), count=size)

sluice = C.CDLL(sys.argv[1])
sluice.sluice_last_error.restype, sluice.sluice_results_at.restype = C.c_char_p, C.POINTER(Result)
def call(name, *arguments):
    if getattr(sluice, "sluice_" + name)(*arguments) != 0:
        raise RuntimeError(sluice.sluice_last_error().decode())

@Step
def step(user, count, rows, scores):  # no memory: the last word is enough
    last = [rows[i].tokens[rows[i].count - 1] for i in range(count)]
    np.ctypeslib.as_array(scores, (count, len(words)))[:] = log_probs[last]
    return 0

def decode(kind, demanded=(), **options):
    call("search_create", kind, C.byref(search := void()))
    for name, value in options.items(): call("search_set", search, name.encode(), C.c_double(value))
    for word in demanded: call("search_demand", search, (i32 * 1)(words.index(word)), size(1))
    call("decode", model, search, C.byref(Request(C.sizeof(Request))), size(1), size(0), C.byref(results := void()))
    result = sluice.sluice_results_at(results, size(0)).contents
    print(f"{kind.decode()} {options or ''}{' with ' + ', '.join(demanded) if demanded else ''}: {result.failure.decode()}")
    for h in result.found[:result.count]:
        print(f"  {np.exp(h.log_prob):.3f}", *(words[token] for token in h.tokens[:h.count]))
    sluice.sluice_results_free(results), sluice.sluice_search_free(search)

functions = Model(size=C.sizeof(Model), vocabulary=len(words), eos=(i32 * 1)(0), eos_count=1, log_probs=1, start=Start(lambda *_: 0), step=step)
call("model_create", C.byref(functions), C.byref(model := void()))
decode(b"greedy")
decode(b"beam", width=4, n_best=2)
decode(b"beam", ["banana"], width=8)
decode(b"sample", samples=3, top_k=3)
sluice.sluice_model_free(model)

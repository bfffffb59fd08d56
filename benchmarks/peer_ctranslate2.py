#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`translate` beside the ctranslate2 wheel, whole programs over the same weights: seconds of the processor a sentence, and texts. Loading
does not count: of `translate` the time of one sentence alone is taken off.

  pip install ctranslate2 sentencepiece numpy
  benchmarks/peer_ctranslate2.py --translate build/release/bin/translate [--input FILE] [--sentences N] [--alone N] [--rounds N] [--json]

Each with one thread, in turn. In int8 two distances are told: in how many texts CTranslate2's int8 differs from its float32, and ours from
ours, and by how many characters (edit distance, in percent).
"""
import argparse
import json
import math
import os
import pathlib
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time

if "OPENBLAS_CORETYPE" in os.environ:  # OpenBLAS reads it when it is loaded
    del os.environ["OPENBLAS_CORETYPE"]
    os.execv(sys.executable, [sys.executable, *sys.argv])
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import ctranslate2  # noqa: E402
import numpy  # noqa: E402
import sentencepiece  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODEL = ROOT / "examples/apps/translate/model"


def safetensors(path):
    with open(path, "rb") as file:
        head = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    types = {"F32": numpy.float32, "F16": numpy.float16}

    def array(info):
        part = data[slice(*info["data_offsets"])]
        if info["dtype"] == "BF16":
            return (numpy.frombuffer(part, numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32).reshape(info["shape"])
        return numpy.frombuffer(part, types[info["dtype"]]).reshape(info["shape"]).astype(numpy.float32)
    return {name: array(info) for name, info in head.items() if name != "__metadata__"}, head["__metadata__"]


def convert(folder, pieces):
    """As examples/apps/ctranslate2/conversion.hpp does it, by the wheel's own classes."""
    weights, meta = safetensors(MODEL / "model.safetensors")
    d, heads = int(meta["d_model"]), int(meta["heads"])
    spec = ctranslate2.specs.TransformerSpec.from_config((int(meta["encoder_layers"]), int(meta["decoder_layers"])), heads, pre_norm=True)

    def linear(to, *names):
        to.weight = numpy.concatenate([weights[name + ".weight"] for name in names])
        to.bias = numpy.concatenate([weights[name + ".bias"] for name in names])

    def norm(to, name):
        to.gamma, to.beta = weights[name + ".weight"], weights[name + ".bias"]
    channel = numpy.arange(d)
    angles = numpy.arange(512)[:, None] * numpy.exp(-math.log(10000) * (channel // 2 * 2) / d)
    positions = numpy.where(channel % 2 == 0, numpy.sin(angles), numpy.cos(angles)).astype(numpy.float32)
    for side, prefix, last in ((spec.encoder, "enc", "en"), (spec.decoder, "dec", "dn")):
        embeddings = side.embeddings[0] if prefix == "enc" else side.embeddings
        embeddings.weight, side.scale_embeddings, side.position_encodings.encodings = weights["emb.weight"], True, positions
        norm(side.layer_norm, last)
        for i, layer in enumerate(side.layer):
            name = "%s.%d." % (prefix, i)
            norm(layer.self_attention.layer_norm, name + "n1")
            linear(layer.self_attention.linear[0], name + "a.q", name + "a.k", name + "a.v")
            linear(layer.self_attention.linear[1], name + "a.o")
            if prefix == "dec":
                norm(layer.attention.layer_norm, name + "n2")
                linear(layer.attention.linear[0], name + "c.q")
                linear(layer.attention.linear[1], name + "c.k", name + "c.v")
                linear(layer.attention.linear[2], name + "c.o")
            norm(layer.ffn.layer_norm, name + ("n3" if prefix == "dec" else "n2"))
            linear(layer.ffn.linear_0, name + "f.i")
            linear(layer.ffn.linear_1, name + "f.o")
    spec.decoder.projection.weight, spec.decoder.projection.bias = weights["emb.weight"], weights["bias"]
    bos, eos = pieces[int(meta.get("bos", 1))], pieces[int(meta.get("eos", 2))]
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = bos, eos, "<unk>"
    spec.config.decoder_start_token, spec.config.add_source_bos, spec.config.add_source_eos = bos, False, True
    spec.config.layer_norm_epsilon = 1e-5
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.validate()
    spec.optimize()
    spec.save(folder)


def edits(a, b):
    line = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, line[0] = line[:], i
        for j, y in enumerate(b, 1):
            line[j] = min(before[j] + 1, line[j - 1] + 1, before[j - 1] + (x != y))
    return line[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--translate", type=pathlib.Path, default=ROOT / "build/release/bin/translate")
    parser.add_argument("--input", type=pathlib.Path, default=ROOT / "examples/apps/translate/sample.de")
    parser.add_argument("--sentences", type=int, default=512)
    parser.add_argument("--alone", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    lines = arguments.input.read_text(encoding="utf-8").splitlines()[:arguments.sentences]
    words = sentencepiece.SentencePieceProcessor(model_file=str(MODEL / "spm.model"))
    pieces = [words.id_to_piece(i) for i in range(words.get_piece_size())]
    rows, texts = [], {}
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(folder + "/ct2")
        convert(folder + "/ct2", pieces)
        source = pathlib.Path(folder, "source")

        def ours(some, flags):
            """Texts and seconds, those of a sentence alone included."""
            source.write_text("".join(line + "\n" for line in some), encoding="utf-8")
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run([arguments.translate, "--input", source, *flags], capture_output=True, text=True, check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return done.stdout.splitlines(), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        for kind in ("float32", "int8"):
            translator = ctranslate2.Translator(folder + "/ct2", compute_type=kind, inter_threads=1, intra_threads=1)
            for search, width, batch in (("beam of 5, batches of 64", 5, 64), ("greedy, batches of 64", 1, 64),
                                         ("beam of 5, one by one", 5, 1), ("greedy, one by one", 1, 1)):
                some = lines if batch > 1 else lines[:arguments.alone]
                cut = [words.encode(line, out_type=str) for line in some]
                flags = ["--precision", kind, "--layers", kind, "--batch", batch,
                         *(["--search", "greedy"] if width == 1 else ["--preset", "ctranslate2", "--width", width])]
                flags = [str(flag) for flag in flags]
                mine, theirs = [], []
                for _ in range(arguments.rounds):
                    found, all_of = ours(some, flags)
                    mine.append((all_of - ours(some[:1], flags)[1]) / max(1, len(some) - 1))
                    begin = time.process_time()
                    results = translator.translate_batch(cut, beam_size=width, max_batch_size=batch)
                    theirs.append((time.process_time() - begin) / len(some))
                own = [words.decode(result.hypotheses[0]) for result in results]
                texts[kind, search] = (found, own)
                rows.append({"precision": kind, "search": search, "sentences": len(some), "same": sum(a == b for a, b in zip(found, own)),
                             "ctranslate2_ms": 1e3 * statistics.median(theirs), "ms": 1e3 * statistics.median(mine),
                             "times": [t / m for t, m in zip(theirs, mine)]})
    for row in rows:
        if row["precision"] == "int8":
            for name, which in (("ours", 0), ("ctranslate2", 1)):
                rounded, exact = (texts[kind, row["search"]][which] for kind in ("int8", "float32"))
                row[name + "_differ"] = sum(a != b for a, b in zip(rounded, exact))
                row[name + "_edits"] = 100 * sum(map(edits, rounded, exact)) / max(1, sum(map(len, exact)))
    if arguments.json:
        print(json.dumps({"ctranslate2": ctranslate2.__version__, "rows": rows}))
        return
    print("CTranslate2 %s\n\n| precision | search | CTranslate2, ms | translate, ms | times as fast | same texts |\n| --- | --- | ---: | ---: | --- | ---: |"
          % ctranslate2.__version__)
    for row in rows:
        print("| %s | %s | %.2f | %.2f | **%.2f** (%.2f to %.2f) | %d of %d |" % (
            row["precision"], row["search"], row["ctranslate2_ms"], row["ms"], statistics.median(row["times"]), min(row["times"]),
            max(row["times"]), row["same"], row["sentences"]))
    print("\n| int8 beside its own float32 | texts that differ: ours, CTranslate2's | edits, %: ours, CTranslate2's |\n| --- | --- | --- |")
    for row in rows:
        if row["precision"] == "int8":
            print("| %s | %d, %d of %d | %.2f, %.2f |" % (row["search"], row["ours_differ"], row["ctranslate2_differ"], row["sentences"],
                                                      row["ours_edits"], row["ctranslate2_edits"]))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""whisper_models.py FOLDER MODEL: ONNX graphs of a Whisper model, with the inputs and outputs that Optimum's exports have.

MODEL is a folder with a Whisper model in CTranslate2's format (tools/fetch-whisper makes it). FOLDER gets

  encoder_model.onnx  input_features [batch, mel, 3000] in; of each layer of the decoder, the keys and values of the source out
  decoder_model.onnx  tokens, a past and these keys and values in; logits and the next past out, and cross_attention: the scores, before
                      the softmax, of the heads that follow the sound (alignment_heads of config.json; without, all of the upper half)
  vocabulary.txt      the tokens, a line each, in GPT-2's letters for bytes
  config.json         the tokens that are suppressed and those of languages, as in MODEL

Weights stay float16 in the files and are float32 once loaded. Needs numpy and onnx (Debian: python3-onnx; 1.12 will do)."""
import json
import os
import shutil
import struct
import sys

import numpy
from onnx import TensorProto

from onnx_models import Graph, info

TYPES = (numpy.float32, numpy.int8, numpy.int16, numpy.int32, numpy.float16)


def read_ctranslate2(path):
    """The arrays of a model file (CTranslate2's docs/model_specs: versions 5 and 6), aliases included."""
    with open(path, "rb") as file:
        def numbers(kind):
            return struct.unpack("<" + kind, file.read(struct.calcsize("<" + kind)))

        def text():
            return file.read(numbers("H")[0])[:-1].decode()
        (version,) = numbers("I")
        if version not in (5, 6) or text() != "WhisperSpec":
            raise SystemExit("whisper_models.py: %s is no Whisper model of CTranslate2's format, versions 5 and 6" % path)
        _, count = numbers("2I")
        arrays = {}
        for _ in range(count):
            name, (rank,) = text(), numbers("B")
            shape, (kind, size) = numbers("%dI" % rank), numbers("BI")
            arrays[name] = numpy.frombuffer(file.read(size), TYPES[kind]).reshape(shape)
        for _ in range(numbers("I")[0]):
            name = text()
            arrays[name] = arrays[text()]
    return arrays


class Whisper:
    def __init__(self, path, alignment_heads):
        self.weights = read_ctranslate2(path)
        self.vocabulary, self.d = self.weights["decoder/embeddings/weight"].shape
        self.heads = int(self.weights["decoder/num_heads"])
        self.size, self.mel = self.d // self.heads, self.weights["encoder/conv1/weight"].shape[1]
        self.layers = sum(name.startswith("decoder/") and name.endswith("ffn/linear_0/weight") for name in self.weights)
        self.encoder_layers = sum(name.startswith("encoder/") and name.endswith("ffn/linear_0/weight") for name in self.weights)
        self.alignment_heads = alignment_heads or [(i, k) for i in range(self.layers // 2, self.layers) for k in range(self.heads)]

    def floats(self, g, name, part=slice(None), turn=False):
        array = self.weights[name][part]
        if array.dtype not in (numpy.float16, numpy.float32):
            raise SystemExit("whisper_models.py: %s is %s: quantised models are not read" % (name, array.dtype))
        return g.add("Cast", g.constant(array.T if turn else array, "%s.%s.%s" % (name, part.start, turn)), to=TensorProto.FLOAT)

    def linear(self, g, x, name, part=slice(None)):
        product = g.add("MatMul", x, self.floats(g, name + "/weight", part, True))
        return g.add("Add", product, self.floats(g, name + "/bias", part))

    def parts(self, count):
        return [slice(i * self.d, (i + 1) * self.d) for i in range(count)]

    def norm(self, g, x, name):
        return g.add("LayerNormalization", x, self.floats(g, name + "/gamma"), self.floats(g, name + "/beta"), axis=-1, epsilon=1e-5)

    def gelu(self, g, x):
        erf = g.add("Erf", g.add("Div", x, g.floats(2 ** 0.5)))
        return g.add("Mul", g.add("Mul", x, g.add("Add", erf, g.floats(1))), g.floats(0.5))

    def feed_forward(self, g, x, name):
        inner = self.gelu(g, self.linear(g, self.norm(g, x, name + "/layer_norm"), name + "/linear_0"))
        return g.add("Add", x, self.linear(g, inner, name + "/linear_1"))

    def memory(self, g, length):
        return [info("past_key_values.%d.encoder.%s" % (i, what), g.float, "batch_size", self.heads, length, self.size)
                for i in range(self.layers) for what in ("key", "value")]

    def encoder(self, folder):
        g, x = Graph(), "input_features"
        for name, stride in (("encoder/conv1", 1), ("encoder/conv2", 2)):
            made = g.add("Conv", x, self.floats(g, name + "/weight"), self.floats(g, name + "/bias"), kernel_shape=[3], pads=[1, 1],
                         strides=[stride])
            x = self.gelu(g, made)
        frames = 2 * len(self.weights["encoder/position_encodings/encodings"])
        x = g.add("Add", g.add("Transpose", x, perm=[0, 2, 1]), self.floats(g, "encoder/position_encodings/encodings"))
        for i in range(self.encoder_layers):
            name = "encoder/layer_%d/" % i
            y = self.norm(g, x, name + "self_attention/layer_norm")
            q, k, v = (g.heads(self.linear(g, y, name + "self_attention/linear_0", part), self.heads) for part in self.parts(3))
            x = g.add("Add", x, self.linear(g, g.attend(q, k, v, g.floats(0), self.size), name + "self_attention/linear_1"))
            x = self.feed_forward(g, x, name + "ffn")
        x = self.norm(g, x, "encoder/layer_norm")
        outputs = self.memory(g, frames // 2)
        for i in range(self.layers):
            for part, output in zip(self.parts(2), outputs[2 * i:]):
                made = self.linear(g, x, "decoder/layer_%d/attention/linear_1" % i, part)
                g.add("Identity", g.heads(made, self.heads), out=output.name)
        g.write(folder + "/encoder_model.onnx", [info("input_features", g.float, "batch_size", self.mel, frames)], outputs)

    def decoder(self, folder):
        g = Graph()
        bias = g.add("Add", g.causal("input_ids", g.size("past_key_values.0.decoder.key", 2)), g.padding("attention_mask"))
        vectors = g.add("Gather", g.constant(self.weights["decoder/embeddings/weight"], "embeddings"), "input_ids")
        places = g.add("Gather", self.floats(g, "decoder/position_encodings/encodings"), "position_ids")
        x = g.add("Add", g.add("Cast", vectors, to=TensorProto.FLOAT), places)
        followed = []
        for i in range(self.layers):
            name = "decoder/layer_%d/" % i
            y = self.norm(g, x, name + "self_attention/layer_norm")
            q, k, v = (g.heads(self.linear(g, y, name + "self_attention/linear_0", part), self.heads) for part in self.parts(3))
            k, v = (g.add("Concat", "past_key_values.%d.decoder.%s" % (i, what), new, axis=2, out="present.%d.decoder.%s" % (i, what))
                    for what, new in (("key", k), ("value", v)))
            x = g.add("Add", x, self.linear(g, g.attend(q, k, v, bias, self.size), name + "self_attention/linear_1"))
            y = self.norm(g, x, name + "attention/layer_norm")
            q = g.heads(self.linear(g, y, name + "attention/linear_0"), self.heads)
            k, v = ("past_key_values.%d.encoder.%s" % (i, what) for what in ("key", "value"))
            mixed, scores = g.attend_scored(q, k, v, g.floats(0), self.size)
            heads = [head for layer, head in self.alignment_heads if layer == i]
            if heads:
                followed.append(g.add("Gather", scores, g.ints(*heads), axis=1))
            x = g.add("Add", x, self.linear(g, mixed, name + "attention/linear_2"))
            x = self.feed_forward(g, x, name + "ffn")
        g.add("Concat", *followed, axis=1, out="cross_attention")
        x = g.add("Slice", x, g.add("Unsqueeze", g.add("Neg", "num_logits_to_keep"), g.ints(0)), g.ints(1 << 30), g.ints(1))
        x = self.norm(g, x, "decoder/layer_norm")
        g.nodes[-1].output[0] = "hidden_states"
        table = g.add("Transpose", g.add("Cast", "embeddings", to=TensorProto.FLOAT), perm=[1, 0])
        g.add("MatMul", "hidden_states", table, out="logits")

        def cache(prefix, length):
            return [info("%s.%d.decoder.%s" % (prefix, i, what), g.float, "batch_size", self.heads, length, self.size)
                    for i in range(self.layers) for what in ("key", "value")]
        g.write(folder + "/decoder_model.onnx",
                [info("input_ids", TensorProto.INT64, "batch_size", "sequence_length"),
                 info("attention_mask", TensorProto.INT64, "batch_size", "total_sequence_length"),
                 info("position_ids", TensorProto.INT64, "batch_size", "sequence_length"), info("num_logits_to_keep", TensorProto.INT64)]
                + cache("past_key_values", "past_sequence_length") + self.memory(g, "encoder_sequence_length"),
                [info("logits", g.float, "batch_size", "kept_length", self.vocabulary)] + cache("present", "total_sequence_length")
                + [info("cross_attention", g.float, "batch_size", len(self.alignment_heads), "sequence_length", "encoder_sequence_length")])


def main(folder, model):
    with open(model + "/config.json", encoding="utf-8") as file:
        whisper = Whisper(model + "/model.bin", json.load(file).get("alignment_heads"))
    os.makedirs(folder, exist_ok=True)
    whisper.encoder(folder)
    whisper.decoder(folder)
    for name in ("vocabulary.txt", "config.json"):
        shutil.copyfile(model + "/" + name, folder + "/" + name)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: whisper_models.py FOLDER MODEL")
    main(sys.argv[1], sys.argv[2])

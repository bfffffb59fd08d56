#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""onnx_models.py FOLDER WEIGHTS: ONNX graphs with the inputs and outputs that Optimum's exports have.

WEIGHTS is the safetensors file of an encoder-decoder Transformer (examples/apps/translate/model/model.safetensors). FOLDER gets

  transformer/          encoder_model, decoder_model, decoder_with_past_model and decoder_model_merged
  transformer_float16/  encoder_model and decoder_model_merged, all numbers halves
  transformer_int8/     the same, the linear layers int8 with scales of each batch (as ONNX Runtime quantises dynamically)
  transformer_unmasked/ the same in float32, without masks of the source: all sources of a batch are equally long
  transformer_numbers/  an encoder_model that takes numbers, [rows, 2, length]: the two of a place add up to its token
  tiny/, tiny_float16/  model: a small decoder-only Transformer with random weights, attention_mask and position_ids
  tiny_keep/            the same, with an input that says how many last lines are wanted
  gru/                  model: a GRU with random weights and a state; it takes one token a row, as int32
  expected.json         what numpy computes in float64: greedy outputs of tiny and gru

Needs numpy and onnx (Debian: python3-onnx; 1.12 will do)."""
import json
import os
import struct
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
FLOATS = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "int8": TensorProto.FLOAT}


class Graph:
    """Nodes of a graph, or of a branch of one, whose constants are in its root."""

    def __init__(self, kind="float32", root=None):
        self.kind, self.root = kind, root or self
        self.nodes, self.constants, self.count = [], {}, 0
        self.float = FLOATS[kind]

    def name(self):
        self.root.count += 1
        return "t%d" % self.root.count

    def add(self, op, *inputs, out=None, **attributes):
        out = out or self.name()
        self.nodes.append(helper.make_node(op, list(inputs), [out], **attributes))
        return out

    def constant(self, array, name=None):
        array = numpy.asarray(array)
        key = name or (array.dtype.str, array.shape, array.tobytes()) if array.size < 64 or name else object()
        if key not in self.root.constants:
            self.root.constants[key] = numpy_helper.from_array(numpy.ascontiguousarray(array), name or self.name())
        return self.root.constants[key].name

    def ints(self, *values):
        return self.constant(numpy.array(values, numpy.int64))

    def scalar(self, value):
        return self.constant(numpy.array(value, numpy.int64))

    def floats(self, array, name=None):
        return self.constant(numpy.asarray(array, numpy.float16 if self.kind == "float16" else numpy.float32), name)

    def size(self, x, axis):
        return self.add("Gather", self.add("Shape", x), self.scalar(axis))

    def linear(self, x, weights, name):
        """x W^T + b"""
        matrix = weights[name + ".weight"].T
        if self.kind != "int8":
            product = self.add("MatMul", x, self.floats(matrix, name + ".weight"))
        else:
            scale = numpy.abs(matrix).max() / 127
            whole = self.constant(numpy.rint(matrix / scale).astype(numpy.int8), name + ".weight")
            q, step, zero = self.name(), self.name(), self.name()
            self.nodes.append(helper.make_node("DynamicQuantizeLinear", [x], [q, step, zero]))
            sums = self.add("Cast", self.add("MatMulInteger", q, whole, zero), to=TensorProto.FLOAT)
            product = self.add("Mul", sums, self.add("Mul", step, self.floats(scale)))
        return self.add("Add", product, self.floats(weights[name + ".bias"], name + ".bias"))

    def norm(self, x, weights, name):
        return self.add("LayerNormalization", x, self.floats(weights[name + ".weight"], name + ".weight"),
                        self.floats(weights[name + ".bias"], name + ".bias"), axis=-1, epsilon=1e-5)

    def heads(self, x, heads):
        """[rows, n, d] as [rows, heads, n, d / heads]"""
        return self.add("Transpose", self.add("Reshape", x, self.ints(0, 0, heads, -1)), perm=[0, 2, 1, 3])

    def attend(self, query, key, value, bias, size):
        return self.attend_scored(query, key, value, bias, size)[0]

    def attend_scored(self, query, key, value, bias, size):
        """What attention makes, and the scores [rows, heads, queries, keys] before the softmax."""
        scores = self.add("MatMul", self.add("Mul", query, self.floats(size ** -0.5)), self.add("Transpose", key, perm=[0, 1, 3, 2]))
        mixed = self.add("MatMul", self.add("Softmax", self.add("Add", scores, bias), axis=-1), value)
        return self.add("Reshape", self.add("Transpose", mixed, perm=[0, 2, 1, 3]), self.ints(0, 0, -1)), scores

    def hiding(self, seen):
        """0 where `seen` is true, else so little that its exponential is 0."""
        return self.add("Where", seen, self.floats(0), self.floats(-1e4))

    def padding(self, mask):
        seen = self.add("Cast", mask, to=TensorProto.BOOL)
        return self.hiding(self.add("Unsqueeze", seen, self.ints(1, 2)))

    def causal(self, tokens, past):
        """[tokens, past + tokens]; `past`: a number"""
        count = self.size(tokens, 1)
        rows = self.add("Add", self.add("Range", self.scalar(0), count, self.scalar(1)), past)
        columns = self.add("Range", self.scalar(0), self.add("Add", count, past), self.scalar(1))
        return self.hiding(self.add("LessOrEqual", columns, self.add("Unsqueeze", rows, self.ints(1))))

    def indices(self, tokens):
        """0, 1, 2, ... in each row. Not a Range: 1.30 of ONNX Runtime makes a Slice of a Gather by one, and then refuses it."""
        ones = self.add("ConstantOfShape", self.add("Shape", tokens), value=helper.make_tensor("value", TensorProto.INT64, [1], [1]))
        return self.add("Sub", self.add("CumSum", ones, self.scalar(1)), self.scalar(1))

    def embed(self, tokens, positions, weights, d):
        vectors = self.add("Gather", self.floats(weights["emb.weight"], "emb.weight"), tokens)
        table = self.floats(weights["positions"], "positions")
        return self.add("Add", self.add("Mul", vectors, self.floats(d ** 0.5)), self.add("Gather", table, positions))

    def feed_forward(self, x, weights, name, norm):
        inner = self.linear(self.norm(x, weights, name + norm), weights, name + "f.i")
        return self.add("Add", x, self.linear(self.add("Relu", inner), weights, name + "f.o"))

    def logits(self, x, weights):
        table = weights["emb.weight"].T
        product = self.add("MatMul", x, self.floats(table, "output.weight"))
        return self.add("Add", product, self.floats(weights["bias"], "output.bias"), out="logits" if self.root is self else None)

    def write(self, path, inputs, outputs):
        graph = helper.make_graph(self.nodes, os.path.basename(path), inputs, outputs, list(self.constants.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="sluice", ir_version=8)
        onnx.checker.check_model(model)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        onnx.save(model, path)


def info(name, kind, *shape):
    return helper.make_tensor_value_info(name, kind, shape)


def positions(count, d):
    where = numpy.arange(count, dtype=numpy.float64)[:, None]
    number = numpy.arange(d)
    angle = where / 10000.0 ** ((number - number % 2) / d)
    return numpy.where(number % 2 == 0, numpy.sin(angle), numpy.cos(angle))


# ---- encoder and decoder -------------------------------------------------------------------------------------------------


def read_safetensors(path):
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    kinds = {"F32": "<f4", "F16": "<f2"}
    return header.pop("__metadata__"), {
        name: numpy.frombuffer(data[slice(*one["data_offsets"])], kinds[one["dtype"]]).reshape(one["shape"]).astype(numpy.float32)
        for name, one in header.items()}


class Transformer:
    def __init__(self, path):
        meta, self.weights = read_safetensors(path)
        self.d, self.heads = int(meta["d_model"]), int(meta["heads"])
        self.layers, self.encoder_layers = int(meta["decoder_layers"]), int(meta["encoder_layers"])
        self.vocabulary, self.size = int(meta["vocab"]), self.d // self.heads
        self.weights["positions"] = positions(512, self.d)

    def past(self, g, prefix, of):
        length = {"decoder": "past_sequence_length", "encoder": "encoder_sequence_length"}[of]
        if prefix == "present" and of == "decoder":
            length = "total_sequence_length"
        return [info("%s.%d.%s.%s" % (prefix, i, of, what), g.float, "batch_size", self.heads, length, self.size)
                for i in range(self.layers) for what in ("key", "value")]

    def encoder(self, folder, kind, masked=True, numbers=False):
        g, w = Graph(kind), self.weights
        bias = g.padding("attention_mask") if masked else g.floats(0)
        ids = "input_ids"
        if numbers:
            ids = g.add("Cast", g.add("ReduceSum", "input_features", g.ints(1), keepdims=0), to=TensorProto.INT64)
        x = g.embed(ids, g.indices(ids), w, self.d)
        for i in range(self.encoder_layers):
            name = "enc.%d." % i
            y = g.norm(x, w, name + "n1")
            q, k, v = (g.heads(g.linear(y, w, name + "a." + what), self.heads) for what in "qkv")
            x = g.add("Add", x, g.linear(g.attend(q, k, v, bias, self.size), w, name + "a.o"))
            x = g.feed_forward(x, w, name, "n2")
        g.add("Identity", g.norm(x, w, "en"), out="last_hidden_state")
        tokens = ("batch_size", "encoder_sequence_length")
        given = [info(name, TensorProto.INT64, *tokens) for name in ["input_ids"] + masked * ["attention_mask"]]
        g.write(folder + "/encoder_model.onnx",
                [info("input_features", g.float, "batch_size", 2, "frames")] if numbers else given,
                [info("last_hidden_state", g.float, *tokens, self.d)])

    def decode(self, g, past, masked=True):
        """All nodes of a decoder, with the past or without. Returns its outputs: logits, then of each layer key and value of
        tokens, then, without the past, of the source."""
        w, own, sources = self.weights, [], []
        bias = g.padding("encoder_attention_mask") if masked else g.floats(0)
        before = g.size("past_key_values.0.decoder.key", 2) if past else g.scalar(0)
        causal = g.causal("input_ids", before)
        x = g.embed("input_ids", g.add("Add", g.indices("input_ids"), before), w, self.d)
        for i in range(self.layers):
            name = "dec.%d." % i
            y = g.norm(x, w, name + "n1")
            q, k, v = (g.heads(g.linear(y, w, name + "a." + what), self.heads) for what in "qkv")
            if past:
                k = g.add("Concat", "past_key_values.%d.decoder.key" % i, k, axis=2)
                v = g.add("Concat", "past_key_values.%d.decoder.value" % i, v, axis=2)
            own += [k, v]
            x = g.add("Add", x, g.linear(g.attend(q, k, v, causal, self.size), w, name + "a.o"))
            q = g.heads(g.linear(g.norm(x, w, name + "n2"), w, name + "c.q"), self.heads)
            if past:
                k, v = ("past_key_values.%d.encoder.%s" % (i, what) for what in ("key", "value"))
            else:
                k, v = (g.heads(g.linear("encoder_hidden_states", w, name + "c." + what), self.heads) for what in "kv")
                sources += [k, v]
            x = g.add("Add", x, g.linear(g.attend(q, k, v, bias, self.size), w, name + "c.o"))
            x = g.feed_forward(x, w, name, "n3")
        return [g.logits(g.norm(x, w, "dn"), w)] + own + sources

    def inputs(self, g, past, states, masked=True):
        source = ("batch_size", "encoder_sequence_length")
        result = masked * [info("encoder_attention_mask", TensorProto.INT64, *source)]
        result.append(info("input_ids", TensorProto.INT64, "batch_size", "decoder_sequence_length"))
        if states:
            result.append(info("encoder_hidden_states", g.float, *source, self.d))
        if past:
            result += self.past(g, "past_key_values", "decoder") + self.past(g, "past_key_values", "encoder")
        return result

    def outputs(self, g, sources):
        return ([info("logits", g.float, "batch_size", "decoder_sequence_length", self.vocabulary)] + self.past(g, "present", "decoder")
                + (self.past(g, "present", "encoder") if sources else []))

    def decoders(self, folder, kind):
        for past, name in ((False, "decoder_model"), (True, "decoder_with_past_model")):
            g = Graph(kind)
            outputs = self.outputs(g, not past)
            for value, made in zip(outputs[1:], self.decode(g, past)[1:]):
                g.add("Identity", made, out=value.name)
            g.write("%s/%s.onnx" % (folder, name), self.inputs(g, past, not past), outputs)

    def merged(self, folder, kind, masked=True):
        g = Graph(kind)
        outputs = self.outputs(g, True)
        branches = []
        for past in (True, False):
            branch = Graph(kind, g)
            made = self.decode(branch, past, masked)
            # With a past, those of the source are not computed: a placeholder, as Optimum's.
            while len(made) < len(outputs):
                made.append(branch.add("ConstantOfShape", branch.ints(0, self.heads, 1, self.size),
                                       value=helper.make_tensor("value", g.float, [1], [0])))
            wild = [helper.make_tensor_value_info(name, g.float, None) for name in made]
            branches.append(helper.make_graph(branch.nodes, "with_past" if past else "no_past", [], wild))
        g.nodes.append(helper.make_node("If", ["use_cache_branch"], [one.name for one in outputs],
                                        then_branch=branches[0], else_branch=branches[1]))
        g.write(folder + "/decoder_model_merged.onnx",
                self.inputs(g, True, True, masked) + [info("use_cache_branch", TensorProto.BOOL, 1)], outputs)


# ---- decoder only, random -------------------------------------------------------------------------------------------------


def draw(random, *shape):
    return random.normal(0, 0.4, shape)


class Tiny:
    """Two layers, two heads, V = 60."""
    d, heads, layers, vocabulary, length = 16, 2, 2, 60, 128

    def __init__(self):
        random = numpy.random.RandomState(1)
        w = self.weights = {"emb.weight": draw(random, self.vocabulary, self.d), "bias": draw(random, self.vocabulary),
                            "positions": positions(self.length, self.d)}
        for i in range(self.layers):
            for name, out, into in (("a.q", 16, 16), ("a.k", 16, 16), ("a.v", 16, 16), ("a.o", 16, 16), ("f.i", 32, 16), ("f.o", 16, 32)):
                w["%d.%s.weight" % (i, name)], w["%d.%s.bias" % (i, name)] = draw(random, out, into), draw(random, out)
        for name in ["%d.n%d" % (i, k) for i in range(self.layers) for k in (1, 2)] + ["n"]:
            w[name + ".weight"], w[name + ".bias"] = 1 + draw(random, self.d), draw(random, self.d)

    def write(self, folder, kind, keep=False):
        g, w, size = Graph(kind), self.weights, self.d // self.heads
        key = "past_key_values.0.key"
        bias = g.add("Add", g.causal("input_ids", g.size(key, 2)), g.padding("attention_mask"))
        x = g.embed("input_ids", "position_ids", w, self.d)
        for i in range(self.layers):
            y = g.norm(x, w, "%d.n1" % i)
            q, k, v = (g.heads(g.linear(y, w, "%d.a.%s" % (i, what)), self.heads) for what in "qkv")
            k = g.add("Concat", "past_key_values.%d.key" % i, k, axis=2, out="present.%d.key" % i)
            v = g.add("Concat", "past_key_values.%d.value" % i, v, axis=2, out="present.%d.value" % i)
            x = g.add("Add", x, g.linear(g.attend(q, k, v, bias, size), w, "%d.a.o" % i))
            x = g.feed_forward(x, w, "%d." % i, "n2")
        if keep:
            x = g.add("Slice", x, g.add("Unsqueeze", g.add("Neg", "num_logits_to_keep"), g.ints(0)), g.ints(1 << 30), g.ints(1))
        g.logits(g.norm(x, w, "n"), w)

        def cache(prefix, length):
            return [info("%s.%d.%s" % (prefix, i, what), g.float, "batch_size", self.heads, length, size)
                    for i in range(self.layers) for what in ("key", "value")]
        g.write(folder + "/model.onnx",
                [info("input_ids", TensorProto.INT64, "batch_size", "sequence_length"),
                 info("attention_mask", TensorProto.INT64, "batch_size", "total_sequence_length"),
                 info("position_ids", TensorProto.INT64, "batch_size", "sequence_length")]
                + keep * [info("num_logits_to_keep", TensorProto.INT64)] + cache("past_key_values", "past_sequence_length"),
                [info("logits", g.float, "batch_size", "kept_length", self.vocabulary)] + cache("present", "total_sequence_length"))

    def last_logits(self, tokens):
        """Of all tokens at once, without a cache, in float64."""
        w, n, size = self.weights, len(tokens), self.d // self.heads

        def linear(x, name):
            return x @ w[name + ".weight"].T + w[name + ".bias"]

        def norm(x, name):
            centred = x - x.mean(-1, keepdims=True)
            return centred / numpy.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5) * w[name + ".weight"] + w[name + ".bias"]
        x = w["emb.weight"][tokens] * self.d ** 0.5 + w["positions"][:n]
        for i in range(self.layers):
            y = norm(x, "%d.n1" % i)
            q, k, v = (linear(y, "%d.a.%s" % (i, what)) for what in "qkv")
            mixed = numpy.zeros_like(x)
            for head in range(self.heads):
                part = slice(head * size, (head + 1) * size)
                for t in range(n):
                    s = numpy.exp(q[t, part] @ k[:t + 1, part].T / size ** 0.5)
                    mixed[t, part] = s / s.sum() @ v[:t + 1, part]
            x = x + linear(mixed, "%d.a.o" % i)
            x = x + linear(numpy.maximum(linear(norm(x, "%d.n2" % i), "%d.f.i" % i), 0), "%d.f.o" % i)
        return norm(x, "n")[-1] @ w["emb.weight"].T + w["bias"]


class Gru:
    """One layer of torch.nn.GRU, V = 50; the state of a row is [1, rows, d], as torch exports it."""
    d, vocabulary = 24, 50

    def __init__(self):
        random = numpy.random.RandomState(2)
        self.embedding, self.bias = draw(random, self.vocabulary, self.d) * 2, draw(random, self.vocabulary)
        self.input, self.recurrent = draw(random, 3, self.d, self.d), draw(random, 3, self.d, self.d)  # reset, update, new
        self.input_bias, self.recurrent_bias = draw(random, 3, self.d), draw(random, 3, self.d)

    def write(self, folder):
        g, order = Graph(), [1, 0, 2]  # ONNX: update, reset, hidden

        def blocks(x):
            return x[order].reshape(1, 3 * self.d, -1)
        x = g.add("Unsqueeze", g.add("Gather", g.floats(self.embedding), "input_ids"), g.ints(0))
        biases = numpy.concatenate([self.input_bias[order].ravel(), self.recurrent_bias[order].ravel()])[None]
        out = g.name()
        g.nodes.append(helper.make_node("GRU", [x, g.floats(blocks(self.input)), g.floats(blocks(self.recurrent)), g.floats(biases), "",
                                                "state_in"], [out, "state_out"], hidden_size=self.d, linear_before_reset=1))
        last = g.add("Squeeze", out, g.ints(0, 1))
        g.add("Add", g.add("MatMul", last, g.floats(self.embedding.T, "output.weight")), g.floats(self.bias), out="logits")
        g.write(folder + "/model.onnx",
                [info("input_ids", TensorProto.INT32, "batch_size"), info("state_in", TensorProto.FLOAT, 1, "batch_size", self.d)],
                [info("logits", TensorProto.FLOAT, "batch_size", self.vocabulary), info("state_out", TensorProto.FLOAT, 1, "batch_size", self.d)])

    def last_logits(self, tokens):
        h = numpy.zeros(self.d)

        def sigmoid(x):
            return 1 / (1 + numpy.exp(-x))
        for token in tokens:
            x = self.embedding[token]
            a = [self.input[i] @ x + self.input_bias[i] for i in range(3)]
            b = [self.recurrent[i] @ h + self.recurrent_bias[i] for i in range(3)]
            z = sigmoid(a[1] + b[1])
            h = (1 - z) * numpy.tanh(a[2] + sigmoid(a[0] + b[0]) * b[2]) + z * h
        return self.embedding @ h + self.bias


def greedy(model, count, steps):
    """Prompts with their greedy outputs: tokens 0 (bos) and 1 (eos) of the vocabulary are never generated."""
    random, result = numpy.random.RandomState(3), []
    for i in range(count):
        prompt = [0] + [int(token) for token in random.randint(2, model.vocabulary, i % 7)]
        tokens, sums = [], []
        for _ in range(steps):
            line = model.last_logits(prompt + tokens)
            line = line - line.max()
            line = line - numpy.log(numpy.exp(line).sum())
            tokens.append(int(line[2:].argmax()) + 2)
            sums.append(float(line[tokens[-1]]))
        result.append({"prompt": prompt, "tokens": tokens, "log_probs": sums})
    return result


def main(folder, weights):
    transformer, tiny, gru = Transformer(weights), Tiny(), Gru()
    for kind, suffix in (("float32", ""), ("float16", "_float16"), ("int8", "_int8")):
        transformer.encoder(folder + "/transformer" + suffix, kind)
        transformer.merged(folder + "/transformer" + suffix, kind)
    transformer.decoders(folder + "/transformer", "float32")
    transformer.encoder(folder + "/transformer_unmasked", "float32", False)
    transformer.merged(folder + "/transformer_unmasked", "float32", False)
    transformer.encoder(folder + "/transformer_numbers", "float32", False, True)
    tiny.write(folder + "/tiny", "float32")
    tiny.write(folder + "/tiny_float16", "float16")
    tiny.write(folder + "/tiny_keep", "float32", True)
    gru.write(folder + "/gru")
    with open(folder + "/expected.json", "w") as file:
        json.dump({"tiny": greedy(tiny, 14, 20), "gru": greedy(gru, 14, 20)}, file)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: onnx_models.py FOLDER WEIGHTS")
    main(sys.argv[1], sys.argv[2])

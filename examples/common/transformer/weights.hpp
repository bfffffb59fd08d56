// SPDX-License-Identifier: Apache-2.0
/// \file
/// The weights of an encoder-decoder Transformer, packed for products.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/packed_matrix.hpp>

#include <transformer/safetensors.hpp>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::example {
inline namespace SLUICE_ISA {

/// Scale and shift of a layer norm, both [d].
struct Norm {
  std::vector<float> weight, bias;
};

/// Self-attention and feed-forward part of a layer, pre-norm. Of queries, keys, values and what attention gives, number i of
/// head h is at i * heads + h.
struct Layer {
  Norm n1;
  PackedMatrix qkv;  ///< [3 d, d]: query (divided by the square root of the head's size), key, value
  PackedMatrix o;    ///< [d, d]
  Norm nf;           ///< norm before the feed-forward part
  PackedMatrix fi;   ///< [ff, d]
  PackedMatrix fo;   ///< [d, ff]
};

/// A layer that also looks at the source; its keys and values come from Weights::source.
struct DecoderLayer : Layer {
  Norm n2;
  PackedMatrix cq;  ///< [d, d], divided likewise
  PackedMatrix co;  ///< [d, d]
};

/// All weights: read only, shared by all models that use them.
struct Weights {
  std::ptrdiff_t d = 0;   ///< of a hidden vector
  std::ptrdiff_t ff = 0;  ///< of the feed-forward part
  int heads = 0;
  Vocabulary vocabulary;
  std::vector<float> embedding;  ///< [V, d]; of source, target and output
  std::vector<float> bias;       ///< [V]; of the output
  std::vector<Layer> encoder;
  std::vector<DecoderLayer> decoder;
  Norm en, dn;          ///< after the encoder, after the decoder
  PackedMatrix source;  ///< [layers * 2 d, d]: key and value of every decoder layer, from the encoder's output

  /// The token after a source: eos, or bos if there is none.
  Token end() const { return vocabulary.eos.empty() ? vocabulary.bos : vocabulary.eos.front(); }

  /// The output projection: logits = projection() h + bias, [V, d].
  MatrixView<float const> projection() const {
    auto const size = static_cast<std::ptrdiff_t>(vocabulary.size);
    return {embedding.data(), size, d, d};
  }

  /// Reads and checks a file with the names of README.md. The metadata may name bos, eos (nothing: none) and never, tokens
  /// with spaces between; else they are those of the translation model.
  /// \param layers  what the linear layers of encoder and decoder are kept as; the embedding stays as it is
  /// \throws std::runtime_error  for a file that is not what it should be, naming tensor and value
  static std::shared_ptr<Weights const> load(std::filesystem::path const& path, Precision layers = Precision::float32) {
    return from(Safetensors(path), layers);
  }
  static std::shared_ptr<Weights const> from(Safetensors const& file, Precision layers = Precision::float32);
};

namespace detail {

/// Takes tensors out of a file and remembers which.
class Reader {
 public:
  Reader(Safetensors const& file, Precision layers) : file_(file), layers_(layers) {}

  std::int64_t number(std::string const& key) const {
    auto const found = file_.metadata().find(key);
    if (found == file_.metadata().end()) throw std::runtime_error("weights: the metadata name no '" + key + "'");
    auto const& text = found->second;
    std::int64_t value = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > (1 << 20))
      throw std::runtime_error("weights: metadata '" + key + "' = '" + text + "': must be a number in [1, 2^20]");
    return value;
  }
  /// Tokens with spaces between, `otherwise` where the metadata do not name them.
  std::vector<Token> tokens(std::string const& key, Token size, std::vector<Token> otherwise) const {
    auto const found = file_.metadata().find(key);
    if (found == file_.metadata().end()) return otherwise;
    std::istringstream words(found->second);
    std::vector<Token> result;
    for (std::string word; words >> word;) {
      Token token = 0;
      auto const [end, error] = std::from_chars(word.data(), word.data() + word.size(), token);
      if (error != std::errc() || end != word.data() + word.size() || token < 0 || token >= size)
        throw std::runtime_error("weights: metadata '" + key + "' = '" + found->second + "': must be tokens in [0, " +
                                 std::to_string(size) + "), with spaces between");
      result.push_back(token);
    }
    return result;
  }
  std::vector<float> floats(std::string const& name, std::vector<std::int64_t> const& shape) {
    ++used_;
    return file_.floats(name, shape);
  }
  Norm norm(std::string const& name, std::int64_t d) {
    return {floats(name + ".weight", {d}), floats(name + ".bias", {d})};
  }
  /// Which numbers of a linear layer are those of heads, to be told apart as attend() wants them.
  enum class Heads : std::uint8_t { none, outputs, inputs };

  /// Linear layers of equal width, one below the other. The first `scaled` are multiplied by `scale`.
  PackedMatrix linear(std::vector<std::string> const& names, std::int64_t out, std::int64_t in, Heads by = Heads::none,
                      std::size_t scaled = 0, float scale = 1) {
    std::vector<float> weights, biases;
    auto const heads = number("heads");
    auto const place = [&](std::int64_t i, std::int64_t size, Heads side) {
      return static_cast<std::size_t>(by == side ? i % heads * (size / heads) + i / heads : i);
    };
    for (std::size_t i = 0; i < names.size(); ++i) {
      auto const factor = i < scaled ? scale : 1;
      auto const weight = floats(names[i] + ".weight", {out, in}), bias = floats(names[i] + ".bias", {out});
      for (std::int64_t row = 0; row < out; ++row) {
        auto const from = place(row, out, Heads::outputs);
        biases.push_back(bias[from] * factor);
        for (std::int64_t column = 0; column < in; ++column)
          weights.push_back(weight[from * static_cast<std::size_t>(in) + place(column, in, Heads::inputs)] * factor);
      }
    }
    return PackedMatrix({weights.data(), std::ssize(biases), in, in}, biases, layers_);
  }
  void check_all_used() const {
    if (used_ != file_.tensors().size())
      throw std::runtime_error("weights: the file holds " + std::to_string(file_.tensors().size()) +
                               " tensors, the model has " + std::to_string(used_));
  }

 private:
  Safetensors const& file_;
  Precision layers_;
  std::size_t used_ = 0;
};

}  // namespace detail

inline std::shared_ptr<Weights const> Weights::from(Safetensors const& file, Precision layers) {
  using Heads = detail::Reader::Heads;
  detail::Reader read(file, layers);
  auto result = std::make_shared<Weights>();
  auto& w = *result;
  w.d = read.number("d_model");
  w.ff = read.number("ffn");
  w.heads = static_cast<int>(read.number("heads"));
  if (w.d % w.heads != 0 || w.d / w.heads % 16 != 0)
    throw std::runtime_error("weights: d_model = " + std::to_string(w.d) + ", heads = " + std::to_string(w.heads) +
                             ": the size of a head must be a multiple of 16");
  auto const size = static_cast<Token>(read.number("vocab"));
  auto const bos = read.tokens("bos", size, {1});
  if (bos.size() != 1)
    throw std::runtime_error("weights: metadata 'bos' names " + std::to_string(bos.size()) + " tokens, must be one");
  w.vocabulary = {size, bos[0], read.tokens("eos", size, {2}), read.tokens("never", size, {0, 1})};
  w.embedding = read.floats("emb.weight", {w.vocabulary.size, w.d});
  w.bias = read.floats("bias", {w.vocabulary.size});
  auto const head = w.d / w.heads;
  auto const scale = 1 / std::sqrt(static_cast<float>(head));

  auto const layer = [&](Layer& to, std::string const& name, std::string const& norm) {
    to.n1 = read.norm(name + "n1", w.d);
    to.qkv = read.linear({name + "a.q", name + "a.k", name + "a.v"}, w.d, w.d, Heads::outputs, 1, scale);
    to.o = read.linear({name + "a.o"}, w.d, w.d, Heads::inputs);
    to.nf = read.norm(name + norm, w.d);
    to.fi = read.linear({name + "f.i"}, w.ff, w.d);
    to.fo = read.linear({name + "f.o"}, w.d, w.ff);
  };
  w.encoder.resize(static_cast<std::size_t>(read.number("encoder_layers")));
  for (std::size_t i = 0; i < w.encoder.size(); ++i) layer(w.encoder[i], "enc." + std::to_string(i) + ".", "n2");
  w.decoder.resize(static_cast<std::size_t>(read.number("decoder_layers")));
  std::vector<std::string> source;
  for (std::size_t i = 0; i < w.decoder.size(); ++i) {
    auto const name = "dec." + std::to_string(i) + ".";
    layer(w.decoder[i], name, "n3");
    w.decoder[i].n2 = read.norm(name + "n2", w.d);
    w.decoder[i].cq = read.linear({name + "c.q"}, w.d, w.d, Heads::outputs, 1, scale);
    w.decoder[i].co = read.linear({name + "c.o"}, w.d, w.d, Heads::inputs);
    source.insert(source.end(), {name + "c.k", name + "c.v"});
  }
  w.source = read.linear(source, w.d, w.d, Heads::outputs);
  w.en = read.norm("en", w.d);
  w.dn = read.norm("dn", w.d);
  read.check_all_used();
  return result;
}

}  // namespace SLUICE_ISA
}  // namespace sluice::example

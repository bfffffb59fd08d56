// SPDX-License-Identifier: Apache-2.0
/// \file
/// The Transformer of the examples in CTranslate2's format (binary version 6, TransformerSpec revision 7: what
/// python/ctranslate2/specs/model_spec.py and transformer_spec.py of CTranslate2 write).
#pragma once

#include <sluice/core/types.hpp>

#include <transformer/safetensors.hpp>
#include <transformer/weights.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::example {

/// The variables of a model.bin.
class CTranslate2Writer {
 public:
  void add(std::string const& name, std::vector<std::uint32_t> const& shape, std::vector<float> const& numbers) {
    put(name, shape, 0, numbers.data(), numbers.size() * sizeof(float));
  }
  void add(std::string const& name, std::int8_t flag) { put(name, {}, 1, &flag, 1); }
  void add(std::string const& name, std::int16_t number) { put(name, {}, 2, &number, 2); }
  void alias(std::string const& name, std::string const& of) {
    text(aliases_, name), text(aliases_, of);
    ++alias_count_;
  }

  /// \throws std::runtime_error  if the file cannot be written
  void write(std::filesystem::path const& path) const {
    std::string head;
    number(head, std::uint32_t{6});
    text(head, "TransformerSpec");
    number(head, std::uint32_t{7}), number(head, count_);
    std::string between;
    number(between, alias_count_);
    std::ofstream file(path, std::ios::binary);
    file << head << variables_ << between << aliases_;
    if (!file.flush()) throw std::runtime_error(path.string() + ": cannot be written");
  }

 private:
  template <class T>
  static void number(std::string& to, T value) {
    to.append(reinterpret_cast<char const*>(&value), sizeof value);  // little endian, as Safetensors asserts
  }
  static void text(std::string& to, std::string const& value) {
    number(to, static_cast<std::uint16_t>(value.size() + 1));
    to.append(value).push_back('\0');
  }
  void put(std::string const& name, std::vector<std::uint32_t> const& shape, std::uint8_t type, void const* data,
           std::size_t bytes) {
    text(variables_, name);
    number(variables_, static_cast<std::uint8_t>(shape.size()));
    for (auto const extent : shape) number(variables_, extent);
    number(variables_, type), number(variables_, static_cast<std::uint32_t>(bytes));
    variables_.append(static_cast<char const*>(data), bytes);
    ++count_;
  }

  std::string variables_, aliases_;
  std::uint32_t count_ = 0, alias_count_ = 0;
};

namespace detail {

/// Copies tensors, with the names of both formats.
class CTranslate2Conversion {
 public:
  CTranslate2Conversion(Safetensors const& file, CTranslate2Writer& out) : read_(file, Precision::float32), out_(out) {}

  void run(std::int64_t positions) {
    d_ = read_.number("d_model"), ffn_ = read_.number("ffn");
    auto const size = read_.number("vocab");
    out_.add("encoder/embeddings_0/weight", shape({size, d_}), read_.floats("emb.weight", {size, d_}));
    out_.alias("decoder/embeddings/weight", "encoder/embeddings_0/weight");
    out_.alias("decoder/projection/weight", "encoder/embeddings_0/weight");
    out_.add("decoder/projection/bias", shape({size}), read_.floats("bias", {size}));
    out_.add("encoder/position_encodings/encodings", shape({positions, d_}), sinusoid(positions));
    out_.alias("decoder/position_encodings/encodings", "encoder/position_encodings/encodings");
    for (std::string const side : {"encoder", "decoder"}) {
      auto const decoder = side == "decoder";
      out_.add(side + "/num_heads", static_cast<std::int16_t>(read_.number("heads")));
      out_.add(side + "/pre_norm", std::int8_t{1});
      out_.add(side + "/activation", std::int8_t{0});  // ReLU
      out_.add(side + "/scale_embeddings", std::int8_t{1});
      norm(decoder ? "dn" : "en", side + "/layer_norm");
      for (std::int64_t i = 0; i < read_.number(side + "_layers"); ++i)
        layer((decoder ? "dec." : "enc.") + std::to_string(i) + ".", side + "/layer_" + std::to_string(i) + "/",
              decoder);
    }
    read_.check_all_used();
  }

 private:
  static std::vector<std::uint32_t> shape(std::initializer_list<std::int64_t> extents) {
    return {extents.begin(), extents.end()};
  }
  /// Sine on even, cosine on odd channels; CTranslate2's own has sines in the first half and cosines in the second.
  std::vector<float> sinusoid(std::int64_t positions) const {
    std::vector<float> table;
    for (std::int64_t p = 0; p < positions; ++p)
      for (std::int64_t i = 0; i < d_; ++i) {
        auto const angle = static_cast<double>(p) *
                           std::exp(-std::log(10000.0) * static_cast<double>(i / 2 * 2) / static_cast<double>(d_));
        table.push_back(static_cast<float>(i % 2 == 0 ? std::sin(angle) : std::cos(angle)));
      }
    return table;
  }
  void norm(std::string const& from, std::string const& to) {
    out_.add(to + "/gamma", shape({d_}), read_.floats(from + ".weight", {d_}));
    out_.add(to + "/beta", shape({d_}), read_.floats(from + ".bias", {d_}));
  }
  /// Linear layers of equal size, one below the other.
  void linear(std::vector<std::string> const& from, std::string const& to, std::int64_t outputs, std::int64_t inputs) {
    std::vector<float> weights, biases;
    for (auto const& name : from) {
      auto const weight = read_.floats(name + ".weight", {outputs, inputs}),
                 bias = read_.floats(name + ".bias", {outputs});
      weights.insert(weights.end(), weight.begin(), weight.end());
      biases.insert(biases.end(), bias.begin(), bias.end());
    }
    auto const rows = std::ssize(biases);
    out_.add(to + "/weight", shape({rows, inputs}), weights);
    out_.add(to + "/bias", shape({rows}), biases);
  }
  void layer(std::string const& from, std::string const& to, bool decoder) {
    norm(from + "n1", to + "self_attention/layer_norm");
    linear({from + "a.q", from + "a.k", from + "a.v"}, to + "self_attention/linear_0", d_, d_);
    linear({from + "a.o"}, to + "self_attention/linear_1", d_, d_);
    if (decoder) {
      norm(from + "n2", to + "attention/layer_norm");
      linear({from + "c.q"}, to + "attention/linear_0", d_, d_);
      linear({from + "c.k", from + "c.v"}, to + "attention/linear_1", d_, d_);
      linear({from + "c.o"}, to + "attention/linear_2", d_, d_);
    }
    norm(from + (decoder ? "n3" : "n2"), to + "ffn/layer_norm");
    linear({from + "f.i"}, to + "ffn/linear_0", ffn_, d_);
    linear({from + "f.o"}, to + "ffn/linear_1", d_, ffn_);
  }

  Reader read_;
  CTranslate2Writer& out_;
  std::int64_t d_ = 0, ffn_ = 0;
};

}  // namespace detail

/// Writes model.bin, config.json and shared_vocabulary.json into a folder, which is made.
/// \param pieces     the tokens' names, all of them; each another
/// \param positions  most tokens of a source or output
/// \throws std::runtime_error  for weights that are not those of the examples' Transformer, or a file that cannot be written
inline void convert_to_ctranslate2(Safetensors const& weights, std::vector<std::string> const& pieces,
                                   std::filesystem::path const& folder, std::int64_t positions = 512) {
  detail::Reader const numbers(weights, Precision::float32);
  auto const size = static_cast<Token>(numbers.number("vocab"));
  if (std::ssize(pieces) != size)
    throw std::runtime_error("the vocabulary has " + std::to_string(pieces.size()) + " pieces, the weights have " +
                             std::to_string(size));
  auto const name = [&](Token token) { return pieces[static_cast<std::size_t>(token)]; };
  auto const bos = numbers.tokens("bos", size, {1}), eos = numbers.tokens("eos", size, {2});
  if (bos.size() != 1 || eos.size() != 1) throw std::runtime_error("the weights must name one bos and one eos");
  CTranslate2Writer out;
  detail::CTranslate2Conversion(weights, out).run(positions);
  std::filesystem::create_directories(folder);
  out.write(folder / "model.bin");
  auto const json = [&](char const* file, nlohmann::json const& what) {
    std::ofstream stream(folder / file);
    stream << what.dump(1) << '\n';
    if (!stream.flush()) throw std::runtime_error((folder / file).string() + ": cannot be written");
  };
  json("config.json", {{"add_source_bos", false},
                       {"add_source_eos", true},
                       {"bos_token", name(bos[0])},
                       {"eos_token", name(eos[0])},
                       {"unk_token", "<unk>"},
                       {"decoder_start_token", name(bos[0])},
                       {"layer_norm_epsilon", 1e-5}});
  json("shared_vocabulary.json", pieces);
}

}  // namespace sluice::example

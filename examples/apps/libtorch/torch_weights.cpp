// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/error.hpp>

#include <libtorch/torch_weights.hpp>
#include <transformer/safetensors.hpp>
#include <transformer/weights.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

namespace sluice::example {

namespace {

at::Tensor tensor(std::vector<float> const& numbers, at::IntArrayRef shape, at::TensorOptions const& options) {
  auto const host = at::empty(shape, at::kFloat);
  std::ranges::copy(numbers, host.data_ptr<float>());
  return host.to(options);
}

/// Where weights come from: files and random numbers have the same layers.
class Maker {
 public:
  Maker() = default;
  Maker(Maker const&) = delete;
  Maker& operator=(Maker const&) = delete;
  virtual ~Maker() = default;
  virtual TorchLayer norm(std::string const& name, std::int64_t d) = 0;
  /// Linear layers of equal width, one below the other. The first `scaled` are multiplied by `scale`.
  virtual TorchLayer linear(std::vector<std::string> const& names, std::int64_t out, std::int64_t in,
                            std::size_t scaled = 0, double scale = 1) = 0;
};

class FromFile : public Maker {
 public:
  FromFile(detail::Reader& read, at::TensorOptions const& options) : read_(read), options_(options) {}
  TorchLayer norm(std::string const& name, std::int64_t d) override {
    auto const norm = read_.norm(name, d);
    return {tensor(norm.weight, {d}, options_), tensor(norm.bias, {d}, options_)};
  }
  TorchLayer linear(std::vector<std::string> const& names, std::int64_t out, std::int64_t in, std::size_t scaled,
                    double scale) override {
    std::vector<float> weights, biases;
    for (std::size_t i = 0; i < names.size(); ++i) {
      auto const factor = i < scaled ? static_cast<float>(scale) : 1;
      for (auto const x : read_.floats(names[i] + ".weight", {out, in})) weights.push_back(x * factor);
      for (auto const x : read_.floats(names[i] + ".bias", {out})) biases.push_back(x * factor);
    }
    auto const rows = std::ssize(biases);
    return {tensor(weights, {rows, in}, options_), tensor(biases, {rows}, options_)};
  }

 private:
  detail::Reader& read_;
  at::TensorOptions options_;
};

class Random : public Maker {
 public:
  explicit Random(at::TensorOptions const& options) : options_(options) {}
  TorchLayer norm(std::string const&, std::int64_t d) override {
    return {at::ones({d}, options_), at::zeros({d}, options_)};
  }
  TorchLayer linear(std::vector<std::string> const& names, std::int64_t out, std::int64_t in, std::size_t scaled,
                    double scale) override {
    auto const rows = std::ssize(names) * out;
    auto const weight = at::randn({rows, in}, options_).mul_(1 / std::sqrt(static_cast<double>(in)));
    weight.narrow(0, 0, static_cast<std::int64_t>(scaled) * out).mul_(scale);
    return {weight, at::zeros({rows}, options_)};
  }

 private:
  at::TensorOptions options_;
};

/// All but the output layer; sizes, and the number of layers, are set.
void fill(TorchWeights& w, Maker& make) {
  auto const scale = 1 / std::sqrt(static_cast<double>(w.d / w.heads));
  auto const block = [&](TorchBlock& to, std::string const& name, std::string const& norm) {
    to.n1 = make.norm(name + "n1", w.d);
    to.qkv = make.linear({name + "a.q", name + "a.k", name + "a.v"}, w.d, w.d, 1, scale);
    to.o = make.linear({name + "a.o"}, w.d, w.d);
    to.nf = make.norm(name + norm, w.d);
    to.fi = make.linear({name + "f.i"}, w.ff, w.d);
    to.fo = make.linear({name + "f.o"}, w.d, w.ff);
  };
  for (std::size_t i = 0; i < w.encoder.size(); ++i) block(w.encoder[i], "enc." + std::to_string(i) + ".", "n2");
  std::vector<std::string> source;
  for (std::size_t i = 0; i < w.decoder.size(); ++i) {
    auto const name = "dec." + std::to_string(i) + ".";
    block(w.decoder[i], name, "n3");
    w.decoder[i].n2 = make.norm(name + "n2", w.d);
    w.decoder[i].cq = make.linear({name + "c.q"}, w.d, w.d, 1, scale);
    w.decoder[i].co = make.linear({name + "c.o"}, w.d, w.d);
    source.insert(source.end(), {name + "c.k", name + "c.v"});
  }
  w.source = make.linear(source, w.d, w.d);
  w.en = make.norm("en", w.d);
  w.dn = make.norm("dn", w.d);
}

}  // namespace

std::shared_ptr<TorchWeights const> TorchWeights::load(std::filesystem::path const& path,
                                                       at::TensorOptions const& options) {
  Safetensors const file(path);
  detail::Reader read(file, Precision::float32);
  auto result = std::make_shared<TorchWeights>();
  auto& w = *result;
  w.d = read.number("d_model"), w.ff = read.number("ffn"), w.heads = read.number("heads");
  if (w.d % w.heads != 0)
    throw std::runtime_error("weights: d_model = " + std::to_string(w.d) +
                             ": must be a multiple of heads = " + std::to_string(w.heads));
  auto const size = static_cast<Token>(read.number("vocab"));
  auto const bos = read.tokens("bos", size, {1});
  if (bos.size() != 1)
    throw std::runtime_error("weights: metadata 'bos' names " + std::to_string(bos.size()) + " tokens, must be one");
  w.vocabulary = {size, bos[0], read.tokens("eos", size, {2}), read.tokens("never", size, {0, 1})};
  w.embedding = tensor(read.floats("emb.weight", {size, w.d}), {size, w.d}, options);
  w.bias = tensor(read.floats("bias", {size}), {size}, options);
  w.encoder.resize(static_cast<std::size_t>(read.number("encoder_layers")));
  w.decoder.resize(static_cast<std::size_t>(read.number("decoder_layers")));
  FromFile make(read, options);
  fill(w, make);
  read.check_all_used();
  return result;
}

std::shared_ptr<TorchWeights const> TorchWeights::random(TorchShape const& shape, at::TensorOptions const& options,
                                                         std::uint64_t seed) {
  require(shape.heads >= 1 && shape.d >= 1 && shape.d % shape.heads == 0, "TorchShape: d", shape.d,
          "must be a multiple of heads");
  require(shape.ff >= 1, "TorchShape: ff", shape.ff, "must be at least 1");
  require(shape.encoder_layers >= 1, "TorchShape: encoder_layers", shape.encoder_layers, "must be at least 1");
  require(shape.decoder_layers >= 1, "TorchShape: decoder_layers", shape.decoder_layers, "must be at least 1");
  require(shape.vocabulary >= 4, "TorchShape: vocabulary", shape.vocabulary, "must be at least 4");
  at::manual_seed(seed);
  auto result = std::make_shared<TorchWeights>();
  auto& w = *result;
  w.d = shape.d, w.ff = shape.ff, w.heads = shape.heads;
  w.vocabulary = {static_cast<Token>(shape.vocabulary), 1, {2}, {0, 1}};
  w.embedding = at::randn({shape.vocabulary, w.d}, options).mul_(1 / std::sqrt(static_cast<double>(w.d)));
  w.bias = at::zeros({shape.vocabulary}, options);
  w.bias.narrow(0, 2, 1).fill_(-1000);
  w.encoder.resize(static_cast<std::size_t>(shape.encoder_layers));
  w.decoder.resize(static_cast<std::size_t>(shape.decoder_layers));
  Random make(options);
  fill(w, make);
  return result;
}

}  // namespace sluice::example

// SPDX-License-Identifier: Apache-2.0
/// \file
/// The model that enlarges images, and images through a decoder.
#pragma once

#include <sluice/core/statistics.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/speculative/heads.hpp>

#include <text/lines.hpp>
#include <transformer/heads.hpp>
#include <transformer/safetensors.hpp>
#include <transformer/transformer.hpp>
#include <transformer/weights.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <super_resolution/images.hpp>
#include <utility>
#include <vector>

namespace super_resolution {

using sluice::Token;

/// Pixels of an output: it has no eos, but a fixed length.
inline constexpr std::int32_t length = large_size * large_size;

/// The enlarged images, and what they cost.
struct Outcome {
  std::vector<Image> images;
  double block = 0;  ///< tokens settled in a round, on average; of Blockwise
  sluice::Statistics statistics;
  double seconds = 0;
};

namespace detail {

/// What `load` makes of a file, which its errors name.
template <class Load>
auto read(std::filesystem::path const& file, Load const& load) {
  if (!std::filesystem::is_regular_file(file)) throw text::InputError(file.string() + ": no such file");
  try {
    return load(file);
  } catch (std::runtime_error const& error) {
    std::string const what = error.what();
    throw text::InputError(what.find(file.string()) != std::string::npos ? what : file.string() + ": " + what);
  }
}

}  // namespace detail

/// Tokens are the intensities 0 to 255, in order, so that Distance means what it says, and bos. The model sees a small
/// image interpolated: then a place is the same in source and target, and what it has to learn are the edges.
class Upscaler {
 public:
  using Guessing = sluice::Speculated<sluice::example::Transformer,
                                      sluice::DraftHeads<sluice::ResidualHeads, sluice::DenseProjection>>;

  /// Reads model.safetensors and, if it is there, heads.safetensors.
  /// \throws text::InputError  for files that are not what they should be
  explicit Upscaler(std::filesystem::path const& folder)
      : weights_(detail::read(folder / "model.safetensors",
                              [](auto const& file) { return sluice::example::Weights::load(file); })),
        heads_(read_heads(folder / "heads.safetensors", weights_->d)),
        projection_(weights_->projection(), weights_->bias),
        model_(weights_),
        guessing_(model_, sluice::DraftHeads(heads_, projection_)) {
    auto const& vocabulary = weights_->vocabulary;
    if (vocabulary.size != 257 || vocabulary.bos != 256 || !vocabulary.eos.empty() || vocabulary.never != never)
      throw text::InputError((folder / "model.safetensors").string() +
                             ": is no model of images: its tokens must be 256 intensities and a bos, which is never "
                             "generated, without an eos");
  }

  /// What heads guess for at most, the model's own token included.
  std::int32_t longest_block() const { return heads_.size() + 1; }
  sluice::example::Transformer& model() { return model_; }
  Guessing& guessing() { return guessing_; }
  sluice::DenseProjection const& projection() const { return projection_; }

  /// Enlarges images by `model`, which is model() or guessing().
  /// \throws std::runtime_error  naming the image that has failed
  template <class Model, class Search>
  Outcome enlarge(Model& model, std::vector<Image> const& images, Search const& search, std::size_t batch) const {
    sluice::Decoder decoder(model, search, sluice::Batched{batch}, projection_);
    auto const start = std::chrono::steady_clock::now();
    for (auto const& image : images) {
      auto const source = interpolate(image);
      decoder.submit({.source = {source.begin(), source.end()}});
    }
    Outcome outcome;
    outcome.images.resize(images.size());
    std::size_t rounds = 0;
    for (auto more = true; more;) {
      more = decoder.step();
      for (sluice::Result result; decoder.poll(result);) {
        if (!result.ok()) throw std::runtime_error("image " + std::to_string(result.id + 1) + ": " + result.message);
        auto const& hypothesis = result.hypotheses.at(0);
        auto& image = outcome.images[static_cast<std::size_t>(result.id)];
        for (auto const token : hypothesis.tokens) image.push_back(static_cast<std::uint8_t>(token));
        rounds += hypothesis.blocks.size();
      }
    }
    outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (rounds > 0)
      outcome.block = static_cast<double>(length) * static_cast<double>(images.size()) / static_cast<double>(rounds);
    outcome.statistics = decoder.statistics();
    return outcome;
  }

 private:
  inline static std::vector<Token> const never{256};

  static sluice::ResidualHeads read_heads(std::filesystem::path const& file, std::ptrdiff_t d) {
    if (!std::filesystem::exists(file)) return {};  // they are trained last, on what the model makes
    return detail::read(
        file, [d](auto const& name) { return sluice::example::load_heads(sluice::example::Safetensors(name), d); });
  }

  std::shared_ptr<sluice::example::Weights const> weights_;
  sluice::ResidualHeads heads_;
  sluice::DenseProjection projection_;
  sluice::example::Transformer model_;
  Guessing guessing_;
};

}  // namespace super_resolution

// SPDX-License-Identifier: Apache-2.0
/// \file
/// Greedy and beam search as one writes them by hand over ONNX Runtime: the encoder once, the merged decoder once for each token.
#pragma once

#include <sluice/core/types.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <onnxruntime_cxx_api.h>
#include <string>
#include <utility>
#include <vector>

namespace sluice::bench {

/// Every output has `steps` tokens, none of `never`. The rows of a sentence are adjacent.
class ByHand {
 public:
  using Tokens = std::vector<Token>;

  ByHand(Ort::Session& encoder, Ort::Session& decoder, std::vector<Token> never)
      : encoder_(encoder), decoder_(decoder), never_(std::move(never)) {
    Ort::AllocatorWithDefaultOptions allocator;
    std::vector<std::string> of_sources;
    for (std::size_t i = 0; i < decoder.GetInputCount(); ++i) {
      std::string const name = decoder.GetInputNameAllocated(i, allocator).get();
      if (name.starts_with("past_key_values"))
        (name.find(".decoder.") != std::string::npos ? past_ : of_sources).push_back(name);
    }
    own_ = past_.size();  // keys and values of tokens come first
    past_.insert(past_.end(), of_sources.begin(), of_sources.end());
    for (auto const& name : past_) present_.push_back("present" + name.substr(15));
  }

  /// The best output of each source.
  std::vector<Tokens> decode(std::vector<Tokens> const& sources, std::int64_t width, int steps, Token bos) {
    encode(sources, width);
    auto const rows = std::ssize(sources) * width;
    std::vector<Tokens> outputs(static_cast<std::size_t>(rows));
    std::vector<std::int64_t> tokens(static_cast<std::size_t>(rows), bos), parents(static_cast<std::size_t>(rows));
    std::vector<double> sums(static_cast<std::size_t>(rows), 0);
    for (int step = 0; step < steps; ++step) {
      auto const logits = run(tokens, rows);
      auto const size = logits.GetTensorTypeAndShapeInfo().GetShape().back();
      auto const* const data = logits.GetTensorData<float>();
      if (width == 1) {
        for (std::int64_t r = 0; r < rows; ++r) {
          auto const* const line = data + r * size;
          Token best = -1;
          for (Token t = 0; t < size; ++t)
            if (allowed(t) && (best < 0 || line[t] > line[best])) best = t;
          tokens[static_cast<std::size_t>(r)] = best;
          outputs[static_cast<std::size_t>(r)].push_back(best);
        }
        continue;
      }
      auto moved = false;
      std::vector<Tokens> next(outputs.size());
      for (std::int64_t s = 0; s < std::ssize(sources); ++s) {
        candidates_.clear();
        for (std::int64_t k = 0; k < (step == 0 ? 1 : width); ++k) {
          auto const* const line = data + (s * width + k) * size;
          auto const most = *std::max_element(line, line + size);
          float total = 0;
          for (std::int64_t t = 0; t < size; ++t) total += std::exp(line[t] - most);
          auto const shift = most + std::log(total);
          for (Token t = 0; t < size; ++t)
            if (allowed(t))
              candidates_.push_back(
                  {sums[static_cast<std::size_t>(s * width + k)] + static_cast<double>(line[t] - shift), s * width + k,
                   t});
        }
        std::ranges::partial_sort(candidates_, candidates_.begin() + width, std::greater<>{}, &Candidate::sum);
        for (std::int64_t k = 0; k < width; ++k) {
          auto const& chosen = candidates_[static_cast<std::size_t>(k)];
          auto const row = static_cast<std::size_t>(s * width + k);
          tokens[row] = chosen.token, parents[row] = chosen.parent;
          moved = moved || chosen.parent != s * width + k;
          next[row] = outputs[static_cast<std::size_t>(chosen.parent)];
          next[row].push_back(chosen.token);
        }
        for (std::int64_t k = 0; k < width; ++k)
          sums[static_cast<std::size_t>(s * width + k)] = candidates_[static_cast<std::size_t>(k)].sum;
      }
      outputs = std::move(next);
      if (moved)
        for (std::size_t i = 0; i < own_; ++i) cache_[i] = gather(cache_[i], parents);
    }
    std::vector<Tokens> best;
    for (std::int64_t s = 0; s < std::ssize(sources); ++s) best.push_back(outputs[static_cast<std::size_t>(s * width)]);
    return best;
  }

 private:
  struct Candidate {
    double sum;
    std::int64_t parent;
    Token token;
  };

  bool allowed(Token token) const { return std::ranges::find(never_, token) == never_.end(); }

  static Ort::Value integers(std::vector<std::int64_t>& numbers, std::vector<std::int64_t> const& shape) {
    return Ort::Value::CreateTensor<std::int64_t>(memory(), numbers.data(), numbers.size(), shape.data(), shape.size());
  }
  static Ort::MemoryInfo memory() { return Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault); }

  /// Rows of a tensor in another order, possibly several times.
  static Ort::Value gather(Ort::Value const& from, std::vector<std::int64_t> const& rows) {
    auto shape = from.GetTensorTypeAndShapeInfo().GetShape();
    std::int64_t each = 1;
    for (std::size_t i = 1; i < shape.size(); ++i) each *= shape[i];
    shape[0] = std::ssize(rows);
    Ort::AllocatorWithDefaultOptions allocator;
    auto result = Ort::Value::CreateTensor<float>(allocator, shape.data(), shape.size());
    auto* to = result.GetTensorMutableData<float>();
    for (auto const row : rows) std::copy_n(from.GetTensorData<float>() + row * each, each, to), to += each;
    return result;
  }

  void encode(std::vector<Tokens> const& sources, std::int64_t width) {
    auto const count = std::ssize(sources);
    std::int64_t longest = 0;
    for (auto const& source : sources) longest = (std::max)(longest, std::int64_t{std::ssize(source)});
    std::vector<std::int64_t> tokens(static_cast<std::size_t>(count * longest)), mask(tokens.size());
    for (std::size_t s = 0; s < sources.size(); ++s)
      for (std::size_t i = 0; i < sources[s].size(); ++i)
        tokens[s * static_cast<std::size_t>(longest) + i] = sources[s][i],
                                                       mask[s * static_cast<std::size_t>(longest) + i] = 1;
    Ort::IoBinding binding(encoder_);
    auto const ids = integers(tokens, {count, longest}), seen = integers(mask, {count, longest});
    binding.BindInput("input_ids", ids), binding.BindInput("attention_mask", seen);
    binding.BindOutput("last_hidden_state", memory());
    encoder_.Run(Ort::RunOptions{nullptr}, binding);
    std::vector<std::int64_t> repeated;
    for (std::int64_t r = 0; r < count * width; ++r) repeated.push_back(r / width);
    hidden_ = gather(binding.GetOutputValues()[0], repeated);
    mask_.clear();
    for (auto const row : repeated)
      mask_.insert(mask_.end(), mask.begin() + row * longest, mask.begin() + (row + 1) * longest);
    source_mask_ = integers(mask_, {count * width, longest});
    cache_.clear();
  }

  Ort::Value run(std::vector<std::int64_t>& tokens, std::int64_t rows) {
    Ort::IoBinding binding(decoder_);
    auto const begins = cache_.empty();
    auto const ids = integers(tokens, {rows, 1});
    std::vector<std::int64_t> const one{1};
    bool has_past = !begins;
    auto const branch = Ort::Value::CreateTensor<bool>(memory(), &has_past, 1, one.data(), 1);
    binding.BindInput("input_ids", ids), binding.BindInput("encoder_attention_mask", source_mask_);
    binding.BindInput("encoder_hidden_states", hidden_), binding.BindInput("use_cache_branch", branch);
    Ort::AllocatorWithDefaultOptions allocator;
    if (begins)
      for (std::size_t i = 0; i < past_.size(); ++i) {
        std::vector<std::int64_t> const empty{rows, heads, 0, head_size};
        cache_.push_back(Ort::Value::CreateTensor<float>(allocator, empty.data(), empty.size()));
      }
    for (std::size_t i = 0; i < past_.size(); ++i) binding.BindInput(past_[i].c_str(), cache_[i]);
    binding.BindOutput("logits", memory());
    auto const outputs = begins ? past_.size() : own_;
    for (std::size_t i = 0; i < outputs; ++i) binding.BindOutput(present_[i].c_str(), memory());
    decoder_.Run(Ort::RunOptions{nullptr}, binding);
    auto values = binding.GetOutputValues();
    for (std::size_t i = 0; i < outputs; ++i) cache_[i] = std::move(values[i + 1]);
    return std::move(values[0]);
  }

  static constexpr std::int64_t heads = 4, head_size = 64;

  Ort::Session& encoder_;
  Ort::Session& decoder_;
  std::vector<Token> never_;
  std::vector<std::string> past_, present_;
  std::size_t own_ = 0;
  Ort::Value hidden_{nullptr}, source_mask_{nullptr};
  std::vector<std::int64_t> mask_;
  std::vector<Ort::Value> cache_;
  std::vector<Candidate> candidates_;
};

}  // namespace sluice::bench

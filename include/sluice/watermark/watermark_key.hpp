// SPDX-License-Identifier: Apache-2.0
/// \file
/// The secret of a watermark.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::inline v0 {

/// The key of a Watermark: up to 32 words of 64 bits. Whoever knows it can detect the mark, and can forge it. It has no
/// output operator, and no message of the library contains it. read_watermark_key() reads one from a file.
class WatermarkKey {
 public:
  static constexpr std::size_t most = 32;

  WatermarkKey() = default;  ///< no key
  /// \throws std::invalid_argument  for more than `most` words
  template <class = void>
  explicit WatermarkKey(std::span<std::uint64_t const> words) : size_(words.size()) {
    require(words.size() <= most, "watermark key: words", words.size(), "must be at most 32");
    std::copy(words.begin(), words.end(), words_.begin());
  }
  explicit WatermarkKey(std::uint64_t word) : WatermarkKey(std::span(&word, 1)) {}

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }  ///< words
  std::span<std::uint64_t const> words() const { return std::span(words_).first(size_); }

  /// Compares in a time that does not depend on the keys.
  friend bool operator==(WatermarkKey const& a, WatermarkKey const& b) {
    std::uint64_t differ = a.size_ ^ b.size_;
    for (std::size_t i = 0; i < most; ++i) differ |= a.words_[i] ^ b.words_[i];
    return differ == 0;
  }

 private:
  std::array<std::uint64_t, most> words_{};
  std::size_t size_ = 0;
};

}  // namespace sluice::inline v0

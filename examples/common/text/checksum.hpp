// SPDX-License-Identifier: Apache-2.0
/// \file
/// A checksum that detects changed bytes. It is not cryptographic.
#pragma once

#include <sluice/core/noise.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace text {

/// 64 bits over a text in pieces; the result does not depend on the pieces.
class Checksum {
 public:
  void add(std::string_view bytes) {
    length_ += bytes.size();
    for (; held_ > 0 && held_ < 8 && !bytes.empty(); bytes.remove_prefix(1)) hold(bytes.front());
    if (held_ == 8) take(word_), word_ = 0, held_ = 0;
    for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
      std::uint64_t word = 0;
      for (std::size_t i = 0; i < 8; ++i) word |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
      take(word);
    }
    for (auto const byte : bytes) hold(byte);
  }
  std::uint64_t value() const { return sluice::mix(sluice::mix(state_ ^ word_) ^ length_); }
  std::uint64_t length() const { return length_; }

 private:
  void hold(char byte) { word_ |= std::uint64_t{static_cast<unsigned char>(byte)} << (8 * held_++); }
  void take(std::uint64_t word) { state_ = std::rotl((state_ ^ word) * 0x9E3779B97F4A7C15, 29); }

  std::uint64_t state_ = 0x6A09E667F3BCC908, word_ = 0, length_ = 0;
  std::size_t held_ = 0;  // bytes of word_
};

inline std::uint64_t checksum(std::string_view bytes) {
  Checksum sum;
  sum.add(bytes);
  return sum.value();
}

/// Sixteen digits.
inline std::string hexadecimal(std::uint64_t value) {
  std::string digits(16, '0');
  for (auto digit = digits.rbegin(); value > 0; value >>= 4) *digit++ = "0123456789abcdef"[value & 15];
  return digits;
}

}  // namespace text

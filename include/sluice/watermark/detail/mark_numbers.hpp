// SPDX-License-Identifier: Apache-2.0
/// \file
/// The numbers by which a watermark marks and is recognised.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/noise.hpp>
#include <sluice/core/types.hpp>
#include <sluice/watermark/detail/philox.hpp>
#include <sluice/watermark/detail/sampling_table.hpp>
#include <sluice/watermark/detail/sha256.hpp>
#include <sluice/watermark/watermark.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::inline v0::detail {

/// Bytes for a hash; integers are written with the low byte first.
class HashedBytes {
 public:
  SLUICE_LAZY void add(std::string_view text) {
    for (auto const c : text) bytes_[size_++] = static_cast<std::uint8_t>(c);
  }
  SLUICE_LAZY void add(std::uint64_t value, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) bytes_[size_++] = static_cast<std::uint8_t>(value >> (8 * i));
  }
  std::span<std::uint8_t const> bytes() const { return std::span(bytes_).first(size_); }

 private:
  std::array<std::uint8_t, 320> bytes_{};  // the longest is a key of 32 words
  std::size_t size_ = 0;
};

SLUICE_LAZY std::uint64_t read_low_first(std::span<std::uint8_t const> bytes, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = count; i > 0; --i) value = value << 8 | bytes[i - 1];
  return value;
}

/// The bytes of a key, the low byte of each word first; `words` > its size: zeros follow.
SLUICE_LAZY HashedBytes key_bytes(WatermarkKey const& key, std::size_t words = 0) {
  HashedBytes bytes;
  for (auto const word : key.words()) bytes.add(word, 8);
  for (auto i = key.size(); i < words; ++i) bytes.add(0, 8);
  return bytes;
}

/// One of the two keys that stand for `key`: which = 'a' or 'b'. A key of one word becomes one as in vLLM
/// (derive_watermark_key), any other one four words.
SLUICE_LAZY WatermarkKey derived_key(WatermarkKey const& key, char which) {
  HashedBytes bytes;
  bytes.add("key_"), bytes.add(static_cast<std::uint64_t>(static_cast<unsigned char>(which)), 1);
  Sha256 hash;
  auto const reversed = [](std::uint64_t x) {
    std::uint64_t out = 0;
    for (int i = 0; i < 8; ++i) out = out << 8 | ((x >> (8 * i)) & 0xFF);
    return out;
  };
  for (auto const word : key.words()) bytes.add(reversed(word), 8);
  hash.add(bytes.bytes());
  auto const digest = hash.digest();
  std::array<std::uint64_t, 4> words{};
  for (std::size_t i = 0; i < 4; ++i) words[i] = reversed(read_low_first(std::span(digest).subspan(8 * i), 8));
  return WatermarkKey(std::span<std::uint64_t const>(words).first(key.size() == 1 ? 1 : 4));
}

/// The tokens before a place of an output; what stands before the output is `before`.
class MarkContext {
 public:
  MarkContext(std::span<Token const> output, std::int32_t width, Token before)
      : output_(output), width_(static_cast<std::size_t>(width)), before_(before) {}
  std::size_t size() const { return width_; }
  /// The i-th of the tokens, the oldest first.
  Token operator[](std::size_t i) const {
    auto const at = output_.size() + i;
    return at < width_ ? before_ : output_[at - width_];
  }
  /// Whether the same tokens stand before an earlier place of the output. O(length).
  SLUICE_LAZY bool repeated() const {
    for (auto n = output_.size(); n > 0; --n)
      if (equals({output_.first(n - 1), width_, before_})) return true;
    return false;
  }

 private:
  MarkContext(std::span<Token const> output, std::size_t width, Token before)
      : output_(output), width_(width), before_(before) {}
  bool equals(MarkContext const& other) const {
    for (auto i = width_; i > 0; --i)
      if ((*this)[i - 1] != other[i - 1]) return false;
    return true;
  }
  std::span<Token const> output_;
  std::size_t width_;
  Token before_;
};

/// Where in the key's numbers a context is.
struct MarkPlace {
  std::uint64_t noise = 0;               // sluice: of Query::noise; hashes of words: the context's
  std::array<std::uint32_t, 4> state{};  // philox
  HashedBytes message{};                 // hmac_sha256: all but the token
};

/// The numbers of one key: for each context and token a uniform number, or bits.
class MarkNumbers {
 public:
  MarkNumbers() = default;
  SLUICE_LAZY MarkNumbers(Watermark const& options, WatermarkKey const& key) : prf_(options.prf), key_(key) {
    if (key.empty()) return;
    switch (prf_) {
      case WatermarkPrf::sluice: hmac_ = HmacSha256(key_bytes(key).bytes()); break;
      case WatermarkPrf::hmac_sha256: hmac_ = HmacSha256(key_bytes(key, 4).bytes()); break;
      case WatermarkPrf::philox: break;
      case WatermarkPrf::synthid_text: {
        Sha256 hash;
        hash.add(key_bytes(key).bytes());
        // The digest as one number, high byte first, modulo 2^63 - 1.
        constexpr auto modulus = (std::uint64_t{1} << 63) - 1;
        std::uint64_t rest = 0;
        for (auto const byte : hash.digest())
          for (int bit = 7; bit >= 0; --bit) rest = (2 * rest + ((byte >> bit) & 1)) % modulus;
        start_ = rest;
        break;
      }
      case WatermarkPrf::hugging_face: start_ = 1, table_ = sampling_table(); break;
    }
  }

  SLUICE_LAZY MarkPlace place(MarkContext const& context) const {
    MarkPlace place;
    switch (prf_) {
      case WatermarkPrf::sluice: {
        HashedBytes message;
        message.add("sluice-watermark-1"), message.add(context.size(), 1);
        for (std::size_t i = 0; i < context.size(); ++i) message.add(unsigned_token(context[i]), 4);
        place.noise = (std::max)(read_low_first(hmac_(message.bytes()), 8), std::uint64_t{1});
        break;
      }
      case WatermarkPrf::philox: place.state = absorbed(context); break;
      case WatermarkPrf::hmac_sha256:
        place.message.add(std::string_view("vllm-watermark-hmac-sha256-v1\0", 30)),
            place.message.add(context.size(), 4);
        for (std::size_t i = 0; i < context.size(); ++i) place.message.add(signed_token(context[i]), 8);
        break;
      case WatermarkPrf::synthid_text:
      case WatermarkPrf::hugging_face:
        place.noise = start_;
        for (std::size_t i = 0; i < context.size(); ++i)
          place.noise = accumulate(place.noise, signed_token(context[i]));
    }
    return place;
  }

  /// In (0, 1); not of those with a word for each round.
  SLUICE_LAZY double uniform(MarkPlace const& place, Token token) const {
    if (prf_ == WatermarkPrf::sluice) return sluice::uniform(place.noise, token);
    auto const value = static_cast<double>((word(place, token) >> 8) + 1) / static_cast<double>((1 << 24) + 1);
    return static_cast<double>(static_cast<float>(value));  // as vLLM has it
  }
  /// Independent bits for the rounds of a tournament; not of hmac_sha256.
  SLUICE_LAZY std::uint32_t bits(MarkPlace const& place, Token token) const {
    if (prf_ == WatermarkPrf::sluice) {
      auto const value = derive(place.noise, unsigned_token(token));
      return static_cast<std::uint32_t>(value >> 32);
    }
    if (prf_ == WatermarkPrf::philox) return word(place, token);
    std::uint32_t bits = 0;
    auto const own = accumulate(place.noise, signed_token(token));
    for (std::size_t i = 0; i < key_.size(); ++i) {
      auto value = accumulate(own, key_.words()[i]);
      if (prf_ == WatermarkPrf::hugging_face) {
        bits |= static_cast<std::uint32_t>((table_[value % 65536 / 64] >> (value % 64)) & 1) << i;
        continue;
      }
      for (int k = 0; k < 12; ++k) value = shifted(accumulate(value, 1), 5);
      bits |= static_cast<std::uint32_t>((value >> 30) & 1) << i;
    }
    return bits;
  }

 private:
  static constexpr std::uint64_t unsigned_token(Token token) { return static_cast<std::uint32_t>(token); }
  static constexpr std::uint64_t signed_token(Token token) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(token));
  }
  /// The hash of synthid-text: a linear congruential generator.
  static constexpr std::uint64_t accumulate(std::uint64_t hash, std::uint64_t data) {
    return (hash + data) * 6364136223846793005u + 1;
  }
  static constexpr std::uint64_t shifted(std::uint64_t value, int by) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value) >> by);
  }
  std::array<std::uint32_t, 2> key_words() const {
    auto const key = key_.words()[0];
    return {static_cast<std::uint32_t>(key & 0xFFFFFFFFu), static_cast<std::uint32_t>(key >> 32)};
  }
  SLUICE_LAZY std::array<std::uint32_t, 4> absorbed(MarkContext const& context) const {
    std::array<std::uint32_t, 4> state{0x574D4358u, static_cast<std::uint32_t>(context.size()), 0, 0};
    for (std::size_t i = 0; i < context.size(); i += 4) {
      for (std::size_t j = 0; j < 4; ++j)
        state[j] ^= i + j < context.size() ? static_cast<std::uint32_t>(context[i + j])
                                           : 0xFFFFFFFFu - static_cast<std::uint32_t>(j);
      auto key = key_words();
      key[0] ^= static_cast<std::uint32_t>(i);
      state = philox(state, key);
    }
    return state;
  }
  SLUICE_LAZY std::uint32_t word(MarkPlace const& place, Token token) const {
    auto const own = static_cast<std::uint32_t>(token);
    if (prf_ == WatermarkPrf::hmac_sha256) {
      auto message = place.message;
      message.add(signed_token(token), 8);
      return static_cast<std::uint32_t>(read_low_first(hmac_(message.bytes()), 4));
    }
    auto key = key_words();
    key[0] ^= place.state[3], key[1] ^= 0x574D544Bu;
    return philox({own >> 2, place.state[0], place.state[1], place.state[2]}, key)[own & 3];
  }

  WatermarkPrf prf_ = WatermarkPrf::sluice;
  WatermarkKey key_{};
  HmacSha256 hmac_{};
  std::uint64_t start_ = 0;           // of hashes of words
  std::vector<std::uint64_t> table_;  // hugging_face
};

}  // namespace sluice::inline v0::detail

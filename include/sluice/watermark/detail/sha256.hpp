// SPDX-License-Identifier: Apache-2.0
/// \file
/// SHA-256 and HMAC-SHA256.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::inline v0::detail {

/// SHA-256 (FIPS 180-4) of bytes that are added piece by piece.
class Sha256 {
 public:
  using Digest = std::array<std::uint8_t, 32>;
  static constexpr std::size_t block = 64;

  SLUICE_LAZY void add(std::span<std::uint8_t const> bytes) {
    auto const held = size_ % block;
    size_ += bytes.size();
    if (held + bytes.size() < block) {
      std::copy(bytes.begin(), bytes.end(), buffer_.begin() + static_cast<std::ptrdiff_t>(held));
      return;
    }
    if (held > 0) {
      auto const rest = bytes.first(block - held);
      std::copy(rest.begin(), rest.end(), buffer_.begin() + static_cast<std::ptrdiff_t>(held));
      compress(buffer_);
      bytes = bytes.subspan(rest.size());
    }
    for (; bytes.size() >= block; bytes = bytes.subspan(block)) compress(bytes.first<block>());
    std::copy(bytes.begin(), bytes.end(), buffer_.begin());
  }
  /// The hash of all that was added; nothing may be added afterwards.
  SLUICE_LAZY Digest digest() {
    auto const bits = cast<std::uint64_t>(size_) * 8;
    constexpr std::array<std::uint8_t, block> end{0x80};
    add(std::span(end).first(size_ % block < 56 ? 56 - size_ % block : 120 - size_ % block));
    std::array<std::uint8_t, 8> length{};
    for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<std::uint8_t>(bits >> (56 - 8 * i));
    add(length);
    Digest out{};
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<std::uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
    return out;
  }

 private:
  SLUICE_LAZY void compress(std::span<std::uint8_t const, block> bytes) {
    // The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
    constexpr std::array<std::uint32_t, 64> constants{
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
    std::array<std::uint32_t, 64> w{};
    for (std::size_t i = 0; i < block; ++i) w[i / 4] = w[i / 4] << 8 | bytes[i];
    for (std::size_t i = 16; i < 64; ++i) {
      auto const a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + w[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) +
             (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (std::size_t i = 0; i < 64; ++i) {
      auto const choice = (e & f) ^ (~e & g), majority = (a & b) ^ (a & c) ^ (b & c);
      auto const x = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + choice + constants[i] + w[i];
      auto const y = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + majority;
      h = g, g = f, f = e, e = d + x, d = c, c = b, b = a, a = x + y;
    }
    state_[0] += a, state_[1] += b, state_[2] += c, state_[3] += d;
    state_[4] += e, state_[5] += f, state_[6] += g, state_[7] += h;
  }

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, block> buffer_{};
  std::size_t size_ = 0;
};

/// HMAC-SHA256 (RFC 2104) under one key, whose two blocks are hashed once.
class HmacSha256 {
 public:
  HmacSha256() = default;
  SLUICE_LAZY explicit HmacSha256(std::span<std::uint8_t const> key) {
    std::array<std::uint8_t, Sha256::block> padded{};
    if (key.size() > padded.size()) {
      Sha256 hash;
      hash.add(key);
      auto const digest = hash.digest();
      std::copy(digest.begin(), digest.end(), padded.begin());
    } else {
      std::copy(key.begin(), key.end(), padded.begin());
    }
    auto const mask = [&](std::uint8_t by) {
      auto masked = padded;
      for (auto& byte : masked) byte ^= by;
      return masked;
    };
    inner_.add(mask(0x36)), outer_.add(mask(0x5c));
  }
  SLUICE_LAZY Sha256::Digest operator()(std::span<std::uint8_t const> message) const {
    auto inner = inner_, outer = outer_;
    inner.add(message);
    outer.add(inner.digest());
    return outer.digest();
  }

 private:
  Sha256 inner_, outer_;
};

}  // namespace sluice::inline v0::detail

// SPDX-License-Identifier: Apache-2.0
/// \file
/// TokenBytes: the tokens of a model as text.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// The bytes of every token: what the tokeniser puts into a text for it; none for control tokens. A byte-fallback token is one
/// byte. A space is a space, however the tokeniser marks it. A token may be part of a character.
///
/// Immutable and shared: a copy costs a reference count. All bytes are in one buffer. A token of up to 15 bytes is found with
/// one memory access.
class TokenBytes {
 public:
  /// No tokens.
  TokenBytes() = default;
  /// \param tokens  [Vocabulary::size]: the bytes of each
  SLUICE_LAZY explicit TokenBytes(std::span<std::string const> tokens)
      : size_(static_cast<std::int32_t>(tokens.size())) {
    auto end = tokens.size() * cell;
    auto total = end;
    for (auto const& token : tokens) total += token.size() < cell ? 0 : token.size();
    auto buffer = std::make_shared<char[]>(total);  // NOLINT(modernize-avoid-c-arrays)
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      auto const& token = tokens[i];
      auto* const at = buffer.get() + i * cell;
      if (token.size() < cell) {
        std::copy(token.begin(), token.end(), at);
        at[cell - 1] = static_cast<char>(token.size());
        continue;
      }
      Elsewhere const where{end, static_cast<std::uint32_t>(token.size())};
      std::memcpy(at, &where, sizeof where.begin + sizeof where.length);
      at[cell - 1] = elsewhere;
      end += token.copy(buffer.get() + end, token.size());
    }
    buffer_ = std::move(buffer);
  }
  SLUICE_LAZY explicit TokenBytes(std::vector<std::string> const& tokens) : TokenBytes(std::span(tokens)) {}

  /// How many tokens there are: 0 .. size() - 1.
  std::int32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  /// The bytes of a token; valid as long as any copy lives.
  /// \throws std::invalid_argument  for a token that is not one of them
  SLUICE_LAZY std::string_view bytes(Token token) const {
    if (token < 0 || token >= size_)
      require(false, "token", token, "has no bytes: there are those of " + std::to_string(size_) + " tokens");
    auto const* const at = buffer_.get() + static_cast<std::size_t>(token) * cell;
    if (at[cell - 1] != elsewhere) return {at, static_cast<std::size_t>(at[cell - 1])};
    Elsewhere where;
    std::memcpy(&where, at, sizeof where.begin + sizeof where.length);
    return {buffer_.get() + where.begin, where.length};
  }

  /// The joined bytes of several tokens.
  /// \throws std::invalid_argument  as bytes() does
  SLUICE_LAZY std::string text(std::span<Token const> tokens) const {
    std::string out;
    for (auto const token : tokens) out += bytes(token);
    return out;
  }

 private:
  static constexpr std::size_t cell = 16;  // bytes of a cell; the last is the number of bytes
  static constexpr char elsewhere = 16;    // that number if the bytes are after all cells
  struct Elsewhere {
    std::uint64_t begin;
    std::uint32_t length;
  };
  static_assert(offsetof(Elsewhere, length) + sizeof(std::uint32_t) < cell);

  std::shared_ptr<char const[]> buffer_;  // NOLINT(modernize-avoid-c-arrays)
  std::int32_t size_ = 0;
};

}  // namespace sluice::inline v0

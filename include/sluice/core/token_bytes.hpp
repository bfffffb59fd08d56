// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a model's tokens are as text.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// The bytes of every token: what the tokeniser puts into a text for it, and nothing for control tokens. A byte-fallback
/// token is one byte; where a tokeniser writes a space in its own way, the space. Characters need not be whole.
///
/// Immutable and shared: a copy costs a reference count. All bytes lie in one buffer.
template <class = void>
class LazyTokenBytes {
 public:
  /// Of no tokens.
  LazyTokenBytes() = default;
  /// \param tokens  [Vocabulary::size]: the bytes of each
  explicit LazyTokenBytes(std::span<std::string const> tokens) {
    auto data = std::make_shared<Data>();
    std::size_t total = 0;
    for (auto const& token : tokens) total += token.size();
    data->buffer.reserve(total), data->begins.reserve(tokens.size() + 1);
    for (auto const& token : tokens) data->begins.push_back(data->buffer.size()), data->buffer += token;
    data->begins.push_back(total);
    data_ = std::move(data);
  }
  explicit LazyTokenBytes(std::vector<std::string> const& tokens) : LazyTokenBytes(std::span(tokens)) {}

  /// Tokens: 0 .. size() - 1.
  std::int32_t size() const { return data_ == nullptr ? 0 : static_cast<std::int32_t>(data_->begins.size()) - 1; }
  bool empty() const { return size() == 0; }

  /// Valid as long as any copy lives.
  /// \throws std::invalid_argument  for a token that is not one of them
  std::string_view bytes(Token token) const {
    if (token < 0 || token >= size())
      require(false, "token", token, "has no bytes: there are those of " + std::to_string(size()) + " tokens");
    auto const* const begin = data_->begins.data() + token;
    return std::string_view(data_->buffer).substr(begin[0], begin[1] - begin[0]);
  }

  /// The bytes of all of them, one after the other.
  /// \throws std::invalid_argument  as bytes() does
  std::string text(std::span<Token const> tokens) const {
    std::string out;
    for (auto const token : tokens) out += bytes(token);
    return out;
  }

 private:
  struct Data {
    std::string buffer;
    std::vector<std::size_t> begins;  // [size + 1]
  };
  std::shared_ptr<Data const> data_;
};
using TokenBytes = LazyTokenBytes<>;

}  // namespace sluice::inline v0

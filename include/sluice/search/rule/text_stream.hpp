// SPDX-License-Identifier: Apache-2.0
/// \file
/// Text to show while it grows.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/rule/stop_at.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// The text of one output, in pieces, from its settled tokens (Decoder::settled, Delivery::settled): never a part of what
/// may become a stop, never half a UTF-8 character, nothing that is taken back. All pieces together are StopAt::text() of
/// the result. Bytes that are no UTF-8 are shown as they are.
template <class = void>
class LazyTextStream {
 public:
  /// \param stops  of the request, made with the tokens' bytes; it may have no stops
  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved, where the linter does not see it in a template
  explicit LazyTextStream(StopAt stops, StopText stop = StopText::cut) : stops_(std::move(stops)), stop_(stop) {}
  explicit LazyTextStream(TokenBytes bytes) : LazyTextStream(StopAt({.bytes = std::move(bytes)})) {}

  /// \param settled  from the first on, as many as there are now: what came earlier, and more
  /// \returns        what may be shown more. Valid until the next call
  /// \throws std::invalid_argument  for a token without bytes, or fewer tokens than before
  std::string_view settle(std::span<Token const> settled) {
    require(settled.size() >= begins_.size(), "settled", std::to_string(settled.size()) + " tokens",
            "there were " + std::to_string(begins_.size()) + " before");
    for (auto const token : settled.subspan(begins_.size())) {
      auto const bytes = stops_.stops().bytes.bytes(token);
      begins_.push_back(text_.size());
      text_ += bytes;
      state_ = stops_.next(state_, token);
    }
    auto const from = shown_;
    shown_ = (std::max)(shown_, whole_characters(certain()));
    return std::string_view(text_).substr(from, shown_ - from);
  }

  /// The output has ended: the rest of it.
  /// \param hypothesis  the result's, of which the settled tokens were the beginning
  /// \throws std::invalid_argument  as StopAt::text() does, or if what has been shown is not its beginning
  std::string end(Hypothesis const& hypothesis) const {
    auto const all = stops_.text(hypothesis, stop_);
    require(all.starts_with(std::string_view(text_).substr(0, shown_)), "hypothesis", all,
            "does not begin with what has been shown");
    return all.substr(shown_);
  }

 private:
  /// How much of the text is in the result's whatever comes.
  std::size_t certain() const {
    if (begins_.empty()) return 0;
    auto const ended = state_.stop >= 0;  // if it counts, the text ends there; if not, more tokens will tell
    auto const at_string = ended && stops_.is_string(state_.stop);
    if (stop_ == StopText::kept)
      return at_string ? stops_.string_place(state_.stop, text_, begins_.back()).end : text_.size();
    auto const tokens = stops_.open_tokens(state_);
    auto open = text_.size() - stops_.open_bytes(state_);
    if (tokens > 0) open = (std::min)(open, begins_[begins_.size() - tokens]);
    if (at_string) open = (std::min)(open, stops_.string_place(state_.stop, text_, begins_.back()).begin);
    return open;
  }

  /// The same without a character that has only begun.
  std::size_t whole_characters(std::size_t length) const {
    for (std::size_t back = 1; back <= std::min<std::size_t>(length, 4); ++back) {
      auto const byte = static_cast<unsigned char>(text_[length - back]);
      if ((byte & 0xC0) == 0x80) continue;  // not its first
      auto const size = byte >= 0xF5 ? 1u : byte >= 0xF0 ? 4u : byte >= 0xE0 ? 3u : byte >= 0xC2 ? 2u : 1u;
      return back < size ? length - back : length;
    }
    return length;
  }

  StopAt stops_;
  StopText stop_;
  StopAt::State state_{};
  std::string text_;
  std::vector<std::size_t> begins_;  // [token]: where its bytes begin
  std::size_t shown_ = 0;
};
using TextStream = LazyTextStream<>;

}  // namespace sluice::inline v0

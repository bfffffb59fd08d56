// SPDX-License-Identifier: Apache-2.0
/// \file
/// Streams the text of an output.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/processor/stop_sequences.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// The text of one output, in pieces, from its settled tokens (Decoder::settled, Delivery::settled). It never shows
/// part of what may become a stop or half of a UTF-8 character, and never takes anything back. All pieces together are
/// StopSequences::text() of the result. Bytes that are not valid UTF-8 are shown unchanged.
class TextStream {
 public:
  /// \param stops  of the request, built with the tokens' bytes; it may be without stops
  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved; the linter misses it in a template
  template <class = void>
  explicit TextStream(StopSequences stops, IncludeStop stop = IncludeStop::no)
      : stops_(std::move(stops)), stop_(stop) {}
  template <class = void>
  explicit TextStream(TokenBytes bytes) : TextStream(StopSequences({.bytes = std::move(bytes)})) {}

  /// \param settled  all settled tokens so far: those of earlier calls, and more
  /// \returns        the text that can now be shown in addition. Valid until the next call
  /// \throws std::invalid_argument  for a token without bytes, or fewer tokens than before
  template <class = void>
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

  /// Ends the output; returns the rest of its text.
  /// \param hypothesis  the result's, which begins with the settled tokens
  /// \throws std::invalid_argument  as StopSequences::text() does, or if it does not begin with the text already shown
  template <class = void>
  std::string end(Hypothesis const& hypothesis) const {
    auto const all = stops_.text(hypothesis, stop_);
    require(all.starts_with(std::string_view(text_).substr(0, shown_)), "hypothesis", all,
            "does not begin with what has been shown");
    return all.substr(shown_);
  }

 private:
  /// The length of the text that is certain to be in the result.
  template <class = void>
  std::size_t certain() const {
    if (begins_.empty()) return 0;
    auto const ended = state_.stop >= 0;  // if the stop counts, the text ends there; if not, more tokens will show it
    auto const at_string = ended && stops_.is_string(state_.stop);
    if (stop_ == IncludeStop::yes)
      return at_string ? stops_.string_place(state_.stop, text_, begins_.back()).end : text_.size();
    auto const tokens = stops_.open_tokens(state_);
    auto open = text_.size() - stops_.open_bytes(state_);
    if (tokens > 0) open = (std::min)(open, begins_[begins_.size() - tokens]);
    if (at_string) open = (std::min)(open, stops_.string_place(state_.stop, text_, begins_.back()).begin);
    return open;
  }

  /// `length` without a final incomplete character.
  template <class = void>
  std::size_t whole_characters(std::size_t length) const {
    for (std::size_t back = 1; back <= std::min<std::size_t>(length, 4); ++back) {
      auto const byte = static_cast<unsigned char>(text_[length - back]);
      if ((byte & 0xC0) == 0x80) continue;  // not its first byte
      auto const size = byte >= 0xF5 ? 1u : byte >= 0xF0 ? 4u : byte >= 0xE0 ? 3u : byte >= 0xC2 ? 2u : 1u;
      return back < size ? length - back : length;
    }
    return length;
  }

  StopSequences stops_;
  IncludeStop stop_;
  StopSequences::State state_{};
  std::string text_;
  std::vector<std::size_t> begins_;  // [token]: where its bytes begin
  std::size_t shown_ = 0;
};

}  // namespace sluice::inline v0

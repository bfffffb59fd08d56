// SPDX-License-Identifier: Apache-2.0
/// \file
/// StopSequences: texts and tokens that end an output. TextStream: the text of an output as it grows.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/logits_processor.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/processor/detail/byte_matcher.hpp>
#include <sluice/processor/phrase.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// The stop sequences and stop strings of a request, and from where on they count.
struct StopOptions {
  std::vector<Phrase> tokens{};        ///< any of these sequences; without eos, which always ends outputs
  std::vector<std::string> strings{};  ///< any of these strings, as bytes of the text; needs `bytes`
  TokenBytes bytes{};                  ///< for every token of the vocabulary
  std::int32_t minimum = 0;  ///< number of output tokens, forced prefix included, from which on a stop counts; an
                             ///< earlier stop is ignored for good. >= 0
};

/// Whether the text of an output includes the stop that ended it (vLLM's include_stop_str_in_output).
enum class IncludeStop : std::uint8_t {
  no,   ///< the text ends where the stop begins
  yes,  ///< the text ends where the stop ends
};

/// Ends outputs as an engine's `stop`, `stop_token_ids` or antiprompts do. A logits processor for any search. A
/// hypothesis whose output completes a stop is finished there, with its log-probability up to and including
/// that token; it competes like one that has ended in eos. `Hypothesis::stop` is then the index of the stop, those of
/// `tokens` before those of `strings`. Hypothesis::tokens holds all tokens generated, including the whole last one;
/// text() cuts the text.
///
/// A string may begin and end anywhere in a token; control tokens, which have no bytes, do not interrupt it. A stop may
/// begin in the forced prefix but not end in it; the prompt does not count. If one token completes several stops,
/// strings come before tokens, then the one that ends first, then the longest, then the lowest index. While the search
/// allows no end (length.min), a stop is ignored, like one before `minimum`. The last allowed token may complete a
/// stop, unless the search spends it on eos (AtMaximum::force_eos).
///
/// Costs one table lookup per byte of a token (per token, for sequences), and no model call. Copies are cheap.
class StopSequences {
 public:
  struct State {
    std::int32_t tokens = 0, bytes = 0;  // states of the automata
    std::int32_t stop = -1;              // completed by the last token
    friend bool operator==(State, State) = default;
  };

  /// Never stops.
  StopSequences() = default;
  /// \throws std::invalid_argument  naming an empty stop, strings without bytes, or a negative minimum
  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved; the linter misses it in a template
  SLUICE_LAZY explicit StopSequences(StopOptions stops) {
    for (std::size_t i = 0; i < stops.tokens.size(); ++i)
      require(!stops.tokens[i].empty(), "stops.tokens[" + std::to_string(i) + "]", "[]", "is empty");
    for (std::size_t i = 0; i < stops.strings.size(); ++i)
      require(!stops.strings[i].empty(), "stops.strings[" + std::to_string(i) + "]", "\"\"", "is empty");
    require(stops.strings.empty() || !stops.bytes.empty(), "stops.bytes", "none", "strings need the tokens' bytes");
    require(stops.minimum >= 0, "stops.minimum", stops.minimum, "must not be negative");
    if (stops.tokens.empty() && stops.strings.empty() && stops.bytes.empty()) return;
    auto data = std::make_shared<Data>();
    data->tokens = PhraseMatcher(stops.tokens), data->bytes = detail::ByteMatcher(stops.strings);
    data->stops = std::move(stops);
    data_ = std::move(data);
  }

  /// The stops as given.
  SLUICE_LAZY StopOptions const& stops() const {
    static StopOptions const none;
    return data_ == nullptr ? none : data_->stops;
  }
  /// The number of `tokens` and `strings` together.
  SLUICE_LAZY std::int32_t size() const { return tokens_size() + static_cast<std::int32_t>(stops().strings.size()); }

  /// \throws std::invalid_argument  for a vocabulary without eos, a token that is outside it or is eos, bytes for fewer
  ///     tokens
  SLUICE_LAZY State initial(Sentence const& sentence) const {
    if (size() == 0) return {};
    auto const& vocabulary = *sentence.vocabulary;
    require(!vocabulary.eos.empty(), "vocabulary.eos", "none",
            "outputs have a fixed length, and StopSequences cannot end them earlier");
    for (std::size_t i = 0; i < stops().tokens.size(); ++i)
      for (auto const token : stops().tokens[i]) {
        auto const name = "stops.tokens[" + std::to_string(i) + "]";
        require(vocabulary.contains(token), name, token,
                "is outside the vocabulary of " + std::to_string(vocabulary.size));
        require(!vocabulary.ends(token), name, token, "is an end of sentence, which ends outputs by itself");
      }
    require(stops().strings.empty() || stops().bytes.size() >= vocabulary.size, "stops.bytes.size",
            stops().bytes.size(), "the vocabulary has " + std::to_string(vocabulary.size) + " tokens");
    return {};
  }

  SLUICE_LAZY State next(State state, Token token) const {
    if (data_ == nullptr) return state;
    state.stop = -1;
    if (!data_->stops.strings.empty())
      for (auto const byte : data_->stops.bytes.bytes(token)) {
        state.bytes = data_->bytes.next(state.bytes, byte);
        if (detail::ByteMatcher::ends(state.bytes) && state.stop < 0)
          state.stop = tokens_size() + data_->bytes.string(state.bytes);
      }
    if (data_->stops.tokens.empty()) return state;
    state.tokens = data_->tokens.next(state.tokens, token);
    if (state.stop < 0 && data_->tokens.ends(state.tokens)) {
      auto longest = state.tokens;
      while (data_->tokens.phrases(longest).empty()) longest = data_->tokens.fallback(longest);
      state.stop = data_->tokens.phrases(longest).front();
    }
    return state;
  }

  void edit(State, Output const&, std::vector<Edit>&) const {}

  SLUICE_LAZY std::int32_t stop(State state, Output const& output) const {
    return static_cast<std::int64_t>(output.tokens.size()) >= stops().minimum ? state.stop : -1;
  }

  /// The bytes of an output, up to its stop if it has one.
  /// \throws std::invalid_argument  if a token has no bytes, or the stop is not one of these
  SLUICE_LAZY std::string text(Hypothesis const& hypothesis, IncludeStop stop = IncludeStop::no) const {
    auto text = stops().bytes.text(hypothesis.tokens);
    if (hypothesis.stop < 0) return text;
    auto const span = where(hypothesis, text);
    text.resize(stop == IncludeStop::no ? span.begin : span.end);
    return text;
  }

  /// The tokens of an output before its stop, or all if it has none: the tokens to feed back to the model as its reply.
  /// A token in which a stop string begins is left out.
  /// \throws std::invalid_argument  as text() does
  SLUICE_LAZY std::span<Token const> tokens(Hypothesis const& hypothesis) const {
    auto const all = std::span(hypothesis.tokens);
    if (hypothesis.stop < 0) return all;
    if (hypothesis.stop < tokens_size()) return all.first(all.size() - sequence(hypothesis).size());
    auto const begin = where(hypothesis, stops().bytes.text(hypothesis.tokens)).begin;
    std::size_t count = 0, bytes = 0;
    while ((bytes += stops().bytes.bytes(all[count]).size()) <= begin) ++count;
    return all.first(count);
  }

 private:
  friend class TextStream;

  /// The position in a text of a stop that its last token has just completed.
  struct Place {
    std::size_t begin, end;  // bytes
  };
  /// \param last  where the last token begins
  SLUICE_LAZY Place string_place(std::int32_t stop, std::string_view text, std::size_t last) const {
    auto const& string = data_->stops.strings[static_cast<std::size_t>(stop - tokens_size())];
    auto const begin = text.find(string, last - (std::min)(last, string.size() - 1));
    require(begin != std::string_view::npos, "hypothesis.stop", stop, "is not at the end of its tokens");
    return {begin, begin + string.size()};
  }
  SLUICE_LAZY bool is_string(std::int32_t stop) const { return stop >= tokens_size(); }
  /// The number of bytes and of tokens at the end of an output that may still become a stop.
  SLUICE_LAZY std::size_t open_bytes(State state) const {
    return static_cast<std::size_t>(data_->bytes.depth(state.bytes));
  }
  SLUICE_LAZY std::size_t open_tokens(State state) const {
    return static_cast<std::size_t>(data_->tokens.depth(state.tokens));
  }

  struct Data {
    StopOptions stops;
    PhraseMatcher tokens;
    detail::ByteMatcher bytes;
  };
  SLUICE_LAZY std::int32_t tokens_size() const { return static_cast<std::int32_t>(stops().tokens.size()); }

  SLUICE_LAZY Phrase const& sequence(Hypothesis const& h) const {
    auto const& phrase = stops().tokens[static_cast<std::size_t>(h.stop)];
    require(h.tokens.size() >= phrase.size() && std::equal(phrase.rbegin(), phrase.rend(), h.tokens.rbegin()),
            "hypothesis.stop", h.stop, "is not at the end of its tokens");
    return phrase;
  }
  SLUICE_LAZY Place where(Hypothesis const& h, std::string_view text) const {
    require(h.stop < size() && !h.tokens.empty(), "hypothesis.stop", h.stop,
            "is none of these " + std::to_string(size()) + " stops");
    if (is_string(h.stop)) return string_place(h.stop, text, text.size() - stops().bytes.bytes(h.tokens.back()).size());
    auto const length = stops().bytes.text(sequence(h)).size();
    return {text.size() - length, text.size()};
  }

  std::shared_ptr<Data const> data_;
};

/// The text of one output, in pieces, from its settled tokens (Delivery::delta). It never shows
/// part of what may become a stop or half of a UTF-8 character, and never takes anything back. All pieces together are
/// StopSequences::text() of the result. Bytes that are not valid UTF-8 are shown unchanged.
class TextStream {
 public:
  /// \param stops  of the request, built with the tokens' bytes; it may be without stops
  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved; the linter misses it in a template
  SLUICE_LAZY explicit TextStream(StopSequences stops, IncludeStop stop = IncludeStop::no)
      : stops_(std::move(stops)), stop_(stop) {}
  SLUICE_LAZY explicit TextStream(TokenBytes bytes) : TextStream(StopSequences({.bytes = std::move(bytes)})) {}

  /// \param tokens  settled tokens that follow those of earlier calls
  /// \returns       the text that can now be shown in addition. Valid until the next call
  /// \throws std::invalid_argument  for a token without bytes
  SLUICE_LAZY std::string_view append(std::span<Token const> tokens) {
    for (auto const token : tokens) {
      auto const bytes = stops_.stops().bytes.bytes(token);
      begins_.push_back(text_.size());
      text_ += bytes;
      state_ = stops_.next(state_, token);
    }
    auto const from = shown_;
    shown_ = (std::max)(shown_, whole_characters(certain()));
    return std::string_view(text_).substr(from, shown_ - from);
  }

  /// The tokens of all calls: what Decoder::settled tells beyond them is new.
  std::size_t size() const { return begins_.size(); }

  /// Ends the output; returns the rest of its text.
  /// \param hypothesis  the result's, which begins with the settled tokens
  /// \throws std::invalid_argument  as StopSequences::text() does, or if it does not begin with the text already shown
  SLUICE_LAZY std::string end(Hypothesis const& hypothesis) const {
    auto const all = stops_.text(hypothesis, stop_);
    require(all.starts_with(std::string_view(text_).substr(0, shown_)), "hypothesis", all,
            "does not begin with what has been shown");
    return all.substr(shown_);
  }

 private:
  /// The length of the text that is certain to be in the result.
  SLUICE_LAZY std::size_t certain() const {
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
  SLUICE_LAZY std::size_t whole_characters(std::size_t length) const {
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

// SPDX-License-Identifier: Apache-2.0
/// \file
/// A sentence that comes word by word, and what has been written of its translation.
#pragma once

#include <sluice/core/types.hpp>
#include <sluice/result/commitment.hpp>

#include <text/lines.hpp>
#include <translate/tokenizer.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace simultaneous {

inline std::size_t count_words(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) count += text[i] != ' ' && (i == 0 || text[i - 1] == ' ');
  return count;
}

/// After so many tokens a word is complete: another one begins. That an output ends there says nothing while its source grows.
inline std::vector<std::size_t> word_ends(translate::Tokenizer const& tokenizer,
                                          std::span<sluice::Token const> output) {
  std::vector<std::size_t> ends;
  for (std::size_t i = 1; i < output.size(); ++i)
    if (tokenizer.text(output[i]).starts_with(' ')) ends.push_back(i);
  return ends;
}

/// One sentence under one policy.
template <sluice::CommitPolicy P>
class Sentence {
 public:
  /// \param most  tokens that an output may have; then nothing more is written
  Sentence(translate::Tokenizer const& tokenizer, P const& policy, std::int32_t most)
      : tokenizer_(&tokenizer),
        policy_(policy),
        commitment_(policy, {tokenizer.eos()}),
        most_(static_cast<std::size_t>(most)) {}

  /// \throws text::InputError  if it is not valid UTF-8
  void read(std::string_view word) {
    if (!text::valid_utf8(word)) throw text::InputError("not valid UTF-8");
    source_.append(source_.empty() ? "" : " ").append(word);
    ++read_;
  }
  std::size_t words_read() const { return read_; }
  std::vector<sluice::Token> source() const { return tokenizer_->encode(source_); }
  std::vector<sluice::Token> const& prefix() const { return commitment_.tokens(); }
  /// Whether it is worth decoding.
  /// \param whole  no more words will come
  bool wants_output(bool whole) const {
    if (read_ == 0 || prefix().size() >= most_) return false;
    if constexpr (requires { policy_.allowed(read_); }) return whole || policy_.allowed(read_) > delays_.size();
    return true;
  }

  /// Takes an output and returns what is newly written.
  std::string take(std::span<sluice::Token const> output, bool whole) {
    if (whole) commitment_.finish(output);
    else commitment_.update(output, read_, word_ends(*tokenizer_, output));
    auto tokens = std::span<sluice::Token const>(commitment_.tokens());
    if (!tokens.empty() && tokens.back() == tokenizer_->eos()) tokens = tokens.first(tokens.size() - 1);
    auto text = tokenizer_->decode(tokens);
    delays_.resize(count_words(text), read_);
    auto const written = std::exchange(text_, std::move(text)).size();
    return text_.size() > written ? text_.substr(written) : "";
  }
  std::string const& text() const { return text_; }
  /// [words written]: words of the source that had been read.
  std::vector<std::size_t> const& delays() const { return delays_; }

 private:
  translate::Tokenizer const* tokenizer_;
  P policy_;
  sluice::Commitment<P> commitment_;
  std::size_t most_, read_ = 0;
  std::string source_, text_;
  std::vector<std::size_t> delays_;
};

}  // namespace simultaneous

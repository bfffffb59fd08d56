// SPDX-License-Identifier: Apache-2.0
/// \file
/// Text to tokens and back.
#pragma once

#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace translate {

/// SentencePiece. Calls of one object from several threads are fine.
class Tokenizer {
 public:
  /// \throws text::InputError  if the file is missing or not a model of SentencePiece
  explicit Tokenizer(std::filesystem::path const& file);
  ~Tokenizer();

  /// The pieces of a text, without any end of sentence. Empty for white space.
  std::vector<sluice::Token> encode(std::string_view text) const;
  /// The pieces of a text that continues another one, maybe within a word: without a space before it.
  std::vector<sluice::Token> encode_inside(std::string_view text) const;
  /// A text as the tokenizer sees it: normalized (NFKC or as its model says); unknown characters are unchanged.
  std::string normal(std::string_view text) const;
  /// One line of UTF-8, whatever the tokens.
  std::string decode(std::span<sluice::Token const> tokens) const;

  std::int32_t size() const;
  std::string const& piece(sluice::Token token) const;
  /// What a token writes: bytes, which may be a part of a character, with a space where a word begins. Empty for marks
  /// such as the end.
  std::string text(sluice::Token token) const;
  /// What tokens write, for grammars; without what cannot be told from what is read as: the unknown piece, and another way to
  /// write a space than the usual one.
  sluice::TokenBytes bytes() const;
  sluice::Token eos() const;
  sluice::Token unk() const;  ///< -1 if there is none

 private:
  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
  std::vector<sluice::Token> anchor_;
};

}  // namespace translate

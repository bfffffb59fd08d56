// SPDX-License-Identifier: Apache-2.0
/// \file
/// Text to the pieces that a model of CTranslate2 knows, and back.
#pragma once

#include <text/lines.hpp>
#include <translate/tokenizer.hpp>

#include <ctranslate2/options.hpp>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace translate_ct2 {

/// By SentencePiece, whose files lie in the model's folder, or pieces as they are.
class Spelling {
 public:
  /// \throws text::InputError  if text is asked for and the folder has no such file
  explicit Spelling(Options const& options) {
    if (options.pieces) return;
    auto const load = [&](std::string const& own) -> std::filesystem::path {
      for (auto const& name : {own, std::string("sentencepiece.model"), std::string("spm.model")})
        if (auto path = options.model / name; std::filesystem::exists(path)) return path;
      throw text::InputError(options.model.string() + ": has no " + own + " and no sentencepiece.model: give --pieces");
    };
    source_.emplace(load("source.spm")), target_.emplace(load("target.spm"));
    for (sluice::Token token = 0; token < target_->size(); ++token) numbers_.emplace(target_->piece(token), token);
  }

  std::vector<std::string> pieces(std::string const& line) const {
    std::vector<std::string> result;
    if (source_) {
      for (auto const token : source_->encode(line)) result.push_back(source_->piece(token));
    } else {
      std::istringstream words(line);
      for (std::string word; words >> word;) result.push_back(word);
    }
    return result;
  }
  std::string text(std::vector<std::string> const& pieces) const {
    if (target_) {
      std::vector<sluice::Token> tokens;
      for (auto const& piece : pieces)
        if (auto const at = numbers_.find(piece); at != numbers_.end()) tokens.push_back(at->second);
      return target_->decode(tokens);
    }
    std::string line;
    for (auto const& piece : pieces) line += (line.empty() ? "" : " ") + piece;
    return line;
  }

 private:
  std::optional<translate::Tokenizer> source_, target_;
  std::map<std::string, sluice::Token> numbers_;
};

}  // namespace translate_ct2

// SPDX-License-Identifier: Apache-2.0
/// \file
/// The tokens of a Whisper model: their texts, and those with a meaning of their own.
#pragma once

#include <sluice/core/types.hpp>
#include <sluice/processor/phrase.hpp>

#include <text/json.hpp>
#include <text/lines.hpp>
#include <text/words.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace whisper {

using sluice::Token;

class Vocabulary {
 public:
  /// Reads vocabulary.txt, a token a line in GPT-2's letters for bytes, and config.json.
  /// \throws text::InputError  naming the file
  explicit Vocabulary(std::filesystem::path const& folder) {
    auto const names = text::read_lines(folder / "vocabulary.txt");
    auto const letters = byte_letters();
    for (std::size_t i = 0; i < names.size(); ++i) {
      auto const token = static_cast<Token>(i);
      tokens_.emplace(names[i], token);
      auto& bytes = bytes_.emplace_back();
      if (names[i].starts_with("<|") && names[i].ends_with("|>")) continue;
      for (auto const c : text::characters(names[i])) {
        auto const found = letters.find(c);
        if (found == letters.end())
          throw text::InputError("vocabulary.txt: '" + names[i] + "' is not in GPT-2's letters");
        bytes.push_back(found->second);
      }
      by_bytes_.emplace(bytes, token);
    }
    eot = named("<|endoftext|>"), start = named("<|startoftranscript|>"), previous = named("<|startofprev|>");
    translate = named("<|translate|>"), transcribe = named("<|transcribe|>");
    no_timestamps = named("<|notimestamps|>");
    no_speech = tokens_.contains("<|nospeech|>") ? named("<|nospeech|>") : named("<|nocaptions|>");
    if (size() <= no_timestamps + 1501 - 1) throw text::InputError("vocabulary.txt: has no 1501 timestamps at its end");

    std::ifstream stream(folder / "config.json", std::ios::binary);
    if (!stream) throw text::InputError((folder / "config.json").string() + ": cannot be opened");
    auto const config = text::parse_json(std::string{std::istreambuf_iterator<char>(stream), {}}, 16);
    auto const list = [&](char const* name) {
      std::vector<Token> tokens;
      for (auto const& one : config.value(name, nlohmann::json::array()))
        if (one.is_number_integer() && one >= 0 && one < size()) tokens.push_back(one.get<Token>());
      return tokens;
    };
    suppressed = list("suppress_ids"), suppressed_first = list("suppress_ids_begin"), languages = list("lang_ids");
    // As in openai/whisper's decoding, whatever the list says.
    for (auto const token : {start, previous, translate, transcribe, no_speech, named("<|startoflm|>")})
      if (std::find(suppressed.begin(), suppressed.end(), token) == suppressed.end()) suppressed.push_back(token);
  }

  Token size() const { return static_cast<Token>(bytes_.size()); }
  Token eot = 0, start = 0, previous = 0, translate = 0, transcribe = 0, no_timestamps = 0, no_speech = 0;
  std::vector<Token> suppressed{}, suppressed_first{}, languages{};

  bool is_time(Token token) const { return token > no_timestamps; }
  double seconds(Token token) const { return 0.02 * (token - no_timestamps - 1); }

  /// \throws text::InputError  if there is none
  Token language(std::string const& code) const {
    auto const found = tokens_.find("<|" + code + "|>");
    if (found == tokens_.end() || std::find(languages.begin(), languages.end(), found->second) == languages.end())
      throw text::InputError("--language: '" + code + "' is no language of this model: en, de, ...");
    return found->second;
  }
  std::string code(Token language) const {
    for (auto const& [name, token] : tokens_)
      if (token == language) return name.substr(2, name.size() - 4);
    return {};
  }

  /// Without control tokens and timestamps.
  std::string text(std::span<Token const> tokens) const {
    std::string all;
    for (auto const token : tokens) all += bytes_[static_cast<std::size_t>(token)];
    return all;
  }

  /// Byte-pair encoding: of neighbours in a word, those are joined whose token is the first in the vocabulary. Words are cut where
  /// letters, digits and others meet, and before a space.
  sluice::Phrase tokens(std::string_view text) const {
    sluice::Phrase all;
    std::size_t begin = 0;
    for (std::size_t i = 1; i <= text.size(); ++i) {
      if (i < text.size() && !(text[i] == ' ' || (text[i - 1] != ' ' && kind(text[i - 1]) != kind(text[i])))) continue;
      encode(text.substr(begin, i - begin), all);
      begin = i;
    }
    return all;
  }

 private:
  Token named(std::string const& name) const {
    auto const found = tokens_.find(name);
    if (found == tokens_.end()) throw text::InputError("vocabulary.txt: has no " + name + ": not of Whisper");
    return found->second;
  }
  static int kind(char c) {
    auto const byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z')) return 0;
    return byte >= '0' && byte <= '9' ? 1 : 2;
  }
  void encode(std::string_view word, sluice::Phrase& to) const {
    std::vector<std::string> parts;
    for (auto const c : word) parts.emplace_back(1, c);
    while (parts.size() > 1) {
      auto best = size();
      std::size_t at = 0;
      for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        auto const found = by_bytes_.find(parts[i] + parts[i + 1]);
        if (found != by_bytes_.end() && found->second < best) best = found->second, at = i;
      }
      if (best == size()) break;
      parts[at] += parts[at + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
    for (auto const& part : parts) {
      auto const found = by_bytes_.find(part);
      if (found == by_bytes_.end()) return to.clear();
      to.push_back(found->second);
    }
  }
  /// Printable bytes of Latin-1 stand for themselves, the others for U+0100 on.
  static std::map<char32_t, char> byte_letters() {
    std::map<char32_t, char> letters;
    char32_t next = 0x100;
    for (char32_t byte = 0; byte < 256; ++byte) {
      auto const itself = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      letters.emplace(itself ? byte : next++, static_cast<char>(byte));
    }
    return letters;
  }

  std::vector<std::string> bytes_;
  std::unordered_map<std::string, Token> tokens_, by_bytes_;
};

}  // namespace whisper

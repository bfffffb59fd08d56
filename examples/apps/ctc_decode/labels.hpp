// SPDX-License-Identifier: Apache-2.0
/// \file
/// Labels of a recogniser, and texts as labels.
#pragma once

#include <sluice/c/sluice.h>

#include <text/lines.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ctc_decode {

/// A word, and its labels.
struct Spelling {
  std::string word;
  std::vector<sluice_token> labels;
};

/// As sluice.CtcDecoder of Python has them.
class Labels {
 public:
  /// \param blank, separator  a label, or the number of one; none: looked for
  Labels(std::filesystem::path const& file, std::optional<std::string> const& blank,
         std::optional<std::string> const& separator)
      : names_(text::read_lines(file)) {
    if (names_.empty()) throw text::InputError(file.string() + ": holds no label");
    for (std::size_t i = names_.size(); i-- > 0;) numbers_[names_[i]] = static_cast<sluice_token>(i);
    if (blank) blank_ = number(*blank, "--blank");
    else blank_ = first_of({"", "<blank>", "[blank]", "<blk>", "<ctc>", "<pad>", "[PAD]"});
    if (blank_ < 0)
      throw text::InputError(file.string() + ": none of the labels is \"\", <blank>, <pad> or the like: set --blank");
    if (separator && !separator->empty()) separator_ = number(*separator, "--separator");
    else if (!separator) separator_ = first_of({" ", "|"});
    auto const pieces_of_words = [](std::string const& name) { return name.size() > 2 && name.starts_with("##"); };
    auto const word_piece = separator_ < 0 && std::any_of(names_.begin(), names_.end(), pieces_of_words);
    texts_.reserve(names_.size());
    for (std::size_t i = 0; i < names_.size(); ++i) {
      auto const label = static_cast<sluice_token>(i);
      if (label == blank_) texts_.emplace_back();
      else if (label == separator_) texts_.emplace_back(" ");
      else if (word_piece && pieces_of_words(names_[i])) texts_.push_back(names_[i].substr(2));
      else if (word_piece) texts_.push_back(" " + names_[i]);
      else texts_.push_back(with_spaces(names_[i]));
      longest_ = (std::max)(longest_, texts_[i].size());
      if (!texts_[i].empty()) by_text_.emplace(texts_[i], label);
      begins_words_ |= separator_ < 0 && texts_[i].starts_with(' ');
    }
  }

  std::size_t size() const { return names_.size(); }
  sluice_token blank() const { return blank_; }
  sluice_token separator() const { return separator_; }  ///< -1: none
  std::vector<std::string> const& texts() const { return texts_; }

  std::string text(sluice_token const* tokens, std::size_t count) const {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) all += texts_[static_cast<std::size_t>(tokens[i])];
    auto const begin = all.find_first_not_of(' ');
    return begin == all.npos ? std::string() : all.substr(begin, all.find_last_not_of(' ') + 1 - begin);
  }

  /// The longest labels that fit, from the beginning on.
  /// \throws text::InputError  saying at what no label fits
  std::vector<sluice_token> spell(std::string const& given, std::string const& name) const {
    auto const text = begins_words_ && !given.starts_with(' ') ? " " + given : given;
    std::vector<sluice_token> made;
    for (std::size_t at = 0; at < text.size();) {
      auto length = (std::min)(longest_, text.size() - at);
      auto found = by_text_.end();
      while (length > 0 && (found = by_text_.find(text.substr(at, length))) == by_text_.end()) --length;
      if (length == 0) {
        auto end = at + 1;
        while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
        throw text::InputError(name + ": '" + given + "': no label is '" + text.substr(at, end - at) + "'");
      }
      made.push_back(found->second), at += length;
    }
    return made;
  }

  /// A word in each line, and its labels behind it if it is not spelt as it is written.
  std::vector<Spelling> lexicon(std::filesystem::path const& file) const {
    std::vector<Spelling> made;
    auto const lines = text::read_lines(file);
    made.reserve(lines.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      auto const name = file.string() + ":" + std::to_string(i + 1);
      auto const fields = split(lines[i]);
      if (fields.empty()) continue;
      auto& spelling = made.emplace_back(Spelling{fields[0], {}});
      if (fields.size() == 1) spelling.labels = spell(fields[0], name);
      for (std::size_t k = 1; k < fields.size(); ++k) spelling.labels.push_back(number(fields[k], name));
      if (spelling.labels.size() > 1 && spelling.labels.back() == separator_) spelling.labels.pop_back();
    }
    if (made.empty()) throw text::InputError(file.string() + ": holds no word");
    return made;
  }

  static std::vector<std::string> split(std::string_view line) {
    std::vector<std::string> fields;
    for (std::size_t at = 0; (at = line.find_first_not_of(" \t", at)) != line.npos;) {
      auto const end = (std::min)(line.find_first_of(" \t", at), line.size());
      fields.emplace_back(line.substr(at, end - at)), at = end;
    }
    return fields;
  }

 private:
  sluice_token first_of(std::initializer_list<char const*> names) const {
    for (auto const* name : names)
      if (auto const found = numbers_.find(name); found != numbers_.end()) return found->second;
    return -1;
  }
  sluice_token number(std::string const& label, std::string const& name) const {
    if (auto const found = numbers_.find(label); found != numbers_.end()) return found->second;
    sluice_token value = -1;
    auto const* const end = label.data() + label.size();
    auto const read = std::from_chars(label.data(), end, value);
    if (read.ec == std::errc() && read.ptr == end && value >= 0 && static_cast<std::size_t>(value) < names_.size())
      return value;
    throw text::InputError(name + ": '" + label + "' is not among the " + std::to_string(names_.size()) + " labels");
  }
  /// Pieces of SentencePiece begin words with U+2581.
  static std::string with_spaces(std::string name) {
    constexpr std::string_view mark = "\xE2\x96\x81";
    for (std::size_t at = 0; (at = name.find(mark, at)) != name.npos; ++at) name.replace(at, mark.size(), " ");
    return name;
  }

  std::vector<std::string> names_, texts_{};
  std::unordered_map<std::string, sluice_token> numbers_{}, by_text_{};
  sluice_token blank_ = -1, separator_ = -1;
  std::size_t longest_ = 0;
  bool begins_words_ = false;
};

}  // namespace ctc_decode

// SPDX-License-Identifier: Apache-2.0
/// \file
/// What people write: constraints, glossaries, images, manifests, command lines.
#pragma once

#include <fuzz/demand.hpp>
#include <text/lines.hpp>
#include <text/words.hpp>
#include <translate/demands.hpp>
#include <translate/glossary.hpp>
#include <translate/options.hpp>
#include <translate/whole_words.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <semantic_parser/data.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <super_resolution/images.hpp>
#include <system_error>
#include <vector>

namespace sluice::test {

inline std::vector<std::string> lines_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Each byte a token, and some words.
inline translate::Pieces byte_pieces() {
  translate::Pieces pieces;
  for (int byte = 0; byte < 256; ++byte) pieces.texts.emplace_back(1, static_cast<char>(byte));
  for (auto const* piece : {" a", " the", "s", "ing", " \xC3\x9C", ""}) pieces.texts.emplace_back(piece);
  pieces.eos = static_cast<Token>(pieces.texts.size()) - 1;
  auto const spell = [](std::string_view text) {
    std::vector<Token> tokens;
    for (auto const c : text) tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  };
  pieces.begin = [spell](std::string_view text) { return spell(" " + std::string(text)); };
  pieces.inside = spell;
  return pieces;
}

/// A line of demands, and behind it a text that may obey them: byte by byte and as a whole it does, or
/// does not.
inline void demands(std::string_view text) {
  auto const lines = lines_of(text);
  if (lines.size() < 2) return;
  try {
    auto const demands = translate::parse_demands(lines[0]);
    translate::WholeWords::Lists lists{
        .some = demands.any, .ordered = demands.ordered, .exact = demands.exact, .none = demands.none};
    for (auto const& phrase : demands.all) lists.some.push_back({phrase});
    static auto const spellings = std::make_shared<translate::Spellings const>(byte_pieces());
    translate::WholeWords const words(lists, spellings);
    auto state = words.initial({});
    auto forbidden = false;
    std::vector<Token> wanted;
    for (auto const byte : lines[1]) {
      wanted.clear();
      words.wanted(state, wanted);
      for (auto const token : wanted)
        demand(token >= 0 && token < spellings->pieces().eos, "wants what is no token", text);
      state = words.next(state, static_cast<unsigned char>(byte));
      forbidden = forbidden || words.dead(state);
      demand(words.progress(state) <= words.total() && words.met(state) <= words.count(), "more than all", text);
    }
    auto const end = words.next(state, spellings->pieces().eos);
    auto const verdict = words.judge(lines[1]);
    demand(verdict.met == words.met(end), "judged in two ways", text);
    demand(verdict.forbidden.empty() == !(forbidden || words.dead(end)), "forbidden in two ways", text);
  } catch (text::InputError const&) {
  }
}

/// A text, and behind it the glossary that is looked up in it.
inline void glossary(std::string_view text) {
  auto lines = lines_of(text);
  if (lines.size() < 2) return;
  auto const source = lines[0];
  lines.erase(lines.begin());
  try {
    translate::Glossary const glossary(lines, "glossary");
    auto const seen = text::squeezed(source);
    for (auto const* entry : glossary.find(source)) {
      demand(!entry->targets.empty(), "a term without a target", text);
      demand(seen.find(text::with_first(entry->term, text::lower)) != seen.npos ||
                 seen.find(text::with_first(entry->term, text::upper)) != seen.npos,
             "a term is found that is not there", text);
    }
  } catch (text::InputError const& e) {
    demand(std::string_view(e.what()).starts_with("glossary:"), "a message without the file's name", e.what());
  }
}

/// A folder of this process, gone with it.
class Folder {
 public:
  Folder() {
    auto name = (std::filesystem::temp_directory_path() / "sluice-fuzz-XXXXXX").string();
    demand(mkdtemp(name.data()) != nullptr, "no folder can be made");
    path_ = name;
  }
  Folder(Folder const&) = delete;
  Folder& operator=(Folder const&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path write(char const* name, std::string_view text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }
  std::filesystem::path const& path() const { return path_; }
  static Folder const& own() {
    static Folder const folder;
    return folder;
  }

 private:
  std::filesystem::path path_;
};

inline void image(std::string_view text) {
  try {
    auto const images = super_resolution::read_images(Folder::own().write("image.pgm", text));
    demand(!images.empty(), "a file without images", text);
    for (auto const& one : images) demand(one.size() == 16 || one.size() == 256, "an image of another size", text);
    auto const copy = Folder::own().path() / "copy.pgm";
    super_resolution::write_images(copy, images);
    demand(super_resolution::read_images(copy) == images, "an image that is read is not what was written", text);
  } catch (text::InputError const&) {
  }
}

inline void manifest(std::string_view text) {
  Folder::own().write("manifest.json", text);
  static auto const weights = Folder::own().write("weights.f32", std::string(64, '\0'));
  try {
    semantic_parser::Data const data(Folder::own().path());
    for (auto const& pair : data.test)
      for (auto const token : pair.source)
        demand(token >= 0 && token < std::ssize(data.source_words), "a word that there is not", text);
    for (auto const& shape : {std::vector<std::int64_t>{4, 2}, {2, 2}, {3}})
      demand(data.tensor("w", shape).size() <= 16, "more numbers than there are", text);
  } catch (text::InputError const& e) {
    demand(std::string_view(e.what()).starts_with(Folder::own().path().string()), "a message without the file's name",
           e.what());
  }
}

/// An argument a line.
inline void command_line(std::string_view text) {
  auto const lines = lines_of(text);
  std::vector<char const*> arguments{"translate"};
  for (auto const& line : lines) arguments.push_back(line.c_str());
  std::ostringstream ignored;  // --help
  auto* const before = std::cout.rdbuf(ignored.rdbuf());
  try {
    auto const options = translate::parse(static_cast<int>(arguments.size()), arguments.data());
    if (options) {
      demand(options->max_length >= 1 && options->width >= 1 && options->candidates >= 1 && !options->models.empty(),
             "options that make no sense", text);
      demand(!options->shard || options->shard->index < options->shard->count, "a part that there is not", text);
    }
  } catch (text::InputError const& e) {
    demand(e.what()[0] != '\0', "an empty message", text);
  }
  std::cout.rdbuf(before);
}

}  // namespace sluice::test

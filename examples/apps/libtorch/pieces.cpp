// SPDX-License-Identifier: Apache-2.0
// pieces: lines of text to lines of tokens, and back.

#include <text/lines.hpp>
#include <translate/tokenizer.hpp>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

std::string encode(translate::Tokenizer const& tokenizer, std::string const& line) {
  std::string tokens;
  for (auto const token : tokenizer.encode(line)) tokens += (tokens.empty() ? "" : " ") + std::to_string(token);
  return tokens;
}

/// What stands before a tab stays as it is.
std::string decode(translate::Tokenizer const& tokenizer, std::string const& line, std::size_t number) {
  auto const tab = line.find('\t');
  auto const begin = tab == line.npos ? 0 : tab + 1;
  std::istringstream words(line.substr(begin));
  std::vector<sluice::Token> tokens;
  auto good = true;
  for (sluice::Token token = 0; words >> token; tokens.push_back(token))
    good = good && token >= 0 && token < tokenizer.size();
  if (!good || !words.eof()) throw text::InputError("line " + std::to_string(number) + ": not a line of tokens");
  if (!tokens.empty() && tokens.back() == tokenizer.eos()) tokens.pop_back();
  return line.substr(0, begin) + tokenizer.decode(tokens);
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view const what = argc > 1 ? argv[1] : "";
  if (argc > 3 || (what != "encode" && what != "decode")) {
    std::fprintf(stderr, "usage: pieces encode|decode [FOLDER OF spm.model]\n");
    return 2;
  }
  try {
    std::filesystem::path const folder = argc > 2 ? argv[2] : SLUICE_EXAMPLE_MODEL;
    translate::Tokenizer const tokenizer(folder / "spm.model");
    std::size_t number = 0;
    for (auto const& line : text::read_lines(std::cin, "standard input"))
      std::cout << (++number, what == "encode" ? encode(tokenizer, line) : decode(tokenizer, line, number)) << '\n';
    if (!std::cout.flush()) throw std::runtime_error("the output cannot be written");
    return 0;
  } catch (text::InputError const& error) {
    std::fprintf(stderr, "pieces: %s\n", error.what());
    return 2;
  } catch (std::exception const& error) {
    std::fprintf(stderr, "pieces: %s\n", error.what());
    return 1;
  }
}

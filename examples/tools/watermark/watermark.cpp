// SPDX-License-Identifier: Apache-2.0
// watermark key FILE: writes a new key. watermark detect --key FILE < TOKENS: whether texts carry its mark.

#include <sluice/watermark/detect_watermark.hpp>
#include <sluice/watermark/key_file.hpp>

#include <text/command_line.hpp>
#include <text/lines.hpp>
#include <text/watermark.hpp>

#include <nlohmann/json.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace {

struct Options {
  std::string command, file, key, scheme = "gumbel", prf = "sluice";
  std::size_t words = 1;
  sluice::Watermark watermark{};
  std::int32_t window = 0;
};

/// The tokens of a line; a token in brackets is masked.
std::pair<std::vector<sluice::Token>, std::vector<std::uint8_t>> tokens(std::string_view line, std::size_t number) {
  std::vector<sluice::Token> all;
  std::vector<std::uint8_t> mask;
  while (!line.empty()) {
    auto const space = line.find_first_of(" \t");
    auto word = line.substr(0, space);
    line.remove_prefix(space == std::string_view::npos ? line.size() : space + 1);
    if (word.empty()) continue;
    auto const shown = std::string(word);
    auto const masked = word.size() > 2 && word.front() == '[' && word.back() == ']';
    if (masked) word = word.substr(1, word.size() - 2);
    sluice::Token token = 0;
    auto const [rest, error] = std::from_chars(word.data(), word.data() + word.size(), token);
    if (rest != word.data() + word.size() || error != std::errc() || token < 0)
      throw text::InputError("standard input: line " + std::to_string(number) + ": '" + shown + "' is not a token");
    all.push_back(token), mask.push_back(masked ? 1 : 0);
  }
  return {all, mask};
}

void detect(Options& options) {
  if (options.key.empty()) throw text::InputError("detect needs --key");
  if (!options.file.empty()) throw text::InputError("detect reads standard input, not '" + options.file + "'");
  options.watermark.scheme = text::watermark_schemes.at(options.scheme);
  options.watermark.prf = text::watermark_functions.at(options.prf);
  options.watermark.key = sluice::read_watermark_key(options.key);
  options.watermark.check();
  std::size_t number = 0;
  for (auto const& line : text::read_lines(std::cin, "standard input")) {
    auto const [text, mask] = tokens(line, ++number);
    auto const found = sluice::detect_watermark(text, options.watermark, {.mask = mask, .window = options.window});
    nlohmann::ordered_json json{{"p_value", found.p_value},  {"score", found.score},   {"expected", found.expected},
                                {"tokens", found.tokens},    {"scored", found.scored}, {"masked", found.masked},
                                {"repeated", found.repeated}};
    if (options.window > 0) {
      json["windows_p_value"] = found.windows_p_value;
      for (auto const& window : found.windows)
        json["windows"].push_back({{"begin", window.begin}, {"end", window.end}, {"p_value", window.p_value}});
    }
    std::cout << json.dump() << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  text::CommandLine app(
      "Keys of watermarks, and texts that may carry their marks: a line of token numbers each, a token "
      "in [brackets] left out. Prints a line of JSON for each text.",
      "watermark");
  auto& own = options.watermark;
  app.add("COMMAND", options.command, "key|detect", "key FILE: write a new key; detect --key FILE: read texts")
      ->required()
      ->check(text::one_of({"key", "detect"}));
  app.add("FILE", options.file, "FILE", "of key: where to write it");
  app.add("--words", options.words, "N", "of key: numbers of 64 bits in it")
      ->check(text::whole(1, 32))
      ->capture_default_str();
  app.add("--key", options.key, "FILE", "of detect: the key");
  app.add("--scheme", options.scheme, "NAME", "gumbel, synthid, red_green or sbw")
      ->check(text::one_of(text::watermark_schemes))
      ->capture_default_str();
  app.add("--prf", options.prf, "NAME", "sluice, philox, hmac_sha256, synthid_text or hugging_face")
      ->check(text::one_of(text::watermark_functions))
      ->capture_default_str();
  app.add("--width", own.width, "N", "tokens of a context")->check(text::whole(1, 16))->capture_default_str();
  app.add("--second", own.second, "P", "share of the second key");
  app.add("--gamma", own.gamma, "P", "share of green tokens")->capture_default_str();
  app.add("--depth", own.depth, "N", "rounds of a tournament")->check(text::whole(1, 32))->capture_default_str();
  app.add("--window", options.window, "N", "look also at parts of so many tokens")->check(text::whole(0, 1 << 30));
  try {
    if (!app.read(argc, argv)) return 0;
    if (options.command == "detect") {
      detect(options);
    } else {
      if (options.file.empty()) throw text::InputError("key needs FILE");
      sluice::write_new_watermark_key(options.file, options.words);
    }
    return 0;
  } catch (std::exception const& error) {
    std::cerr << "watermark: " << error.what() << '\n';
    return 2;
  }
}

// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/types.hpp>
#include <sluice/watermark/detect_watermark.hpp>

#include <text/json.hpp>
#include <text/words.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <http/answers.hpp>
#include <http/detect_endpoint.hpp>
#include <http/memory.hpp>
#include <http/work.hpp>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace serve {

namespace {

constexpr std::size_t most_tokens = 65536, most_windows = 1024;   // some of their p-values are long sums
using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;  // begin, end

/// What is to be looked at.
struct Wanted {
  std::string text{};
  std::vector<sluice::Token> tokens{};  // of `tokens`
  bool tokenized = false;               // whether it has tokens
  Ranges mask{};                        // of tokens, or of the text's characters
  std::int32_t window = 0;
  bool ids = false;
};

/// \throws BadField  if there are too many
void check_count(char const* field, std::size_t count) {
  if (count > most_tokens)
    throw BadField(field,
                   std::string(field) + " has " + std::to_string(count) + " tokens, more than " +
                       std::to_string(most_tokens),
                   413);
}

/// Windows begin half a window apart.
void check_windows(std::int32_t window, std::size_t tokens) {
  auto const size = static_cast<std::size_t>(window), step = size / 2;
  if (window > 0 && tokens > size && (tokens - size + step - 1) / step >= most_windows)
    throw BadField("window", "window " + std::to_string(window) + " makes more than " + std::to_string(most_windows) +
                                 " windows of " + std::to_string(tokens) + " tokens");
}

std::vector<sluice::Token> read_tokens(Json const& list) {
  if (!list.is_array()) Fields::refuse("tokens", list, "a list of tokens");
  check_count("tokens", list.size());
  std::vector<sluice::Token> tokens;
  for (auto const& one : list) {
    auto const good = one.is_number_unsigned() &&
                      one.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<sluice::Token>::max()};
    if (!good) Fields::refuse("tokens[" + std::to_string(tokens.size()) + "]", one, "a token: a whole number >= 0");
    tokens.push_back(one.get<sluice::Token>());
  }
  return tokens;
}

/// \param size  of what they are ranges of
Ranges read_mask(Json const& list, std::size_t size, char const* unit) {
  Ranges ranges;
  if (!list.is_array()) Fields::refuse("mask", list, "a list of [begin, end]");
  for (auto const& one : list) {
    auto const pair = one.is_array() && one.size() == 2 && one[0].is_number_unsigned() && one[1].is_number_unsigned();
    auto const begin = pair ? one[0].get<std::uint64_t>() : 1, end = pair ? one[1].get<std::uint64_t>() : 0;
    if (begin > end || end > size)
      Fields::refuse("mask[" + std::to_string(ranges.size()) + "]", one,
                     "[begin, end] within the " + std::to_string(size) + " " + unit);
    ranges.emplace_back(begin, end);
  }
  return ranges;
}

std::size_t characters(std::string const& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return !text::Utf8::continues(c); }));
}

Wanted read(Fields& fields) {
  Wanted wanted;
  auto const text = fields.text("text");
  auto const* const tokens = fields.find("tokens");
  if (text && tokens != nullptr) throw BadField("tokens", "tokens and text: give only one of them");
  if (!text && tokens == nullptr) throw BadField("text", "text is missing: what is to be looked at, or its tokens");
  wanted.tokenized = tokens != nullptr;
  if (wanted.tokenized) wanted.tokens = read_tokens(*tokens);
  else wanted.text = *text;
  if (auto const* const mask = fields.find("mask"))
    wanted.mask = wanted.tokenized ? read_mask(*mask, wanted.tokens.size(), "tokens")
                                   : read_mask(*mask, characters(wanted.text), "characters");
  wanted.window =
      static_cast<std::int32_t>(fields.integer("window", 2, static_cast<std::int64_t>(most_tokens)).value_or(0));
  wanted.ids = fields.flag("return_token_ids").value_or(false);
  fields.finish();
  return wanted;
}

/// [size]: 1 inside of a range. O(size + ranges).
std::vector<std::uint8_t> inside(Ranges const& ranges, std::size_t size) {
  std::vector<std::int32_t> changes(size + 1);
  for (auto const& [begin, end] : ranges) ++changes[begin], --changes[end];
  std::vector<std::uint8_t> covered(size);
  std::int32_t open = 0;
  for (std::size_t i = 0; i < size; ++i) covered[i] = (open += changes[i]) > 0 ? 1 : 0;
  return covered;
}

/// The mask of tokens that have a part in a range of characters.
std::vector<std::uint8_t> token_mask(Wanted const& wanted, Backend::Pieces const& pieces) {
  std::string whole;
  for (auto const& [token, text] : pieces) whole += text;
  if (whole != wanted.text)
    throw BadField(
        "mask",
        "mask: the tokenizer reads other characters than the text has (spaces, forms of letters), so that places in "
        "it cannot be found: send tokens and a mask of them");
  auto const covered = inside(wanted.mask, characters(whole));
  std::vector<std::uint8_t> mask;
  std::size_t byte = 0, character = 0;  // the latter: those that began before the byte
  for (auto const& [token, text] : pieces) {
    std::uint8_t masked = 0;
    for (auto const end = byte + text.size(); byte < end; ++byte) {
      if (!text::Utf8::continues(whole[byte])) ++character;
      if (covered[character - 1] != 0) masked = 1;
    }
    mask.push_back(masked);
  }
  return mask;
}

Json json_of(sluice::WatermarkDetection const& found, sluice::Watermark const& watermark, std::int32_t window) {
  Json json{{"scheme", name(watermark.scheme)}, {"prf", name(watermark.prf)}, {"width", watermark.width},
            {"p_value", found.p_value},         {"score", found.score},       {"expected", found.expected},
            {"tokens", found.tokens},           {"scored", found.scored},     {"masked", found.masked},
            {"repeated", found.repeated}};
  if (window == 0) return json;
  json["windows_p_value"] = found.windows_p_value;
  auto& windows = json["windows"] = Json::array();
  for (auto const& one : found.windows)
    windows.push_back({{"begin", one.begin}, {"end", one.end}, {"scored", one.scored}, {"p_value", one.p_value}});
  return json;
}

}  // namespace

void answer_detect(House const& house, sluice::Watermark const& watermark, httplib::Request const& request,
                   httplib::Response& response) {
  auto const until = Clock::now() + house.bounds.time;
  Fields fields(request.body);
  auto wanted = read(fields);
  Admitted const admitted(house.admission, Connection::current()->client(), 1);
  Turn const turn(house.preparing, admitted.client(), static_cast<double>(1000 + request.body.size()), until);
  Work const work(until);
  std::vector<std::uint8_t> mask;
  if (wanted.tokenized) {
    if (!wanted.mask.empty()) mask = inside(wanted.mask, wanted.tokens.size());
  } else {
    Account::Naming const naming("text");
    auto const pieces = house.backend.pieces(wanted.text);
    Work::checkpoint();
    check_count("text", pieces.size());
    if (!wanted.mask.empty()) mask = token_mask(wanted, pieces);
    for (auto const& [token, text] : pieces) wanted.tokens.push_back(token);
  }
  check_windows(wanted.window, wanted.tokens.size());
  auto const found = sluice::detect_watermark(wanted.tokens, watermark, {.mask = mask, .window = wanted.window});
  Work::checkpoint();
  auto json = json_of(found, watermark, wanted.window);
  json["model"] = house.backend.name();
  if (wanted.ids) json["token_ids"] = wanted.tokens;
  send(response, 200, json);
}

Endpoint detecting(sluice::Watermark const& watermark) {
  return {"/detect", true,
          [watermark](House const& house, httplib::Request const& request, httplib::Response& response) {
            answer_detect(house, watermark, request, response);
          }};
}

}  // namespace serve

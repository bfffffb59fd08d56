// SPDX-License-Identifier: Apache-2.0
// Watermarks beneath grammars: outputs obey, what is free is drawn by the key's numbers and found, what is certain is not counted.
#include <sluice/core/noise.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/watermark/detail/marker.hpp>
#include <sluice/watermark/detect_watermark.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <regex>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Scheme = WatermarkScheme;

/// pad, bos, eos, the printable characters, and some longer tokens.
struct Characters {
  Characters() {
    std::vector<std::string> all{"", "", ""};
    for (char c = ' '; c <= '~'; ++c) all.emplace_back(1, c);
    for (auto const* const more : {"{\"", "\":", "\",\"", "\"}", "the", "and", "kind", "note", "ab", "-1"})
      all.emplace_back(more);
    bytes = TokenBytes(all);
    table = {.size = static_cast<std::int32_t>(all.size()), .scale = 4, .eos_bias = -2, .eos_slope = 0};
    trie = TokenTrie(bytes, {.size = table.size, .bos = bos, .eos = {eos}, .never = {pad, bos}});
  }
  TokenBytes bytes{std::vector<std::string>{}};
  Table table;
  TokenTrie trie;
};

constexpr std::int32_t most = 220;
std::string const free_expression = "(id|no) [a-z]{60,70} (over|out)( -1){3}";
std::string const tight_expression = "(yes|no), that is what was to be said about it all";

struct Free {
  std::vector<std::uint8_t> certain;  // [tokens]: the mask of a detector
  std::size_t choices = 0, marked = 0;
};

/// Which tokens the grammar left no choice for. With `marker`, every other one must be the best by the key's numbers among those that
/// the grammar allows, unless its context has occurred before.
Free replay(Characters const& world, Structure const& structure, std::uint64_t source, std::vector<Token> const& text,
            detail::Marker const* marker) {
  Free found;
  std::vector<double> logits(static_cast<std::size_t>(world.table.size));
  auto state = structure.start();
  for (std::size_t n = 0; n < text.size(); ++n) {
    auto const set = structure.may_follow(state, most - static_cast<std::int32_t>(n));
    REQUIRE(set != nullptr);
    REQUIRE(set->contains(text[n]));
    auto const certain = set->only() >= 0;
    found.certain.push_back(certain);
    if (!certain) ++found.choices;
    auto const before = std::span(text).first(n);
    if (marker != nullptr && !certain && !marker->context(before).repeated()) {
      world.table.logits(source, before, logits);
      auto const place = marker->numbers(false).place(marker->context(before));
      Token best = -1;
      auto highest = -std::numeric_limits<double>::infinity();
      for (Token v = 0; v < world.table.size; ++v) {
        auto const value =
            logits[static_cast<std::size_t>(v)] - std::log(-std::log(marker->numbers(false).uniform(place, v)));
        if (set->contains(v) && value > highest) best = v, highest = value;
      }
      CHECK(text[n] == best);
      ++found.marked;
    }
    state = structure.next(state, text[n]);
  }
  return found;
}

template <class S>
std::vector<TableRequest<Processed<S>>> marked_requests(S const& search, Structure const& structure,
                                                        std::uint64_t count) {
  std::vector<TableRequest<Processed<S>>> requests;
  for (std::uint64_t i = 0; i < count; ++i) {
    auto own = search;
    if constexpr (requires { own.watermark; }) own.watermark.key = WatermarkKey(derive(40, i));
    else own.accept.sample.watermark.key = WatermarkKey(derive(40, i));
    requests.push_back({.source = i, .search = Processed<S>{own, structure}, .seed = i + 5});
  }
  return requests;
}

}  // namespace

TEST_CASE("beneath an expression, what is free is marked and found; what is certain is not counted", "[watermark]") {
  Characters const world;
  constexpr std::uint64_t count = 6;
  std::regex const expression(free_expression);
  Structure const structure(Grammar::from_regex(free_expression), world.trie);
  for (auto const scheme : {Scheme::gumbel, Scheme::synthid, Scheme::red_green})
    for (auto const prf : {WatermarkPrf::sluice, WatermarkPrf::philox}) {
      INFO(name(scheme) << " " << name(prf));
      Sample search{.length = {.max = most}, .watermark = {.scheme = scheme, .prf = prf, .key = WatermarkKey(1)}};
      search.watermark.delta = 4;
      if (prf == WatermarkPrf::philox) search.top_k = 12;
      Processed<Sample> const structured{search, structure};
      auto const requests = marked_requests(search, structure, count);
      auto const results = run<everything>(world.table, requests, structured, Batched{.size = 4});
      double with_mask = 0, without = 0;
      for (std::size_t i = 0; i < results.size(); ++i) {
        REQUIRE(results[i].ok());
        auto const& h = results[i].hypotheses.at(0);
        CHECK(h.finished);
        CHECK(std::regex_match(world.bytes.text(h.tokens), expression));
        auto const& own = requests[i].search->search.watermark;
        detail::Marker const marker(own);
        auto const free =
            replay(world, structure, i, h.tokens, scheme == Scheme::gumbel && search.top_k == 0 ? &marker : nullptr);
        auto const found = detect_watermark(h.tokens, own, {.mask = free.certain});
        CHECK(found.masked == found.tokens - static_cast<std::int32_t>(free.choices));
        CHECK(found.scored + found.repeated == static_cast<std::int32_t>(free.choices));
        CHECK(found.masked > 5);
        CHECK(found.p_value < 1e-4);
        auto other = own;
        other.key = WatermarkKey(77);
        CHECK(detect_watermark(h.tokens, other, {.mask = free.certain}).p_value > 1e-4);
        if (scheme == Scheme::gumbel && search.top_k == 0) CHECK(free.marked > 30);
        with_mask += std::log(found.p_value), without += std::log(detect_watermark(h.tokens, own).p_value);
        // Alone, and among others: the same bits.
        auto alone = requests[i];
        CHECK(same_outputs(run<everything>(world.table, {alone}, structured)[0], results[i]));
      }
      CHECK(with_mask < without);
      auto const streamed = run<everything>(world.table, requests, structured, Streaming{.size = 3});
      for (std::size_t i = 0; i < results.size(); ++i) CHECK(same_outputs(streamed[i], results[i]));
      // In blocks, with the certain tokens verified and not chosen.
      acceptance::Sampling const rule{{.top_k = search.top_k, .watermark = search.watermark}};
      Blockwise<acceptance::Sampling> const blocks{.block = 5, .accept = rule, .length = {.max = most}};
      auto const in_blocks = run<everything>(world.table, marked_requests(blocks, structure, count),
                                             Processed<Blockwise<acceptance::Sampling>>{blocks, structure});
      for (std::size_t i = 0; i < results.size(); ++i) {
        REQUIRE(in_blocks[i].ok());
        CHECK(in_blocks[i].hypotheses[0].tokens == results[i].hypotheses[0].tokens);
      }
    }
}

TEST_CASE("beneath a schema, what is free is marked and found", "[watermark]") {
  Characters const world;
  auto const grammar = Grammar::from_json_schema(
      R"({"type": "object", "properties": {"kind": {"enum": ["story", "letter"]},
          "note": {"type": "string", "minLength": 70, "maxLength": 90}},
          "required": ["kind", "note"], "additionalProperties": false})");
  Structure const structure(grammar, world.trie);
  Sample const search{.length = {.max = most}, .watermark = {.scheme = Scheme::gumbel, .key = WatermarkKey(1)}};
  auto const requests = marked_requests(search, structure, 8);
  auto const results = run<everything>(world.table, requests, Processed<Sample>{search, structure}, Batched{.size = 3});
  for (std::size_t i = 0; i < results.size(); ++i) {
    REQUIRE(results[i].ok());
    auto const& tokens = results[i].hypotheses.at(0).tokens;
    auto const value = nlohmann::json::parse(world.bytes.text(tokens));
    CHECK((value.size() == 2 && (value.at("kind") == "story" || value.at("kind") == "letter")));
    CHECK((value.at("note").get<std::string>().size() >= 70 && value.at("note").get<std::string>().size() <= 90));
    auto const& own = requests[i].search->search.watermark;
    detail::Marker const marker(own);
    auto const free = replay(world, structure, i, tokens, &marker);
    CHECK(free.marked > 40);
    auto const found = detect_watermark(tokens, own, {.mask = free.certain});
    CHECK(found.scored + found.repeated == static_cast<std::int32_t>(free.choices));
    CHECK(found.p_value < 1e-8);
    auto other = own;
    other.key = WatermarkKey(77);
    CHECK(detect_watermark(tokens, other, {.mask = free.certain}).p_value > 1e-4);
  }
}

TEST_CASE("one free choice is no evidence, and none at all leaves p at 1", "[watermark]") {
  Characters const world;
  auto const texts_of = [&](std::string const& text) {
    Structure const structure(Grammar::from_regex(text), world.trie, {.certain = CertainText::longest});
    Sample const search{.length = {.max = most}, .watermark = {.scheme = Scheme::gumbel, .key = WatermarkKey(1)}};
    auto const requests = marked_requests(search, structure, 40);
    auto const results = run<everything>(world.table, requests, Processed<Sample>{search, structure});
    std::vector<WatermarkDetection> found;
    for (std::size_t i = 0; i < results.size(); ++i) {
      REQUIRE(results[i].ok());
      auto const& tokens = results[i].hypotheses.at(0).tokens;
      CHECK(std::regex_match(world.bytes.text(tokens), std::regex(text)));
      auto const free = replay(world, structure, i, tokens, nullptr);
      found.push_back(detect_watermark(tokens, requests[i].search->search.watermark, {.mask = free.certain}));
      CHECK(found.back().scored == static_cast<std::int32_t>(free.choices));
    }
    return found;
  };
  double least = 1;
  for (auto const& found : texts_of(tight_expression)) {
    CHECK(found.masked > 10);
    CHECK(found.scored <= 2);
    least = std::min(least, found.p_value);
  }
  CHECK(least > 1e-4);
  for (auto const& found : texts_of("that is what was to be said")) {
    CHECK((found.scored == 0 && found.score == 0 && found.p_value == 1));
    CHECK(found.masked == found.tokens);
  }
}

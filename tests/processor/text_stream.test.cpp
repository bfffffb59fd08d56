// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/processor/stop_sequences.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>

#include <support/decoding.hpp>
#include <support/stops.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// What a stream shows after each token (its text is `pieces[i]`) and at the end.
std::vector<std::string> shown(std::vector<std::string> const& pieces, StopOptions stops, std::int32_t stop = -1,
                               IncludeStop kept = IncludeStop::no) {
  stops.bytes = TokenBytes(pieces);
  TextStream stream(StopSequences(std::move(stops)), kept);
  Hypothesis hypothesis;
  std::vector<std::string> all;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    hypothesis.tokens.push_back(static_cast<Token>(i));
    all.emplace_back(stream.append({&hypothesis.tokens.back(), 1}));
  }
  hypothesis.stop = stop;
  all.push_back(stream.end(hypothesis));
  return all;
}

using Pieces = std::vector<std::string>;

/// Streams every sentence and compares the text with that of its result.
/// \returns  number of pieces shown before the end
template <class S>
std::size_t stream_all(Table const& table, S const& search, StopOptions const& stops, std::vector<Token> const& prefix,
                       IncludeStop kept) {
  using Stopped = Processed<S>;
  StopSequences const rule(stops);
  TableModel<everything> model(table);
  Decoder decoder(model, Stopped{search, rule}, Streaming{.size = 3, .refill_below = 1});
  std::vector<TextStream> streams;
  std::vector<std::string> texts(8);
  std::vector<std::vector<Token>> last(8);
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    decoder.submit({.source = seed, .prefix = prefix});
    streams.emplace_back(rule, kept);
  }
  std::size_t pieces = 0, ended = 0;
  for (auto more = true; more;) {
    more = decoder.step();
    decoder.settled([](std::uint64_t) { return true; },
                    [&](std::uint64_t id, std::span<Token const> tokens) {
                      auto& before = last[id];
                      CHECK(std::equal(before.begin(), before.end(), tokens.begin()));
                      before.assign(tokens.begin(), tokens.end());
                      auto const piece = streams[id].append(tokens.subspan(streams[id].size()));
                      texts[id] += piece, pieces += piece.empty() ? 0 : 1;
                    });
    for (Result result; decoder.poll(result); ++ended) {
      auto const& h = result.hypotheses.at(0);
      auto const& text = texts[result.id] += streams[result.id].end(h);
      CHECK(text == rule.text(h, kept));
    }
  }
  CHECK(ended == 8);
  return pieces;
}

}  // namespace

TEST_CASE("a stream holds back what may become a stop, and no more", "[text_stream]") {
  StopOptions const stops{.strings = {"\n\n", "User:"}};
  CHECK(shown({"a ", "Us", "age: ", "x\n", "y"}, stops) == Pieces{"a ", "", "Usage: ", "x", "\ny", ""});
  CHECK(shown({"a ", "Us", "er"}, stops) == Pieces{"a ", "", "", "User"});
  CHECK(shown({"a ", "xUs", "er", ": y"}, stops, 1) == Pieces{"a ", "x", "", "", ""});
  CHECK(shown({"a ", "xUs", "er", ": y"}, stops, 1, IncludeStop::yes) == Pieces{"a ", "xUs", "er", ":", ""});
  CHECK(shown({"a", "b\n\nc", "d"}, stops) == Pieces{"a", "b", "\n\ncd", ""});  // the stop did not count
  CHECK(shown({"a", "", "b\n", "", "\n"}, stops, 0) == Pieces{"a", "", "b", "", "", ""});
}

TEST_CASE("a stream holds back tokens that may become a stop", "[text_stream]") {
  StopOptions const stops{.tokens = {{1, 2, 3}, {2, 4}}};
  CHECK(shown({"a", "b", "c", "d"}, stops, 0) == Pieces{"a", "", "", "", ""});
  CHECK(shown({"a", "b", "c", "d"}, stops, 0, IncludeStop::yes) == Pieces{"a", "b", "c", "d", ""});
  CHECK(shown({"a", "b", "c"}, stops) == Pieces{"a", "", "", "bc"});
}

TEST_CASE("a stream never shows half a character", "[text_stream]") {
  CHECK(shown({"\xE4", "\xBA", "\x8C", "x"}, {}) == Pieces{"", "", "\xE4\xBA\x8C", "x", ""});
  CHECK(shown({"a\xF0\x9F", "\x98\x80", "\xC3"}, {}) == Pieces{"a", "\xF0\x9F\x98\x80", "", "\xC3"});
  CHECK(shown({"\xE4", "b", "\x80\x80\x80\x80\x80", "\xFF"}, {}) == Pieces{"",
                                                                           "\xE4"
                                                                           "b",
                                                                           "\x80\x80\x80\x80\x80", "\xFF",
                                                                           ""});  // not UTF-8
  CHECK(shown({"\xC3", "\xA9", "\xC3"}, {.strings = {"\xC3\xA9!"}}) == Pieces{"", "", "\xC3\xA9", "\xC3"});
}

TEST_CASE("a stream waits for as many bytes as each first byte of UTF-8 says", "[text_stream]") {
  for (int first = 0; first < 256; ++first) {
    // RFC 3629, section 4: no character begins with 80 to C1 or F5 to FF.
    std::size_t const size = first >= 0xC2 && first <= 0xDF   ? 2
                             : first >= 0xE0 && first <= 0xEF ? 3
                             : first >= 0xF0 && first <= 0xF4 ? 4
                                                              : 1;
    for (auto const* const before : {"", "abcd"}) {
      TextStream stream(TokenBytes(Pieces{before, std::string(1, static_cast<char>(first)), "\x80"}));
      std::vector<Token> tokens{0, 1};
      std::string all(1, static_cast<char>(first)), shown_so_far;
      CHECK(stream.append(std::span(tokens).first(1)) == before);
      for (std::size_t bytes = 1; bytes <= 5; ++bytes) {
        shown_so_far += stream.append(std::span(tokens).subspan(stream.size()));
        INFO("first byte " << first << ", " << bytes << " bytes");
        CHECK(shown_so_far == (bytes < size ? "" : all));
        tokens.push_back(2), all += '\x80';
      }
    }
  }
}

TEST_CASE("what is streamed is the result's text, under any search", "[text_stream]") {
  std::mt19937_64 random(1);
  std::size_t pieces = 0;
  for (int round = 0; round < 120; ++round) {
    auto const table = random_table(random, static_cast<std::int32_t>(5 + random() % 6));
    auto const stops = random_stops(random, table);
    auto const prefix = round % 3 == 0 ? std::vector<Token>{3, 4, 3} : std::vector<Token>{};
    auto const kept = round % 2 == 0 ? IncludeStop::no : IncludeStop::yes;
    LengthLimits const length{.min = round % 5 == 0 ? 6 : 0, .max = 12};
    pieces += stream_all(table, Greedy{.length = length}, stops, prefix, kept);
    pieces += stream_all(table, Sample{.length = length}, stops, prefix, kept);
    pieces += stream_all(
        table, BeamSearch{.width = 3, .length = length, .early_stopping = {.rule = EarlyStopping::Rule::exact}}, stops,
        prefix, kept);
  }
  CHECK(pieces > 3000);
}

TEST_CASE("a stream refuses what does not go on from what it has shown", "[text_stream]") {
  TextStream stream(TokenBytes(Pieces{"a", "b"}));
  stream.append(std::vector<Token>{0, 1});
  CHECK(stream.size() == 2);
  CHECK_THROWS_AS(stream.append(std::vector<Token>{2}), std::invalid_argument);
  CHECK_THROWS_AS(stream.end({.tokens = {1, 1}, .log_probs = {}}), std::invalid_argument);
}

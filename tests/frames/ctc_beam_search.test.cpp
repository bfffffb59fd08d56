// SPDX-License-Identifier: Apache-2.0
// CTC against every alignment, and against a beam search over a table of prefixes.
//
// Mutants that were tried by hand. Cases here notice these:
//   merging removed (an entry takes nothing from its parent); a child that is in the beam is added again; a token that repeats needs no
//   blank; a blank counted twice; the last token does not go on; frames end one early; the best path after a token, or by the parent,
//   forgotten; an entry that was dropped keeps its place; ancestors collected; nodes found below other parents; alignments not renumbered;
//   a skipped frame keeps what ends in a token; the worst kept; a bound too high
// those of ctc_rules.test.cpp these:
//   what is added not kept; the bound without what a rule may add; a text may end anywhere; rows not in order; the end of a word not told;
//   an end before the last rows
// and nothing this one, which only keeps a slot longer than needed: a slot that is free at once, not after the step.
#include <sluice/core/logits_processor.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/frames/ctc_alignment.hpp>
#include <sluice/frames/ctc_beam_search.hpp>
#include <sluice/frames/ctc_frames.hpp>
#include <sluice/frames/frame_stream.hpp>
#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/phrase.hpp>

#include <support/allocations.hpp>
#include <support/catch.hpp>
#include <support/ctc_reference.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

static_assert(SettlingSearch<CtcBeamSearch<>>);
using Sources = std::vector<MatrixView<float const>>;

template <class S>
Result decode_one(RandomFrames const& frames, S const& search, Token blank = 0) {
  CtcFrames<> model(frames.size, blank, Kind::log_probs);
  return decode(model, Sources{frames.view()}, search).at(0);
}

/// The texts of a result are those of a plain search, in its order.
void check_same(Result const& result, std::vector<PlainCtcText> const& expected, std::size_t n_best) {
  REQUIRE(result.ok());
  REQUIRE(result.hypotheses.size() == (std::min)(expected.size(), n_best));
  for (std::size_t i = 0; i < result.hypotheses.size(); ++i) {
    auto const& h = result.hypotheses[i];
    CHECK(h.tokens == expected[i].text);
    CHECK(h.finished);
    CHECK_THAT(h.log_prob, WithinAbs(expected[i].log_prob, 1e-7));
    CHECK_THAT(h.score, WithinAbs(expected[i].score, 1e-5));  // rules add floats
  }
}

void check_equal(Result const& a, Result const& b) {
  REQUIRE(a.hypotheses.size() == b.hypotheses.size());
  for (std::size_t i = 0; i < a.hypotheses.size(); ++i) {
    auto const &x = a.hypotheses[i], &y = b.hypotheses[i];
    CHECK((x.tokens == y.tokens && x.log_prob == y.log_prob && x.score == y.score && x.frames == y.frames &&
           x.log_probs == y.log_probs));
  }
}

}  // namespace

TEST_CASE("at full width every text has the sum of its alignments, in order, on the frames of the best", "[ctc]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    auto const labels = 2 + static_cast<std::int32_t>(seed % 3);
    auto const count = 1 + static_cast<std::int32_t>(seed / 3 % (labels == 4 ? 7 : 8));
    auto const blank = static_cast<Token>(seed % 5) % labels;
    RandomFrames const frames(seed, count, labels, seed % 2 == 0 ? 1.0f : 4.0f);
    auto const expected = all_texts(frames, blank);
    auto const result =
        decode_one(frames, CtcBeamSearch<>{.width = 1 << 14, .n_best = 1 << 14, .top_tokens = 0}, blank);
    REQUIRE(result.ok());
    REQUIRE(result.hypotheses.size() == expected.size());
    double sum = 0;
    for (std::size_t i = 0; i < result.hypotheses.size(); ++i) {
      auto const& h = result.hypotheses[i];
      auto const found = expected.find(h.tokens);
      REQUIRE(found != expected.end());
      CHECK_THAT(h.log_prob, WithinAbs(std::log(found->second.probability), 1e-9));
      CHECK((h.finished && h.score == h.log_prob));
      CHECK(h.frames == found->second.frames);
      REQUIRE(h.log_probs.size() == h.tokens.size());
      for (std::size_t t = 0; t < h.tokens.size(); ++t) {
        auto best = -std::numeric_limits<float>::infinity();
        for (auto frame = h.frames[t].begin; frame < h.frames[t].end; ++frame)
          best = (std::max)(best, frames.line(frame)[std::size_t(h.tokens[t])]);
        CHECK(h.log_probs[t] == best);
      }
      if (i > 0) CHECK(h.log_prob <= result.hypotheses[i - 1].log_prob);
      sum += std::exp(h.log_prob);
    }
    CHECK_THAT(sum, WithinAbs(1, 1e-5));
  }
}

TEST_CASE("a shortlist: texts of its labels, over which and the blank frames are normalised", "[ctc]") {
  for (auto const kind : {Kind::log_probs, Kind::logits}) {
    RandomFrames const frames(77, 5, 5), few(77, 5, 3);
    auto fewer = few;  // labels 1, 3 and the blank, 2
    for (std::int32_t t = 0; t < 5; ++t) {
      double sum = 0;
      for (auto const label : {1, 2, 3}) sum += std::exp(double(frames.line(t)[std::size_t(label)]));
      for (auto const label : {1, 2, 3})
        fewer.log_probs[std::size_t(3 * t + label - 1)] =
            float(double(frames.line(t)[std::size_t(label)]) - std::log(sum));
    }
    CtcFrames<> model(5, 2, kind);
    CtcBeamSearch<> const search{.width = 500, .n_best = 500};
    Request<MatrixView<float const>, CtcBeamSearch<>> request{.source = frames.view()};
    request.shortlist = TokenSet(5);
    request.shortlist->insert(1), request.shortlist->insert(3);
    auto const result = decode(model, std::vector{request}, search).at(0);
    auto const expected = all_texts(fewer, 1);
    REQUIRE(result.hypotheses.size() == expected.size());
    for (auto const& h : result.hypotheses) {
      auto text = h.tokens;
      for (auto& token : text) --token;
      CHECK_THAT(h.log_prob, WithinAbs(std::log(expected.at(text).probability), 1e-5));
    }
  }
}

TEST_CASE("frames that a slot of the model cannot hold are refused", "[ctc]") {
  struct Short : CtcFrames<> {
    using CtcFrames<>::CtcFrames;
    Limits most;
    std::int32_t fed = 0;
    Limits limits() const { return most; }
    Scores<float> step(std::span<Row const> rows) {
      for (auto const& row : rows) fed = std::max(fed, row.length + std::int32_t(row.tokens.size()));
      return CtcFrames<>::step(rows);
    }
  };
  RandomFrames const frames(8, 12, 4), other(9, 5, 4);
  for (auto const block : {1, 64}) {
    CtcBeamSearch<> const search{.width = 4, .block = block};
    auto const run = [&](Limits const& most) {
      Short model(4, 0, Kind::log_probs);
      model.most = most;
      auto const results = decode(model, Sources{frames.view(), other.view()}, search, Streaming{.size = 2});
      check_equal(results.at(1), decode_one(other, search));
      CHECK(model.fed <= std::min<std::int64_t>(most.length, most.tokens));
      return results.at(0);
    };
    check_equal(run({}), decode_one(frames, search));
    check_equal(run({.length = 12}), decode_one(frames, search));
    check_equal(run({.tokens = 12}), decode_one(frames, search));
    auto const length = run({.length = 11});
    CHECK(length.failure == Failure::no_room);
    CHECK(length.message.find("frames = 12: those of the model hold 11 in a slot") != std::string::npos);
    CHECK(run({.tokens = 11}).failure == Failure::no_room);
  }
}

TEST_CASE("logits are normalised, and 16-bit numbers taken", "[ctc]") {
  struct Half {  // any type that converts to float
    std::int16_t eighths = 0;
    operator float() const { return float(eighths) / 8; }  // NOLINT: implicit
  };
  RandomFrames frames(7, 6, 4);
  std::vector<Half> halves;
  for (std::int32_t i = 0; i < frames.count; ++i) {
    double sum = 0;
    for (std::size_t v = 0; v < 4; ++v) {
      auto& x = frames.log_probs[std::size_t(i) * 4 + v];
      halves.push_back({static_cast<std::int16_t>(std::lround(x * 8))});
      x = halves.back(), sum += std::exp(double(x));
    }
    for (std::size_t v = 0; v < 4; ++v) frames.log_probs[std::size_t(i) * 4 + v] -= float(std::log(sum));
  }
  auto const expected = plain_ctc(frames, 1, {.width = 1000});
  CtcBeamSearch<> const search{.width = 1000, .n_best = 5};
  CtcFrames<Half> model(4, 1);
  auto const result = decode(model, std::vector<MatrixView<Half const>>{{halves.data(), 6, 4, 4}}, search).at(0);
  REQUIRE(result.hypotheses.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(result.hypotheses[i].tokens == expected[i].text);
    CHECK_THAT(result.hypotheses[i].log_prob, WithinAbs(expected[i].log_prob, 1e-4));
  }
  std::vector<float> floats(halves.begin(), halves.end());
  CtcFrames<> model_of_floats(4, 1);
  check_equal(decode(model_of_floats, Sources{{floats.data(), 6, 4, 4}}, search).at(0), result);
}

TEST_CASE("a narrow beam is that of a table of prefixes", "[ctc]") {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    PlainCtc plain{.width = 1 + static_cast<std::int32_t>(seed % 7) * 3};
    if (seed % 3 == 1) plain.top_tokens = 3;
    if (seed % 4 == 1) plain.token_floor = -2;
    if (seed % 4 == 2) plain.threshold = 4;
    if (seed % 4 == 3) plain.skip_blank = 0.6;
    RandomFrames const frames(100 + seed, 80, 4 + static_cast<std::int32_t>(seed % 5) * 3);
    auto const blank = static_cast<Token>(seed % 4);
    auto const result = decode_one(frames,
                                   CtcBeamSearch<>{.width = plain.width,
                                                   .n_best = plain.width,
                                                   .top_tokens = plain.top_tokens,
                                                   .token_floor = static_cast<float>(plain.token_floor),
                                                   .threshold = plain.threshold,
                                                   .skip_blank = plain.skip_blank},
                                   blank);
    INFO(seed);
    check_same(result, plain_ctc(frames, blank, plain), std::size_t(plain.width));
  }
}

TEST_CASE("a long utterance drops what no prefix needs, and stays that of a table", "[ctc]") {
  RandomFrames const frames(5, 700, 12, 1.5f);  // flat: prefixes come and go
  auto const result = decode_one(frames, CtcBeamSearch<>{.width = 24, .n_best = 24, .top_tokens = 0}, 2);
  check_same(result, plain_ctc(frames, 2, {.width = 24}), 24);
  for (auto const& h : result.hypotheses)
    for (std::size_t t = 0; t < h.tokens.size(); ++t) {
      CHECK(h.frames[t].begin < h.frames[t].end);
      CHECK(h.frames[t].begin >= (t == 0 ? 0 : h.frames[t - 1].end));
      CHECK(h.frames[t].end <= 700);
    }
}

TEST_CASE("batches, schedules and blocks give the same bits", "[ctc]") {
  std::vector<RandomFrames> all;
  for (std::uint64_t i = 0; i < 70; ++i) all.emplace_back(900 + i, 1 + static_cast<std::int32_t>(i * 37 % 90), 9);
  Sources sources;
  for (auto const& frames : all) sources.push_back(frames.view());
  CtcFrames<> model(9, 4, Kind::log_probs);
  CtcBeamSearch<> search{.width = 12, .n_best = 4};
  auto const alone = decode(model, sources, search, Batched{.size = 1});
  REQUIRE(alone.size() == 70);
  for (auto const block : {1, 4, 37, 64})
    for (auto const size : {std::size_t{1}, std::size_t{7}, std::size_t{64}}) {
      search.block = block;
      auto const batched = decode(model, sources, search, Batched{.size = size});
      auto const streamed =
          decode(model, sources, search, Streaming{.size = size, .refill_below = 1.0, .max_rows = 100});
      for (std::size_t i = 0; i < alone.size(); ++i)
        check_equal(batched[i], alone[i]), check_equal(streamed[i], alone[i]);
    }
}

TEST_CASE("what is settled grows, and the result begins with it", "[ctc]") {
  RandomFrames const frames(77, 120, 8, 4);
  CtcFrames<> model(8, 0, Kind::log_probs);
  CtcBeamSearch<> const search{.width = 8, .n_best = 8, .block = 3};
  Decoder decoder(model, search);
  decoder.submit({.source = frames.view()});
  std::vector<std::vector<Token>> settled;
  while (decoder.step())
    decoder.settled(
        [](std::uint64_t) { return true; },
        [&](std::uint64_t, std::span<Token const> tokens) { settled.emplace_back(tokens.begin(), tokens.end()); });
  Result result;
  REQUIRE(decoder.poll(result));
  REQUIRE(settled.size() > 10);
  CHECK(settled[settled.size() / 2].size() > 5);
  std::size_t before = 0;
  for (auto const& tokens : settled) {
    CHECK(tokens.size() >= before);
    before = tokens.size();
    for (auto const& h : result.hypotheses)
      CHECK((tokens.size() <= h.tokens.size() && std::equal(tokens.begin(), tokens.end(), h.tokens.begin())));
  }
}

TEST_CASE("an utterance that is interrupted tells what it has", "[ctc]") {
  RandomFrames const frames(78, 50, 8, 4);
  CtcFrames<> model(8, 0, Kind::log_probs);
  Decoder decoder(model, CtcBeamSearch<>{.width = 8, .block = 20});
  auto const id = decoder.submit({.source = frames.view()});
  decoder.step();
  decoder.cancel(id);
  Result result;
  REQUIRE(decoder.poll(result));
  CHECK(result.failure == Failure::cancelled);
  REQUIRE(result.hypotheses.size() == 1);
  CHECK(!result.hypotheses[0].finished);
  RandomFrames beginning(78, 20, 8, 4);
  CHECK(result.hypotheses[0].tokens == decode_one(beginning, CtcBeamSearch<>{.width = 8}).hypotheses[0].tokens);
}

TEST_CASE("frames allocate nothing once warm", "[ctc]") {
  RandomFrames const frames(6, 400, 20, 1.5f);
  CtcFrames<> model(20, 0, Kind::log_probs);
  Decoder decoder(model, CtcBeamSearch<>{.width = 20, .block = 10});
  for (int round = 0; round < 3; ++round) {
    decoder.submit({.source = frames.view()});
    decoder.step();
    auto const before = allocations();
    for (int i = 0; i < 38; ++i) decoder.step();
    if (round > 0) CHECK(allocations() == before);
    while (decoder.step()) {
    }
  }
}

TEST_CASE("a million frames of a stream hold no memory", "[ctc]") {
  CtcStream model(3, 0, Kind::log_probs);
  Decoder decoder(model, CtcBeamSearch<>{.width = 3});
  auto const id = decoder.submit({});
  std::mt19937_64 random(1);
  std::vector<float> numbers;
  std::vector<Token> written;
  std::size_t warm = 0, before_last = 0;
  for (std::int32_t chunk = 0; chunk < 1000; ++chunk) {
    numbers.clear();
    for (auto frame = chunk * 1000; frame < chunk * 1000 + 1000; ++frame) {
      auto const token = frame < 100'000 && frame % 500 == 0 ? 1 + frame / 500 % 2 : 0;  // then nothing is said
      if (token != 0) written.push_back(token);
      auto const doubt = 1e-7 * static_cast<double>(1 + random() % 1000) / 1000;
      for (Token v = 0; v < 3; ++v) numbers.push_back(static_cast<float>(std::log(v == token ? 1 - doubt : doubt / 2)));
    }
    if (chunk == 110) warm = allocations();
    if (chunk == 999) before_last = allocations();
    decoder.append(id, MatrixView<float const>{numbers.data(), 1000, 3, 3}, chunk == 999);
    while (decoder.step()) {
    }
  }
  CHECK(before_last == warm);
  Result result;
  REQUIRE(decoder.poll(result));
  CHECK(result.frames == 1'000'000);
  CHECK(result.hypotheses.at(0).tokens == written);
}

TEST_CASE("the best path joins equal neighbours", "[ctc]") {
  RandomFrames const frames(9, 200, 5, 3);
  auto const path = ctc_best_path(scores(frames.log_probs.data(), 200, 5, Kind::log_probs), 2);
  std::vector<Token> expected;
  std::vector<FrameRange> ranges;
  double log_prob = 0;
  Token before = 2;
  for (std::int32_t i = 0; i < 200; ++i) {
    auto const line = frames.line(i);
    auto const best = static_cast<Token>(std::max_element(line.begin(), line.end()) - line.begin());
    log_prob += double(line[std::size_t(best)]);
    if (best != 2 && best != before) expected.push_back(best), ranges.push_back({i, i + 1});
    else if (best != 2) ranges.back().end = i + 1;
    before = best;
  }
  CHECK(path.tokens == expected);
  CHECK(path.frames == ranges);
  CHECK(path.finished);
  CHECK_THAT(path.log_prob, WithinAbs(log_prob, 1e-9));
  // The same numbers as logits: they sum to one.
  auto const logits = ctc_best_path(scores(frames.log_probs.data(), 200, 5), 2);
  CHECK(logits.tokens == expected);
  CHECK_THAT(logits.log_prob, WithinAbs(log_prob, 1e-4));
  CHECK(logits.log_probs.size() == expected.size());
  // One label a frame, and width 1: the beam has no more to sum.
  auto const narrow = decode_one(RandomFrames(9, 1, 5, 3), CtcBeamSearch<>{.width = 1}, 2);
  CHECK(narrow.hypotheses[0].tokens == ctc_best_path(scores(frames.log_probs.data(), 1, 5, Kind::log_probs), 2).tokens);
}

TEST_CASE("bad frames, blanks and options are named", "[ctc]") {
  CHECK_THROWS_WITH(CtcFrames<>(5, 5), "sluice: blank = 5: is outside the vocabulary of 5");
  CHECK_THROWS_WITH(CtcFrames<>(5, -1), "sluice: blank = -1: is outside the vocabulary of 5");
  CHECK_THROWS_WITH(CtcFrames<>(1, 0), "sluice: size = 1: a blank and at least one label are needed");
  CHECK_THROWS_WITH(CtcBeamSearch<>{.width = 0}.check(), "sluice: width = 0: must be at least 1");
  CHECK_THROWS_WITH(
      CtcBeamSearch<>{.width = 2147483647}.check(),
      "sluice: width = 2147483647: needs more slots of the model than any sentence has: must be at most 1048576");
  CHECK_THROWS_WITH((CtcBeamSearch<>{.width = 3, .n_best = 4}.check()),
                    "sluice: n_best = 4: must be between 1 and the width");
  CHECK_THROWS_WITH(CtcBeamSearch<>{.top_tokens = -1}.check(), "sluice: top_tokens = -1: must not be negative");
  CHECK_THROWS_WITH(CtcBeamSearch<>{.token_floor = 1}.check(),
                    "sluice: token_floor = 1.000000: must be a log-probability");
  CHECK_THROWS_WITH(CtcBeamSearch<>{.threshold = -1}.check(), "sluice: threshold = -1.000000: must be a number >= 0");
  CHECK_THROWS_WITH(CtcBeamSearch<>{.skip_blank = 0}.check(), "sluice: skip_blank = 0.000000: must be a number > 0");
  CHECK_THROWS_WITH(CtcBeamSearch<>{.blank = -2}.check(), "sluice: blank = -2: must be a token, or -1");
  CHECK_THROWS_WITH(CtcBeamSearch<>{.block = 0}.check(), "sluice: block = 0: must be at least 1");

  RandomFrames const frames(3, 6, 4);
  auto const fails = [&](Sources const& sources, CtcBeamSearch<> const& search,
                         Request<MatrixView<float const>, CtcBeamSearch<>> request = {}) {
    CtcFrames<> model(4, 0, Kind::log_probs);
    request.source = sources[0];
    std::vector<Request<MatrixView<float const>, CtcBeamSearch<>>> requests{request};
    return decode(model, requests, search).at(0);
  };
  auto const none = fails({{frames.log_probs.data(), 0, 4, 4}}, {});
  CHECK(none.failure == Failure::bad_request);
  CHECK(none.message.find("frames = 0: there must be at least one") != std::string::npos);
  auto const wide = fails({{frames.log_probs.data(), 3, 5, 5}}, {});
  CHECK(wide.failure == Failure::source);
  CHECK(wide.message.find("source.columns = 5: must be the number of labels, 4") != std::string::npos);
  auto const outside = fails({frames.view()}, {.blank = 4});
  CHECK(outside.failure == Failure::bad_request);
  CHECK(outside.message.find("blank = 4: is outside the vocabulary of 4") != std::string::npos);
  auto const prefix = fails({frames.view()}, {}, {.prefix = {1}});
  CHECK(prefix.failure == Failure::bad_request);
  CHECK(prefix.message.find("prefix = 1 tokens: a search over frames takes no forced prefix") != std::string::npos);
  auto const prompt = fails({frames.view()}, {}, {.prompt = {1, 2}});
  CHECK(prompt.failure == Failure::bad_request);

  auto broken = frames;
  broken.log_probs[4 * 3 + 2] = std::numeric_limits<float>::quiet_NaN();
  CHECK(fails({broken.view()}, {}).failure == Failure::not_a_number);
  broken = frames;
  for (std::size_t v = 0; v < 4; ++v) broken.log_probs[4 * 3 + v] = -std::numeric_limits<float>::infinity();
  for (auto const block : {1, 64}) {
    auto const nothing = fails({broken.view()}, {.block = block});
    CHECK(nothing.failure == Failure::no_token_left);
    CHECK(nothing.message == "frame 3 leaves no text that is possible");
    CHECK(nothing.hypotheses.empty());
  }
  CHECK_THROWS_WITH(ctc_best_path(scores(broken.log_probs.data(), 6, 4)),
                    "sluice: frame = 3: has no label that is possible");
  broken.log_probs[9] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_WITH(ctc_best_path(scores(broken.log_probs.data(), 6, 4)), "sluice: frame = 2: has a NaN or +infinity");
  CHECK_THROWS_WITH(ctc_best_path(scores(broken.log_probs.data(), 0, 4)),
                    "sluice: frames = 0: there must be at least one");
  CHECK_THROWS_WITH(ctc_best_path(scores(broken.log_probs.data(), 6, 4), 4),
                    "sluice: blank = 4: is outside the vocabulary of 4");
}

TEST_CASE("utterances that fail take no others down", "[ctc]") {
  std::vector<RandomFrames> all;
  for (std::uint64_t i = 0; i < 20; ++i) all.emplace_back(300 + i, 30, 4);
  all[3].log_probs[50] = std::numeric_limits<float>::quiet_NaN();
  all[7].log_probs[119] = std::numeric_limits<float>::infinity();
  for (std::size_t v = 0; v < 4; ++v) all[11].log_probs[v] = -std::numeric_limits<float>::infinity();
  Sources sources;
  for (auto const& frames : all) sources.push_back(frames.view());
  sources[13].rows = 0, sources[17].columns = sources[17].stride = 3;
  CtcFrames<> model(4, 1, Kind::log_probs);
  CtcBeamSearch<> const search{.width = 8, .n_best = 3};
  for (auto const size : {std::size_t{1}, std::size_t{7}, std::size_t{64}}) {
    auto const results = decode(model, sources, search, Streaming{.size = size, .refill_below = 1.0});
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto const expected = i == 3 || i == 7 ? Failure::not_a_number
                            : i == 11        ? Failure::no_token_left
                            : i == 13        ? Failure::bad_request
                            : i == 17        ? Failure::source
                                             : Failure::none;
      CHECK(results[i].failure == expected);
      if (expected == Failure::none) check_equal(results[i], decode_one(all[i], search, 1));
    }
  }
}

TEST_CASE("a model that never says blank has texts without repeats", "[ctc]") {
  RandomFrames frames(12, 7, 3);
  for (std::size_t i = 0; i < 7; ++i) frames.log_probs[3 * i] = -std::numeric_limits<float>::infinity();
  auto const result = decode_one(frames, CtcBeamSearch<>{.width = 5000, .n_best = 5000});
  auto const expected = all_texts(frames, 0);
  std::size_t possible = 0;
  for (auto const& [text, known] : expected) possible += known.probability > 0;
  REQUIRE(result.hypotheses.size() == possible);
  for (auto const& h : result.hypotheses) {
    CHECK(std::adjacent_find(h.tokens.begin(), h.tokens.end()) == h.tokens.end());
    CHECK_THAT(h.log_prob, WithinAbs(std::log(expected.at(h.tokens).probability), 1e-9));
  }
}

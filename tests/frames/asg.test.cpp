// SPDX-License-Identifier: Apache-2.0
// ASG, and texts that count as their best alignment alone, against every alignment. Mutants that were tried by hand, and are noticed here:
// a transition read as [from, to]; the transition to itself not taken back, or not charged; the first label after itself; a sum where the
// best is asked for, among a prefix' ways or between its ends; the best where a sum is asked for.
#include <sluice/core/matrix_view.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/frames/ctc_beam_search.hpp>
#include <sluice/frames/ctc_frames.hpp>
#include <sluice/frames/language_model.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/phrase.hpp>

#include <support/catch.hpp>
#include <support/ctc_reference.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr auto no = -std::numeric_limits<double>::infinity();
using Text = std::vector<Token>;

/// Random scores of frames and transitions.
struct Asg {
  std::int32_t frames, labels;
  std::vector<float> scores, transitions;  // [frames, labels], [labels, labels]: to, from

  Asg(std::uint64_t seed, std::int32_t its_frames, std::int32_t its_labels) : frames(its_frames), labels(its_labels) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal(1, 2);
    for (std::int32_t i = 0; i < frames * labels; ++i) scores.push_back(normal(random));
    for (std::int32_t i = 0; i < labels * labels; ++i) transitions.push_back(normal(random));
    if (seed % 4 == 0) transitions[1] = -std::numeric_limits<float>::infinity();  // 0 after 1
  }
  MatrixView<float const> source() const { return {scores.data(), frames, labels, labels}; }
  MatrixView<float const> moves() const { return {transitions.data(), labels, labels, labels}; }
  double frame(std::int32_t i, Token label) const { return double(scores[std::size_t(i * labels + label)]); }
  double move(Token from, Token to) const { return double(transitions[std::size_t(to * labels + from)]); }
};

struct Known {
  double sum = no, best = no;
  std::vector<FrameRange> frames{};
};
/// Every text, by going through all alignments.
std::map<Text, Known> all_texts(Asg const& asg) {
  std::map<Text, Known> texts;
  std::vector<Token> path(std::size_t(asg.frames), 0);
  while (true) {
    double score = 0;
    Text text;
    std::vector<FrameRange> ranges;
    for (std::int32_t i = 0; i < asg.frames; ++i) {
      auto const label = path[std::size_t(i)];
      score += asg.frame(i, label);
      if (i > 0) score += asg.move(path[std::size_t(i - 1)], label);
      if (text.empty() || text.back() != label) text.push_back(label), ranges.push_back({i, i + 1});
      else ranges.back().end = i + 1;
    }
    if (score > no) {
      auto& known = texts[text];
      known.sum = std::max(known.sum, score) + std::log1p(std::exp(-std::abs(known.sum - score)));
      if (score > known.best) known.best = score, known.frames = ranges;
    }
    std::size_t digit = 0;
    while (digit < path.size() && ++path[digit] == asg.labels) path[digit++] = 0;
    if (digit == path.size()) return texts;
  }
}

template <class R>
Result decode_one(Asg const& asg, CtcBeamSearch<R> const& search) {
  AsgFrames<> model(asg.moves());
  return decode(model, std::vector{asg.source()}, search).at(0);
}

}  // namespace

TEST_CASE("ASG: at full width every text has the sum of its alignments, or the best, in order", "[asg]") {
  for (std::uint64_t seed = 0; seed < 48; ++seed) {
    auto const labels = 2 + static_cast<std::int32_t>(seed % 3);
    Asg const asg(seed, 1 + static_cast<std::int32_t>(seed / 3 % 7), labels);
    auto const expected = all_texts(asg);
    for (auto const viterbi : {false, true}) {
      auto const result = decode_one(asg, CtcBeamSearch<AsgTransitions>{.width = 1 << 14,
                                                                        .n_best = 1 << 14,
                                                                        .top_tokens = 0,
                                                                        .viterbi = viterbi,
                                                                        .rule = AsgTransitions(asg.moves())});
      INFO(seed << ' ' << result.message);
      REQUIRE(result.hypotheses.size() == expected.size());
      auto before = std::numeric_limits<double>::infinity();
      for (auto const& h : result.hypotheses) {
        auto const& known = expected.at(h.tokens);
        CHECK_THAT(h.score, WithinAbs(viterbi ? known.best : known.sum, 2e-5));
        CHECK(h.frames == known.frames);
        CHECK(h.score <= before);
        before = h.score;
      }
    }
  }
}

TEST_CASE("ASG: a narrow beam is that of a table of prefixes", "[asg]") {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Asg const asg(100 + seed, 60, 3 + static_cast<std::int32_t>(seed % 4) * 2);
    auto const width = std::size_t(1 + seed * 2);
    auto const viterbi = seed % 2 == 1;
    std::map<Text, double> beam;
    for (std::int32_t i = 0; i < asg.frames; ++i) {
      std::map<Text, double> next;
      auto const add = [&](Text const& text, double score) {
        auto const [at, made] = next.emplace(text, score);
        if (made) return;
        auto const most = std::max(at->second, score), least = std::min(at->second, score);
        at->second = viterbi || least == no ? most : most + std::log1p(std::exp(least - most));
      };
      for (Token label = 0; i == 0 && label < asg.labels; ++label) add({label}, asg.frame(0, label));
      for (auto const& [text, score] : beam)
        for (Token label = 0; label < asg.labels; ++label) {
          auto longer = text;
          if (label != text.back()) longer.push_back(label);
          add(longer, score + asg.frame(i, label) + asg.move(text.back(), label));
        }
      std::vector<std::pair<double, Text>> ranked;
      for (auto const& [text, score] : next)
        if (score > no) ranked.emplace_back(-score, text);
      std::sort(ranked.begin(), ranked.end());
      if (ranked.size() > width) ranked.resize(width);
      beam.clear();
      for (auto const& [score, text] : ranked) beam[text] = -score;
    }
    auto const result = decode_one(asg, CtcBeamSearch<AsgTransitions>{.width = static_cast<std::int32_t>(width),
                                                                      .n_best = static_cast<std::int32_t>(width),
                                                                      .top_tokens = 0,
                                                                      .viterbi = viterbi,
                                                                      .rule = AsgTransitions(asg.moves())});
    INFO(seed);
    REQUIRE(result.hypotheses.size() == beam.size());
    for (auto const& h : result.hypotheses) {
      REQUIRE(beam.contains(h.tokens));
      CHECK_THAT(h.score, WithinAbs(beam.at(h.tokens), 2e-4));
    }
  }
}

TEST_CASE("ASG: beside other rules, in batches, of any schedule", "[asg]") {
  Asg const asg(7, 6, 3);
  auto const texts = all_texts(asg);
  CtcBeamSearch<Rules<Forbidden, AsgTransitions>> search{.width = 4096, .n_best = 4096, .top_tokens = 0};
  search.rule = Rules(Forbidden(std::vector<Phrase>{{0, 2}}), AsgTransitions(asg.moves()));
  std::size_t expected = 0;
  for (auto const& [text, known] : texts)
    expected +=
        std::adjacent_find(text.begin(), text.end(), [](Token a, Token b) { return a == 0 && b == 2; }) == text.end();
  auto const result = decode_one(asg, search);
  CHECK(result.hypotheses.size() == expected);
  for (auto const& h : result.hypotheses) CHECK_THAT(h.score, WithinAbs(texts.at(h.tokens).sum, 2e-5));

  std::vector<Asg> all;
  std::vector<MatrixView<float const>> sources;
  for (std::uint64_t i = 0; i < 70; ++i) all.emplace_back(200 + i, 1 + static_cast<std::int32_t>(i * 37 % 90), 9);
  for (auto const& one : all) sources.push_back(one.source());
  AsgFrames<> model(all[0].moves());
  CtcBeamSearch<AsgTransitions> wide{.width = 12, .n_best = 4, .rule = AsgTransitions(all[0].moves())};
  auto const alone = decode(model, sources, wide, Batched{.size = 1});
  for (auto const block : {1, 37, 64})
    for (auto const size : {std::size_t{7}, std::size_t{64}}) {
      wide.block = block;
      auto const others = decode(model, sources, wide, Streaming{.size = size, .refill_below = 1.0, .max_rows = 100});
      for (std::size_t i = 0; i < alone.size(); ++i) {
        REQUIRE(others[i].hypotheses.size() == alone[i].hypotheses.size());
        for (std::size_t k = 0; k < alone[i].hypotheses.size(); ++k) {
          CHECK(others[i].hypotheses[k].tokens == alone[i].hypotheses[k].tokens);
          CHECK(others[i].hypotheses[k].score == alone[i].hypotheses[k].score);
        }
      }
    }
}

TEST_CASE("CTC: texts that count as their best alignment alone", "[ctc]") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto const labels = 2 + static_cast<std::int32_t>(seed % 3);
    RandomFrames const frames(seed, 1 + static_cast<std::int32_t>(seed / 3), labels, 2);
    auto const expected = sluice::test::all_texts(frames, 1);
    CtcFrames<> model(labels, 1, Kind::log_probs);
    CtcBeamSearch<> const search{.width = 1 << 14, .n_best = 1 << 14, .top_tokens = 0, .viterbi = true};
    auto const result = decode(model, std::vector{frames.view()}, search).at(0);
    REQUIRE(result.hypotheses.size() == expected.size());
    for (auto const& h : result.hypotheses) {
      auto const& known = expected.at(h.tokens);
      CHECK_THAT(h.log_prob, WithinAbs(std::log(known.best), 1e-9));
      CHECK((h.score == h.log_prob && h.frames == known.frames));
    }
  }
}

TEST_CASE("labels that stand for repetitions", "[asg]") {
  CHECK(pack_repetitions(Text{7, 4, 11, 11, 14}, 28) == Text{7, 4, 11, 28, 14});
  CHECK(pack_repetitions(Text{5, 5, 5, 5, 5}, 28) == Text{5, 28, 5, 28, 5});
  CHECK(pack_repetitions(Text{5, 5, 5, 5, 5, 6}, 28, 3) == Text{5, 30, 5, 6});
  CHECK(pack_repetitions(Text{5, 5}, 28, 0) == Text{5, 5});
  CHECK(pack_repetitions(Text{}, 28).empty());
  CHECK(unpack_repetitions(Text{28, 5, 29, 28, 6, 28}, 28, 2) == Text{5, 5, 5, 6, 6});
  CHECK_THROWS_WITH(pack_repetitions(Text{1}, 28, -1), "sluice: most = -1: must not be negative");
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    Text text(random() % 12);
    for (auto& token : text) token = static_cast<Token>(random() % 3);
    auto const most = 1 + static_cast<std::int32_t>(random() % 3);
    auto const packed = pack_repetitions(text, 3, most);
    CHECK(std::adjacent_find(packed.begin(), packed.end()) == packed.end());
    CHECK(unpack_repetitions(packed, 3, most) == text);
  }
}

TEST_CASE("ASG: what is refused", "[asg]") {
  auto const not_a_number = std::numeric_limits<float>::quiet_NaN();
  auto const message = "sluice: transitions = 2 x 3: must be a square of the number of labels";
  Asg asg(3, 4, 3);
  MatrixView<float const> const flat{asg.transitions.data(), 2, 3, 3};
  CHECK_THROWS_WITH(AsgFrames<>(flat), message);
  CHECK_THROWS_WITH(AsgTransitions(flat), message);
  auto const fails = [](Asg const& frames, AsgTransitions const& rule) {
    AsgFrames<> model(frames.moves());
    return decode(model, std::vector{frames.source()}, CtcBeamSearch<AsgTransitions>{.rule = rule}).at(0);
  };
  auto const other = fails(asg, AsgTransitions(Asg(3, 4, 4).moves()));
  CHECK(other.failure == Failure::bad_request);
  CHECK(other.message.find("transitions: labels = 4: those of the frames are 3") != std::string::npos);
  Asg broken = asg;
  broken.scores[4] = not_a_number;
  CHECK(fails(broken, AsgTransitions(asg.moves())).failure == Failure::not_a_number);
  AsgFrames<> model(asg.moves());
  auto const none = decode(model, std::vector{MatrixView<float const>{asg.scores.data(), 0, 3, 3}},
                           CtcBeamSearch<AsgTransitions>{.rule = AsgTransitions(asg.moves())})
                        .at(0);
  CHECK(none.failure == Failure::bad_request);
  auto const wide = decode(model, std::vector{MatrixView<float const>{asg.scores.data(), 1, 4, 4}},
                           CtcBeamSearch<AsgTransitions>{.rule = AsgTransitions(asg.moves())})
                        .at(0);
  CHECK(wide.failure == Failure::source);
  CHECK(wide.message.find("source.columns = 4: must be the number of labels, 3") != std::string::npos);
  asg.transitions[5] = not_a_number;  // 2 to 1
  CHECK_THROWS_WITH(AsgTransitions(asg.moves()),
                    "sluice: transitions: from 2 to 1 = nan: must be a number, or -infinity");
  asg.transitions[4] = -std::numeric_limits<float>::infinity();
  CHECK_THROWS_WITH(AsgFrames<>(asg.moves()), "sluice: transitions: of label 1 to itself = -inf: must be a number");
  CHECK_THROWS_WITH(AsgTransitions(asg.moves()), "sluice: transitions: of label 1 to itself = -inf: must be a number");
}

// SPDX-License-Identifier: Apache-2.0
// CTC as a label-synchronous model, the probability of a text and its alignment, against all paths of small
// matrices. Mutants that these tests notice: a label again without a blank between, in the prefix scores (one sum or
// the other) or in the alignment; a sum that underflows left at nothing; a text's probability without blanks at its
// end, or without a label there; a blank counted twice; a roll-back that keeps the prefix.
#include <sluice/core/token_bytes.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/frames/ctc_alignment.hpp>
#include <sluice/frames/ctc_prefix_model.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/model/fused.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/constraints.hpp>
#include <sluice/search/exact_search.hpp>
#include <sluice/search/forced_score.hpp>
#include <sluice/search/sample.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/table_model.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr auto infinite = std::numeric_limits<double>::infinity();
using Text = std::vector<Token>;

/// Frames with random logits.
struct Drawn {
  std::int32_t frames = 0, labels = 0;
  Token blank = 0;
  std::vector<float> numbers;
  Kind kind = Kind::logits;

  Drawn(std::uint64_t seed, std::int32_t its_frames, std::int32_t its_labels, Token its_blank, float scale = 3)
      : frames(its_frames), labels(its_labels), blank(its_blank) {
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(frames * labels); ++i)
      numbers.push_back(scale * static_cast<float>(hash_mix(seed * 7919 + i) >> 40) / 16777216.0f);
  }
  Scores<float> view() const { return scores(numbers.data(), frames, labels, kind); }
  double log_prob(std::int32_t frame, Token label) const {
    auto const* const line = numbers.data() + frame * labels;
    if (kind == Kind::log_probs) return static_cast<double>(line[label]);
    double sum = 0;
    for (Token v = 0; v < labels; ++v) sum += std::exp(static_cast<double>(line[v]));
    return static_cast<double>(line[label]) - std::log(sum);
  }
};

struct Summed {
  double probability = 0, best = -infinite;
  std::vector<FrameRange> frames;  // of the likeliest path
};

/// Every path, collapsed.
std::map<Text, Summed> all_texts(Drawn const& drawn) {
  std::map<Text, Summed> found;
  std::vector<Token> path(static_cast<std::size_t>(drawn.frames));
  auto const visit = [&](auto const& self, std::int32_t frame, double log_prob) -> void {
    if (frame < drawn.frames) {
      for (Token label = 0; label < drawn.labels; ++label) {
        path[static_cast<std::size_t>(frame)] = label;
        self(self, frame + 1, log_prob + drawn.log_prob(frame, label));
      }
      return;
    }
    Text text;
    std::vector<FrameRange> frames;
    for (std::int32_t t = 0; t < drawn.frames; ++t) {
      auto const label = path[static_cast<std::size_t>(t)];
      if (label == drawn.blank) continue;
      if (t > 0 && path[static_cast<std::size_t>(t) - 1] == label) frames.back().end = t + 1;
      else text.push_back(label), frames.push_back({t, t + 1});
    }
    auto& one = found[text];
    one.probability += std::exp(log_prob);
    if (log_prob > one.best) one.best = log_prob, one.frames = frames;
  };
  visit(visit, 0, 0);
  return found;
}

/// The texts, the most probable first.
std::vector<std::pair<double, Text>> ranked(std::map<Text, Summed> const& texts) {
  std::vector<std::pair<double, Text>> all;
  for (auto const& [text, one] : texts) all.emplace_back(std::log(one.probability), text);
  std::sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.first > b.first; });
  return all;
}

template <class S, class P = Batched>
std::vector<Result> run(std::vector<Drawn> const& sources, S const& search, P const& schedule = {}) {
  CtcPrefixModel<> model(sources.front().labels, sources.front().blank);
  std::vector<Request<Scores<float>, S>> requests;
  for (auto const& one : sources) requests.push_back({.source = one.view()});
  return decode(model, std::move(requests), search, schedule);
}

Text without_end(Text tokens) {
  tokens.pop_back();
  return tokens;
}

}  // namespace

TEST_CASE("the probability of a text under CTC, and its alignment, are those of all its paths") {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 40; ++trial) {
    auto const labels = 2 + static_cast<std::int32_t>(random() % 3);
    Drawn drawn(random(), static_cast<std::int32_t>(random() % 6), labels,
                static_cast<Token>(random() % static_cast<std::uint64_t>(labels)));
    if (trial % 3 == 0) drawn.kind = Kind::log_probs;
    auto const texts = all_texts(drawn);
    for (auto const& [text, one] : texts) {
      INFO("trial " << trial << ": " << test::text(text));
      CHECK_THAT(ctc_log_prob(drawn.view(), text, drawn.blank), WithinAbs(std::log(one.probability), 1e-9));
      auto const aligned = ctc_align(drawn.view(), text, drawn.blank);
      CHECK_THAT(aligned.log_prob, WithinAbs(one.best, 1e-9));
      CHECK(aligned.frames == one.frames);
      REQUIRE(aligned.log_probs.size() == text.size());
      for (std::size_t i = 0; i < text.size(); ++i) {
        double sum = 0;
        for (auto t = one.frames[i].begin; t < one.frames[i].end; ++t) sum += drawn.log_prob(t, text[i]);
        CHECK_THAT(aligned.log_probs[i], WithinAbs(sum / (one.frames[i].end - one.frames[i].begin), 1e-9));
      }
    }
    Text const long_one(static_cast<std::size_t>(drawn.frames) + 1, drawn.blank == 0 ? 1 : 0);
    CHECK(ctc_log_prob(drawn.view(), long_one, drawn.blank) == -infinite);
    CHECK(ctc_align(drawn.view(), long_one, drawn.blank).log_prob == -infinite);
    CHECK(ctc_align(drawn.view(), long_one, drawn.blank).frames.empty());
  }
}

TEST_CASE("frames and labels that CTC refuses") {
  auto const message = [](auto const& call) -> std::string {
    try {
      call();
    } catch (std::invalid_argument const& error) {
      return error.what();
    }
    return "not refused";
  };
  Drawn drawn(1, 3, 3, 0);
  auto const forced = [&](Text const& text, Token blank = 0) {
    return message([&] { (void)ctc_log_prob(drawn.view(), text, blank); });
  };
  CHECK(forced({1, 3}).find("label = 3") != std::string::npos);
  CHECK(forced({0}).find("is the blank") != std::string::npos);
  CHECK(forced({1}, 3).find("blank = 3") != std::string::npos);
  CHECK(message([&] { (void)ctc_align(drawn.view(), Text{-1}); }).find("label = -1") != std::string::npos);
  CHECK(message([] { CtcPrefixModel<> model(3, 3); }).find("blank = 3") != std::string::npos);
  CHECK(message([] { CtcPrefixModel<> model({.size = 3, .eos = {}}, 0); }).find("vocabulary.eos") != std::string::npos);
  CHECK(message([] { CtcPrefixModel<> model({.size = 3, .eos = {2}}, 2); }).find("blank = 2") != std::string::npos);
  drawn.numbers[4] = std::nanf("");
  CHECK(forced({1}).find("frame 1") != std::string::npos);
  auto const failed = run({drawn, Drawn(2, 3, 3, 0)}, BeamSearch{});
  CHECK(failed[0].failure == Failure::source);
  CHECK(failed[0].message.find("frame 1") != std::string::npos);
  CHECK(failed[1].ok());
  for (std::size_t i = 3; i < 6; ++i) drawn.numbers[i] = -std::numeric_limits<float>::infinity();
  CHECK(forced({1}).find("every label is impossible") != std::string::npos);
}

TEST_CASE("CTC prefix scores are a distribution over texts, which searches search, prove and draw from") {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 25; ++trial) {
    auto const labels = 2 + static_cast<std::int32_t>(random() % 3);
    Drawn const drawn(random(), static_cast<std::int32_t>(random() % 6), labels,
                      static_cast<Token>(random() % static_cast<std::uint64_t>(labels)), trial % 2 == 0 ? 2 : 6);
    auto const texts = all_texts(drawn);
    auto const expected = ranked(texts);
    INFO("trial " << trial << ", " << drawn.frames << " frames, " << labels << " labels");
    auto const most = LengthLimits{.max = drawn.frames + 1};

    for (auto const& [text, one] : texts) {
      CtcPrefixModel<> model(labels, drawn.blank);
      auto target = text;
      target.push_back(labels);
      auto const forced =
          decode(model, std::vector<Request<Scores<float>, ForcedScore>>{{.source = drawn.view(), .prefix = target}},
                 ForcedScore{.penalty = {.kind = LengthPenalty::Kind::none}});
      REQUIRE(forced[0].ok());
      CHECK_THAT(forced[0].hypotheses.at(0).log_prob, WithinAbs(std::log(one.probability), 1e-5));
    }

    auto const count = std::min<std::size_t>(expected.size(), 20);
    auto const check = [&](Result const& result, bool finds_all) {
      REQUIRE(result.ok());
      REQUIRE(result.hypotheses.size() == (finds_all ? count : 1));
      for (std::size_t i = 0; i < result.hypotheses.size(); ++i) {
        CHECK(without_end(result.hypotheses[i].tokens) == expected[i].second);
        CHECK_THAT(result.hypotheses[i].log_prob, WithinAbs(expected[i].first, 1e-5));
      }
    };
    auto const exact = run({drawn}, ExactSearch{.n_best = static_cast<std::int32_t>(count), .length = most})[0];
    check(exact, true);
    CHECK_THAT(exact.bound, WithinAbs(expected[0].first, 1e-5));
    check(run({drawn}, BeamSearch{.width = 400,
                                  .n_best = static_cast<std::int32_t>(count),
                                  .length = most,
                                  .penalty = {.alpha = 0},
                                  .early_stopping = {.rule = EarlyStopping::Rule::exact}})[0],
          true);
  }
}

TEST_CASE("samples of CTC prefix scores are texts in proportion to their probabilities") {
  Drawn const drawn(5, 4, 3, 1, 2);
  auto const texts = all_texts(drawn);
  constexpr std::int32_t count = 20000;
  auto const result = run({drawn}, Sample{.samples = count})[0];
  REQUIRE(result.hypotheses.size() == count);
  std::map<Text, double> drawn_texts;
  for (auto const& h : result.hypotheses) drawn_texts[without_end(h.tokens)] += 1.0 / count;
  double total = 0;
  for (auto const& [text, one] : texts) {
    INFO(test::text(text));
    auto const deviation = std::sqrt(one.probability * (1 - one.probability) / count);
    CHECK_THAT(drawn_texts[text], WithinAbs(one.probability, 5 * deviation + 1.0 / count));
    total += one.probability;
  }
  CHECK_THAT(total, WithinAbs(1, 1e-9));
  for (auto const& [text, share] : drawn_texts) CHECK(texts.contains(text));
}

TEST_CASE("CTC under a grammar, under constraints, and beside another model") {
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 12; ++trial) {
    Drawn const drawn(random(), 3 + static_cast<std::int32_t>(random() % 3), 3, 0);
    auto const expected = ranked(all_texts(drawn));
    auto const most = LengthLimits{.max = drawn.frames + 1};
    auto const first = [&](auto const& allowed) {
      return *std::find_if(expected.begin(), expected.end(), [&](auto const& one) { return allowed(one.second); });
    };
    auto const check = [&](Result const& result, std::pair<double, Text> const& best) {
      REQUIRE(result.ok());
      CHECK(without_end(result.hypotheses.at(0).tokens) == best.second);
      CHECK_THAT(result.hypotheses[0].log_prob, WithinAbs(best.first, 1e-5));
    };
    INFO("trial " << trial);
    // Labels 1 and 2 are a and b: a text of one a, then any number of b.
    CtcPrefixModel<> model(3);
    TokenTrie const tokens(TokenBytes(std::vector<std::string>{"", "a", "b", ""}), model.vocabulary());
    Processed<ExactSearch> const grammatical{{.length = most}, Structure(Grammar::from_regex("ab*"), tokens)};
    check(run({drawn}, grammatical)[0], first([](Text const& text) {
            return !text.empty() && text[0] == 1 && std::count(text.begin(), text.end(), 1) == 1;
          }));
    ConstrainedBeamSearch<Phrases> const constrained{.beam = {.width = 60, .length = most, .penalty = {.alpha = 0}},
                                                     .constraints = Phrases{{2, 1}}};
    check(run({drawn}, constrained)[0], first([](Text const& text) {
            for (std::size_t i = 1; i < text.size(); ++i)
              if (text[i - 1] == 2 && text[i] == 1) return true;
            return false;
          }));
  }
}

namespace {

/// What a speaker said: frames, and the seed of an attention model.
struct Spoken {
  std::uint64_t seed = 0;
  Scores<float> frames{};
};

/// A table as an attention model of what was said.
class Attending : public TableModel<everything> {
 public:
  using Source = Spoken;
  using TableModel::TableModel;
  static std::int32_t source_length(Spoken const&) { return -1; }
  void start(std::span<Spoken const* const> sources, std::span<Slot const> slots) {
    std::vector<std::uint64_t const*> seeds;
    for (auto const* one : sources) seeds.push_back(&one->seed);
    TableModel::start(seeds, slots);
  }
};

}  // namespace

TEST_CASE("joint CTC and attention: the exact search finds the best weighted sum of both") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Drawn drawn(seed, 4, 6, pad);  // pad is the blank; bos and eos are no labels
    for (std::int32_t t = 0; t < drawn.frames; ++t)
      for (auto const token : {bos, eos})
        drawn.numbers[static_cast<std::size_t>(t * 6 + token)] = -std::numeric_limits<float>::infinity();
    Table const table{.size = 6, .scale = 3};
    Attending attention(table);
    CtcPrefixModel<> ctc(attention.vocabulary(), pad);
    Fused joint(attention, ctc, FusedOptions{.weight = 0.5}, &Spoken::frames);
    auto const result = decode(joint, std::vector<Request<Spoken, ExactSearch>>{{.source = {seed, drawn.view()}}},
                               ExactSearch{.length = {.max = 5}})
                            .at(0);
    REQUIRE(result.ok());
    double best = -infinite;
    Text expected;
    for (auto const& [text, one] : all_texts(drawn)) {
      if (one.probability <= 0) continue;
      auto tokens = text;
      tokens.push_back(eos);
      auto const score = log_prob(table, seed, {}, tokens) + 0.5 * std::log(one.probability);
      if (score > best) best = score, expected = tokens;
    }
    CHECK(result.hypotheses.at(0).tokens == expected);
    CHECK_THAT(result.hypotheses[0].log_prob, WithinAbs(best, 1e-4));
  }
}

TEST_CASE("CTC prefix scores do not depend on the batch; texts far too improbable for a sum of doubles are found") {
  std::vector<Drawn> sources;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    sources.emplace_back(seed, static_cast<std::int32_t>(seed % 7), 4, 3, 5.0f);
  BeamSearch const search{.width = 4, .n_best = 2};
  std::vector<Result> alone;
  for (auto const& one : sources) alone.push_back(run({one}, search).at(0));
  auto const check = [&](std::vector<Result> const& results) {
    for (std::size_t i = 0; i < results.size(); ++i) CHECK(identical(results[i], alone[i]));
  };
  check(run(sources, search, Batched{.size = 7}));
  check(run(sources, search, Streaming{.size = 5}));

  // Two frames: the first can only be blank or label 1 at e^-2000, and the second only label 1.
  Drawn extreme(1, 2, 2, 0);
  extreme.kind = Kind::log_probs;
  extreme.numbers = {0, -2000, -3000, 0};
  CHECK_THAT(ctc_log_prob(extreme.view(), Text{1}, 0), WithinAbs(0, 1e-9));
  CHECK_THAT(ctc_log_prob(extreme.view(), Text{}, 0), WithinAbs(-3000, 1e-9));
  extreme.numbers = {-1000, 0, 0, -1000};  // label, then blank: "1"; "11" needs a blank between
  auto const exact = run({extreme}, ExactSearch{.n_best = 2, .length = {.max = 3}}).at(0);
  REQUIRE(exact.hypotheses.size() == 2);
  CHECK(without_end(exact.hypotheses[0].tokens) == Text{1});
  CHECK(without_end(exact.hypotheses[1].tokens).empty());
  CHECK_THAT(exact.hypotheses[1].log_prob, WithinAbs(-1000, 1e-3));
  extreme.numbers = {0, -1000, 0, -1000};  // in either frame
  auto const faint = run({extreme}, ExactSearch{.n_best = 2, .length = {.max = 3}}).at(0);
  REQUIRE(faint.hypotheses.size() == 2);
  CHECK(without_end(faint.hypotheses[1].tokens) == Text{1});
  CHECK_THAT(faint.hypotheses[1].log_prob, WithinAbs(-1000 + std::log(2), 1e-3));
}

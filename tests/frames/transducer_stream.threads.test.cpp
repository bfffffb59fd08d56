// SPDX-License-Identifier: Apache-2.0
// Transducers whose frames come while they are decoded, against the whole at once; any model as a language model beside them. Mutants
// that these tests notice, beside those of transducer_beam.test.cpp: a frame read one too early (each search), or before it has come; an
// endpoint that looks at the worst hypothesis, a frame late, or at the frames where tokens end alone; one that does not end hypotheses
// that are further; frames of labels beyond it; the end of a language model forgotten (each search); a text dropped that an output to
// come needs, or never dropped, or asked for again; a text that begins at any fork; a greedy text that stays behind; growth() that is
// not forwarded.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/decode/server.hpp>
#include <sluice/frames/language_model.hpp>
#include <sluice/frames/transducer.hpp>
#include <sluice/frames/transducer_beam.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/hashed_text.hpp>
#include <support/hashed_transducer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <future>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// Frames that come: `over` says whether that is all.
struct Spoken : Utterance {
  bool over = false;
};

/// A network of them. Throws if a frame is asked for that may have been forgotten.
class SpokenNetwork {
 public:
  using Source = Spoken;
  explicit SpokenNetwork(HashedLines const& lines, bool goes_back = false) : network_(lines), goes_back_(goes_back) {}

  TransducerTokens tokens() const { return network_.tokens(); }
  std::int32_t frames(Spoken const& spoken) const { return spoken.frames; }
  SourceGrowth growth(Spoken const& spoken) const { return {spoken.frames, spoken.over}; }
  void append(Spoken& spoken, std::int32_t frames, bool last) {
    if (spoken.over) throw std::invalid_argument("nothing may come after the last frame");
    spoken.frames += frames, spoken.over = last;
  }
  void start(std::span<Spoken const* const> sources, std::span<std::int32_t const> utterances) {
    std::vector<Utterance const*> plain(sources.begin(), sources.end());
    network_.start(plain, utterances);
    for (auto const utterance : utterances) {
      auto const at = static_cast<std::size_t>(utterance);
      if (at >= asked_.size()) asked_.resize(at + 1);
      asked_[at] = 0;
    }
  }
  void release(std::span<std::int32_t const> utterances) { network_.release(utterances); }
  void predict(std::span<PredictorRow const> rows) { network_.predict(rows); }
  Scores<float> join(std::span<JoinerRow const> rows) {
    for (auto const& row : rows) {
      auto& asked = asked_[static_cast<std::size_t>(row.utterance)];
      if (row.frame < asked && !goes_back_) throw std::logic_error("a frame that may have been forgotten");
      asked = row.frame;
    }
    return network_.join(rows);
  }
  std::int32_t live() const { return network_.live; }

 private:
  HashedNetwork network_;
  std::vector<std::int32_t> asked_;
  bool goes_back_;
};
using SpokenModel = Transducer<SpokenNetwork>;

template <class S>
constexpr bool by_alignment(S const& search) {
  if constexpr (requires { search.order; }) return search.order == TransducerOrder::alignment;
  else return false;
}

void check_same(Result const& found, Result const& expected) {
  INFO(found.message);
  REQUIRE(identical(found, expected));
  REQUIRE(found.frames == expected.frames);
  for (std::size_t i = 0; i < found.hypotheses.size(); ++i)
    REQUIRE(found.hypotheses[i].frames == expected.hypotheses[i].frames);
}

/// Decodes by a Decoder, chunk by chunk; `size` 0: at once.
template <class M, class S, class P>
std::vector<Result> in_chunks(M& model, std::vector<Utterance> const& all, S const& search, P const& schedule,
                              std::int32_t size) {
  Decoder decoder(model, search, schedule);
  std::vector<Result> results(all.size());
  auto open = all.size();
  std::vector<std::int32_t> come(all.size(), 0);
  std::vector<std::uint8_t> over(all.size(), 0);
  for (auto const& one : all) {
    Spoken source{{one.seed, size > 0 ? 0 : one.frames}, size == 0};
    decoder.submit({.source = source});
  }
  for (std::int32_t round = 0; open > 0; ++round) {
    for (std::size_t i = 0; size > 0 && i < all.size(); ++i) {
      if (over[i] != 0) continue;
      auto const more = std::min(size, all[i].frames - come[i]);
      come[i] += more;
      // Sometimes that nothing more will come is known late.
      auto const last =
          come[i] == all[i].frames && (more == 0 || (all[i].seed + static_cast<std::uint64_t>(size)) % 2 == 0);
      over[i] = last ? 1 : 0;
      decoder.append(i, more, last);
    }
    Result result;
    for (auto more = true; more;) {
      more = decoder.step();
      for (; decoder.poll(result); --open) results[result.id] = std::move(result);
    }
    REQUIRE(decoder.running() + decoder.waiting() == open);
    REQUIRE(round < 10000);
  }
  return results;
}

template <class S>
void check_stream(HashedLines const& lines, std::vector<Utterance> const& all, S const& search) {
  SpokenModel model{SpokenNetwork(lines, by_alignment(search))};
  auto const expected = in_chunks(model, all, search, Batched{.size = 1}, 0);
  for (auto const size : {1, 4, 37})
    for (auto const batch : {std::size_t{1}, std::size_t{7}, std::size_t{64}}) {
      INFO("chunks of " << size << ", batches of " << batch);
      auto const found = batch == 7
                             ? in_chunks(model, all, search, Batched{.size = batch}, size)
                             : in_chunks(model, all, search, Streaming{.size = batch, .refill_below = 1.0}, size);
      for (std::size_t i = 0; i < all.size(); ++i) check_same(found[i], expected[i]);
    }
  CHECK(model.network().live() == 0);
}

std::vector<Utterance> utterances(std::size_t count, std::int32_t longest) {
  std::vector<Utterance> all;
  for (std::uint64_t seed = 0; seed < count; ++seed)
    all.push_back({seed, static_cast<std::int32_t>(hash_mix(seed) % static_cast<std::uint64_t>(longest))});
  return all;
}

static_assert(GrowingModel<SpokenModel> && !GrowingModel<Transducer<HashedNetwork>>);
static_assert(WaitingSearch<TransducerBeam<>> && WaitingSearch<TransducerGreedy<>>);
static_assert(GrowingModel<WithLanguageModel<SpokenModel, HashedTextModel>>);
static_assert(!GrowingModel<WithLanguageModel<Transducer<HashedNetwork>, HashedTextModel>>);

}  // namespace

TEST_CASE("frames of transducers that come in pieces have the results of the whole, bit for bit") {
  auto const all = utterances(12, 50);
  std::vector<TransducerTokens> const kinds{{.labels = 5},
                                            {.labels = 4, .blank = 3, .durations = {0, 1, 2, 4}},
                                            {.labels = 5, .big_blanks = {{.token = 4, .frames = 3}}},
                                            {.labels = 4, .label_frames = 1}};
  for (auto const& tokens : kinds) {
    HashedLines const lines{.tokens = tokens, .scale = 5, .blank_logit = 2};
    for (auto const& endpoint : {Endpoint{}, Endpoint{.silence = 3, .nothing = 4, .longest = 31}}) {
      INFO(tokens.size() << " tokens, endpoint " << endpoint.on());
      check_stream(lines, all, TransducerBeam<>{.tokens = tokens, .width = 4, .n_best = 3, .endpoint = endpoint});
      check_stream(lines, all, TransducerGreedy<>{.tokens = tokens, .endpoint = endpoint});
    }
    check_stream(lines, all,
                 TransducerBeam<>{.tokens = tokens, .width = 3, .n_best = 2, .order = TransducerOrder::alignment});
    check_stream(lines, all, TransducerBeam<>::adaptive(tokens, 4));
  }
}

TEST_CASE("a network that never says blank fails alike, whole or in pieces") {
  HashedLines const lines{.tokens = {.labels = 3}, .no_blank = true};
  auto const all = utterances(5, 20);
  check_stream(lines, all, TransducerBeam<>{.tokens = lines.tokens, .most_symbols = 3});
  check_stream(lines, all, TransducerGreedy<>{.tokens = lines.tokens, .most_symbols = 3});
  check_stream(lines, all, TransducerBeam<>{.tokens = lines.tokens, .order = TransducerOrder::alignment});
}

TEST_CASE("an endpoint of a transducer is where a look at all its beginnings finds it") {
  Endpoint const endpoint{.silence = 3, .nothing = 4, .longest = 8};
  std::size_t silences = 0, nothings = 0, longest = 0;
  auto const check = [&](TransducerTokens const& tokens, auto search) {
    HashedLines const lines{.tokens = tokens, .scale = 6, .blank_logit = 4};
    search.tokens = tokens;
    for (std::uint64_t seed = 0; seed < 80; ++seed) {
      SpokenModel model{SpokenNetwork(lines)};
      auto const run = [&](std::int32_t frames, Endpoint const& its) {
        search.endpoint = its;
        return in_chunks(model, {{seed, frames}}, search, Batched{.size = 1}, 0).at(0);
      };
      auto const found = run(40, endpoint);
      std::int32_t expected = 40;
      for (std::int32_t count = 1; count < 40; ++count) {
        auto const result = run(count, {});
        auto const& best = result.hypotheses.at(0);
        auto const end = best.frames.empty() ? 0 : best.frames.back().end;
        auto const silence = end > 0 && count - end >= 3, nothing = end == 0 && count >= 4, over = count >= 8;
        if (!silence && !nothing && !over) continue;
        silences += silence, nothings += nothing, longest += over;
        expected = count;
        INFO("seed " << seed);
        CHECK(identical(found, result));
        CHECK(found.hypotheses.at(0).frames == best.frames);
        break;
      }
      CHECK(found.frames == expected);
    }
  };
  check({.labels = 3}, TransducerBeam<>{.width = 60});
  check({.labels = 3}, TransducerGreedy<>{});
  check({.labels = 3, .durations = {0, 1, 3}}, TransducerGreedy<>{});
  CHECK(silences > 10);
  CHECK(nothings > 3);
  CHECK(longest > 3);
}

TEST_CASE("an endpoint between the ends of tokens that move on far is the end of the sound") {
  for (auto const& tokens : {TransducerTokens{.labels = 3, .durations = {0, 1, 4}},
                             TransducerTokens{.labels = 4, .big_blanks = {{.token = 2, .frames = 3}}},
                             TransducerTokens{.labels = 3, .label_frames = 1}}) {
    HashedLines const lines{.tokens = tokens, .scale = 3, .blank_logit = 1};
    auto const check = [&](auto search) {
      for (std::uint64_t seed = 0; seed < 12; ++seed) {
        SpokenModel model{SpokenNetwork(lines)};
        auto const run = [&](std::int32_t frames) {
          return in_chunks(model, {{seed, frames}}, search, Batched{.size = 1}, 0).at(0);
        };
        search.endpoint = {.longest = 3};
        auto const found = run(20);
        search.endpoint = {};
        auto const expected = run(3);
        CHECK(found.frames == 3);
        REQUIRE(found.hypotheses.size() == expected.hypotheses.size());
        for (auto const& h : expected.hypotheses) {
          auto const same = std::find_if(found.hypotheses.begin(), found.hypotheses.end(),
                                         [&](auto const& other) { return other.tokens == h.tokens; });
          REQUIRE(same != found.hypotheses.end());
          CHECK(same->frames == h.frames);
          CHECK(same->finished);
          CHECK_THAT(same->log_prob, WithinAbs(h.log_prob, 1e-9));
        }
      }
    };
    check(TransducerBeam<>{.tokens = tokens, .width = 2000, .n_best = 2000, .most_symbols = 2, .most_labels = 4});
    check(TransducerGreedy<>{.tokens = tokens});
  }
}

TEST_CASE("a server takes frames of transducers from any thread") {
  HashedLines const lines{.tokens = {.labels = 5, .durations = {0, 1, 3}}, .scale = 5, .blank_logit = 2};
  auto const all = utterances(30, 90);
  auto const check = [&](auto const& search) {
    SpokenModel model{SpokenNetwork(lines)};
    auto const expected = in_chunks(model, all, search, Batched{.size = 1}, 0);
    Server server(model, search, Streaming{.size = 7, .refill_below = 1.0});
    std::vector<std::promise<Result>> promises(all.size());
    std::vector<std::future<Result>> futures;
    std::vector<std::uint64_t> ids;
    for (std::size_t i = 0; i < all.size(); ++i) {
      futures.push_back(promises[i].get_future());
      ids.push_back(server
                        .submit({.source = {{all[i].seed, 0}, false}},
                                {.done = [&, i](Result result) { promises[i].set_value(std::move(result)); }})
                        .value());
    }
    std::vector<std::future<void>> speakers;
    for (std::size_t thread = 0; thread < 3; ++thread)
      speakers.push_back(std::async(std::launch::async, [&, thread] {
        for (auto i = thread; i < all.size(); i += 3)
          for (std::int32_t begin = 0; begin <= all[i].frames; begin += 11) {
            auto const end = std::min(all[i].frames, begin + 11);
            server.append(ids[i], end - begin, end == all[i].frames && end < begin + 11);
          }
      }));
    for (auto& one : speakers) one.get();
    for (std::size_t i = 0; i < all.size(); ++i) check_same(futures[i].get(), expected[i]);
    // What is no continuation ends its request, and no other.
    std::promise<Result> told;
    auto const bad =
        server.submit({.source = {{1, 0}, false}}, {.done = [&](Result result) { told.set_value(std::move(result)); }})
            .value();
    auto const good = server.submit({.source = {{all[3].seed, all[3].frames}, true}}).get();
    check_same(good, expected[3]);
    server.append(bad, 1, true);
    CHECK(told.get_future().get().ok());
  };
  check(TransducerBeam<>{.tokens = lines.tokens, .width = 4, .endpoint = {.silence = 9}});
  check(TransducerGreedy<>{.tokens = lines.tokens});
}

namespace {

/// The sum over all alignments, and what a text model adds.
template <class S>
void check_enumerated(HashedLines const& lines, HashedText const& text, Utterance const& utterance,
                      AlignmentLimits const& limits, S search) {
  auto const& weights = search.language_model;
  auto const expected = all_labellings(lines, utterance, limits, [&](std::vector<Token> const& labels) {
    return weights.weight * text.log_prob(labels) + weights.bonus * static_cast<double>(labels.size());
  });
  SpokenModel model{SpokenNetwork(lines, by_alignment(search))};
  HashedTextModel language(text);
  std::vector<Token> tokens;
  for (Token label = 0; label < lines.tokens.labels; ++label) tokens.push_back(label + 2);
  WithLanguageModel both(model, language, tokens);
  search.width = search.n_best = 800, search.candidates = 100;
  for (auto const size : {0, 2}) {
    auto const result = in_chunks(both, {utterance}, search, Batched{.size = 1}, size).at(0);
    INFO(result.message);
    REQUIRE(result.hypotheses.size() == expected.size());
    for (auto const& one : expected) {
      auto const h = std::find_if(result.hypotheses.begin(), result.hypotheses.end(),
                                  [&](auto const& other) { return other.tokens == one.labels; });
      REQUIRE(h != result.hypotheses.end());
      CHECK_THAT(h->log_prob, WithinAbs(one.log_prob, 3e-5));
      CHECK(h->finished);
    }
  }
}

}  // namespace

TEST_CASE("any model beside a transducer: sums over all alignments, with what it says of each text and of its end") {
  std::mt19937_64 random(41);
  HashedText const text{.labels = 3};
  for (int trial = 0; trial < 24; ++trial) {
    HashedLines lines{.tokens = {.labels = 3, .blank = static_cast<Token>(trial % 3)}, .scale = 3};
    if (trial % 4 == 1) lines.tokens.durations = {0, 1, 2};
    if (trial % 4 == 2) lines.tokens.label_frames = 1;
    if (trial % 4 == 3) lines.tokens.big_blanks = {{.token = static_cast<Token>((trial + 1) % 3), .frames = 2}};
    Utterance const utterance{random(), static_cast<std::int32_t>(random() % 4)};
    INFO("trial " << trial << ", " << utterance.frames << " frames");
    TransducerBeam<NoRule, FusionWeights> search{
        .tokens = lines.tokens, .most_symbols = 2, .most_labels = 3, .language_model = {.weight = 0.7, .bonus = 0.25}};
    check_enumerated(lines, text, utterance, {.most_symbols = 2, .most_labels = 3}, search);
    search.order = TransducerOrder::alignment;
    check_enumerated(lines, text, utterance, {.most_labels = 3, .most_labels_a_frame = 2}, search);
  }
}

TEST_CASE("a text goes on as far as a slot of the language model holds, and texts wait for room in it") {
  std::mt19937_64 random(43);
  HashedText const text{.labels = 3};
  std::vector<Token> const tokens{-1, 3, 4};
  for (int trial = 0; trial < 8; ++trial) {
    HashedLines lines{.tokens = {.labels = 3}, .scale = 3};
    if (trial % 2 == 1) lines.tokens.durations = {0, 1, 2};
    Utterance const utterance{random(), 1 + static_cast<std::int32_t>(random() % 3)};
    TransducerBeam<NoRule, FusionWeights> search{
        .tokens = lines.tokens, .most_symbols = 2, .language_model = {.weight = 0.7, .bonus = 0.25}};
    search.width = search.n_best = 800, search.candidates = 100;
    auto const with = [&](Limits const& most, std::int32_t labels) {
      SpokenModel model{SpokenNetwork(lines)};
      HashedTextModel language(text, most);
      WithLanguageModel both(model, language, tokens);
      search.most_labels = labels;
      return in_chunks(both, {utterance}, search, Batched{.size = 1}, 0).at(0);
    };
    check_same(with({.length = 4}, 0), with({}, 3));  // bos, and three labels
    check_same(with({.length = 1}, 0), with({.length = 1}, 1));
  }
  HashedLines const lines{.tokens = {.labels = 3}, .scale = 5, .blank_logit = 1};
  TransducerBeam<NoRule, FusionWeights> const search{
      .tokens = lines.tokens, .width = 4, .language_model = {.weight = 0.5}};
  auto const all = utterances(12, 20);
  auto const with = [&](Limits const& most, std::uint64_t& restarted) {
    SpokenModel model{SpokenNetwork(lines)};
    HashedTextModel language(text, most);
    WithLanguageModel both(model, language, tokens);
    Decoder decoder(both, search, Streaming{.size = 6, .refill_below = 1.0});
    for (auto const& one : all) decoder.submit({.source = {one, true}});
    std::vector<Result> results(all.size());
    Result result;
    while (decoder.step()) {
    }
    while (decoder.poll(result)) results[result.id] = result;
    restarted = decoder.statistics().restarted;
    return results;
  };
  std::uint64_t never = 0, often = 0, alone = 0;
  auto const expected = with({}, never), waited = with({.tokens = 24}, often), failed = with({.tokens = 3}, alone);
  CHECK(never == 0);
  CHECK(often > 0);
  for (std::size_t i = 0; i < all.size(); ++i) {
    check_same(waited[i], expected[i]);
    if (failed[i].ok()) check_same(failed[i], expected[i]);
    else CHECK(failed[i].failure == Failure::no_room);
  }
  CHECK(std::any_of(failed.begin(), failed.end(), [](Result const& one) { return !one.ok(); }));
}

TEST_CASE("greedy decoding with a language model takes the best sum at every step, and adds what is said of the end") {
  std::mt19937_64 random(42);
  HashedText const text{.labels = 4};
  FusionWeights const weights{.weight = 0.8, .bonus = 0.5};
  for (int trial = 0; trial < 40; ++trial) {
    HashedLines lines{.tokens = {.labels = 4, .blank = static_cast<Token>(trial % 4)}, .scale = 4, .blank_logit = 1};
    if (trial % 3 == 1) lines.tokens.durations = {0, 1, 2};
    Utterance const utterance{random(), static_cast<std::int32_t>(random() % 12)};
    std::vector<Token> labels;
    double sum = 0;
    for (std::int32_t frame = 0, symbols = 0; frame < utterance.frames;) {
      auto key = HashedText::begin();
      for (auto const label : labels) key = HashedText::next(key, label + 2);
      auto const line = lines.log_probs(utterance, frame, labels);
      auto const score = [&](Token token) {
        auto const label = lines.tokens.label(token);
        auto const log_prob = line[static_cast<std::size_t>(token)];
        if (lines.tokens.is_blank(label)) return log_prob;
        return log_prob + weights.weight * text.log_prob(key, label + 2) + weights.bonus;
      };
      Token best = -1;
      for (Token token = 0; token < lines.tokens.size(); ++token)
        if ((symbols < 2 || lines.tokens.is_blank(lines.tokens.label(token))) &&
            (best < 0 || score(token) > score(best)))
          best = token;
      sum += score(best);
      if (!lines.tokens.is_blank(lines.tokens.label(best))) labels.push_back(lines.tokens.label(best));
      symbols = lines.tokens.frames(best) > 0 ? 0 : symbols + 1, frame += lines.tokens.frames(best);
    }
    auto key = HashedText::begin();
    for (auto const label : labels) key = HashedText::next(key, label + 2);
    sum += weights.weight * text.log_prob(key, 1);
    SpokenModel model{SpokenNetwork(lines)};
    HashedTextModel language(text);
    WithLanguageModel both(model, language, {2, 3, 4, 5});
    auto const check = [&](std::vector<Result> const& results) {
      auto const& h = results.at(0).hypotheses.at(0);
      INFO("trial " << trial);
      CHECK(h.tokens == labels);
      CHECK_THAT(h.log_prob, WithinAbs(sum, 1e-4));
    };
    Batched const schedule{.size = 1};
    check(in_chunks(both, {utterance},
                    TransducerGreedy<NoRule, FusionWeights>{
                        .tokens = lines.tokens, .most_symbols = 2, .candidates = 20, .language_model = {weights}},
                    schedule, 1));
    check(in_chunks(model, {utterance},
                    TransducerGreedy<NoRule, HashedTextScore>{.tokens = lines.tokens,
                                                              .most_symbols = 2,
                                                              .candidates = 20,
                                                              .language_model = HashedTextScore(text, weights)},
                    schedule, 0));
  }
}

TEST_CASE("a model beside a transducer is asked once for each output, for all utterances in one call") {
  HashedText const text{.labels = 5};
  FusionWeights const weights{.weight = 0.6, .bonus = 0.5};
  auto const all = utterances(24, 50);
  std::vector<Token> const tokens{2, 3, 4, 5, -1};
  auto const check = [&](TransducerTokens const& its, auto inside, auto beside, bool same_bits) {
    HashedLines const lines{.tokens = its, .scale = 5, .blank_logit = 2};
    SpokenModel model{SpokenNetwork(lines)};
    auto const expected = in_chunks(model, all, inside, Batched{.size = 1}, 0);
    std::vector<Result> first;
    std::uint64_t rows = 0;
    for (auto const size : {0, 1, 4, 37})
      for (auto const batch : {std::size_t{1}, std::size_t{7}, std::size_t{64}}) {
        HashedTextModel language(text);
        WithLanguageModel both(model, language, tokens);
        Streaming const schedule{.size = batch, .refill_below = 1.0};
        auto const results = in_chunks(both, all, beside, schedule, size);
        if (first.empty()) first = results, rows = language.fed;
        CHECK(language.fed == rows);
        CHECK(language.live == all.size());  // each text begins once
        if (batch == 64 && size == 0) CHECK(language.calls * 3 < rows);
        for (std::size_t i = 0; i < all.size(); ++i) {
          check_same(results[i], first[i]);
          if (!same_bits) continue;
          REQUIRE(results[i].hypotheses.size() == expected[i].hypotheses.size());
          for (std::size_t k = 0; k < expected[i].hypotheses.size(); ++k) {
            auto const &a = results[i].hypotheses[k], &b = expected[i].hypotheses[k];
            CHECK(a.tokens == b.tokens);
            CHECK(a.frames == b.frames);
            CHECK_THAT(a.log_prob, WithinAbs(b.log_prob, 1e-4));
          }
        }
      }
    return rows;
  };
  using Inside = TransducerBeam<NoRule, HashedTextScore>;
  using Beside = TransducerBeam<NoRule, FusionWeights>;
  HashedTextScore const score(text, weights);
  TransducerTokens const rnnt{.labels = 5, .blank = 4}, tdt{.labels = 5, .blank = 4, .durations = {0, 1, 3}};
  Endpoint const endpoint{.silence = 6, .longest = 40};
  auto const beam_rows = check(rnnt, Inside{.tokens = rnnt, .width = 4, .n_best = 3, .language_model = score},
                               Beside{.tokens = rnnt, .width = 4, .n_best = 3, .language_model = {weights}}, true);
  check(rnnt, Inside{.tokens = rnnt, .width = 4, .n_best = 3, .endpoint = endpoint, .language_model = score},
        Beside{.tokens = rnnt, .width = 4, .n_best = 3, .endpoint = endpoint, .language_model = {weights}}, true);
  // Labels that move on may end an output: what it says of the end comes a step later than a LanguageModel's.
  check(tdt, Inside{.tokens = tdt, .width = 4, .n_best = 3, .endpoint = endpoint, .language_model = score},
        Beside{.tokens = tdt, .width = 4, .n_best = 3, .endpoint = endpoint, .language_model = {weights}}, false);
  auto const greedy_rows =
      check(rnnt, TransducerGreedy<NoRule, HashedTextScore>{.tokens = rnnt, .language_model = score},
            TransducerGreedy<NoRule, FusionWeights>{.tokens = rnnt, .language_model = {weights}}, true);
  check(tdt, TransducerGreedy<NoRule, HashedTextScore>{.tokens = tdt, .endpoint = endpoint, .language_model = score},
        TransducerGreedy<NoRule, FusionWeights>{.tokens = tdt, .endpoint = endpoint, .language_model = {weights}},
        true);
  // Greedy decoding: a row for each text's beginning, and one for each label.
  HashedLines const lines{.tokens = rnnt, .scale = 5, .blank_logit = 2};
  SpokenModel model{SpokenNetwork(lines)};
  HashedTextModel language(text);
  WithLanguageModel both(model, language, tokens);
  auto labels = all.size();
  for (auto const& result :
       in_chunks(both, all, TransducerGreedy<NoRule, FusionWeights>{.tokens = rnnt, .language_model = {weights}},
                 Batched{.size = 9}, 0))
    labels += result.hypotheses.at(0).tokens.size();
  CHECK(greedy_rows == labels);
  CHECK(beam_rows > labels);
}

TEST_CASE(
    "a label that stands for no token of the language model is impossible, and a stream must be over for decode()") {
  HashedLines const lines{.tokens = {.labels = 4, .blank = 1}, .scale = 4};
  SpokenModel model{SpokenNetwork(lines)};
  HashedTextModel language(HashedText{.labels = 4});
  WithLanguageModel both(model, language, {2, -1, -1, 5});
  auto const results =
      in_chunks(both, utterances(20, 12),
                TransducerBeam<NoRule, FusionWeights>{
                    .tokens = lines.tokens, .width = 20, .n_best = 20, .language_model = {.weight = 0}},
                Batched{.size = 5}, 0);
  std::size_t labels = 0;
  for (auto const& result : results)
    for (auto const& h : result.hypotheses) {
      labels += h.tokens.size();
      for (auto const label : h.tokens) CHECK((label == 0 || label == 3));
    }
  CHECK(labels > 100);
  CHECK_THROWS_AS(WithLanguageModel(model, language, {2, 3, 4}), std::invalid_argument);
  CHECK_THROWS_AS(WithLanguageModel(model, language, {2, 3, 4, 99}), std::invalid_argument);

  auto const open = decode(model, std::vector<Spoken>{{{1, 5}, false}}, TransducerBeam<>{.tokens = lines.tokens}).at(0);
  CHECK(open.failure == Failure::source);
  auto const none = in_chunks(model, {{1, 0}}, TransducerBeam<>{.tokens = lines.tokens}, Batched{.size = 1}, 3).at(0);
  REQUIRE(none.hypotheses.size() == 1);
  CHECK(none.hypotheses[0].tokens.empty());
  CHECK(none.hypotheses[0].log_prob == 0);
  CHECK(none.frames == 0);
}

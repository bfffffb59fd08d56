// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/model/any_model.hpp>
#include <sluice/model/checked.hpp>
#include <sluice/model/fused.hpp>
#include <sluice/model/restarting.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/best_first_beam.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/exact_search.hpp>
#include <sluice/search/forced_score.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/draft_model.hpp>
#include <sluice/speculative/prompt_lookup.hpp>

#include <support/brute_force.hpp>
#include <support/catch.hpp>
#include <support/chi_squared.hpp>
#include <support/combining.hpp>
#include <support/decoding.hpp>
#include <support/encoding_table.hpp>
#include <support/times.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::uint64_t language_seed = 99;
constexpr Abilities all{.ragged = true, .blocks = true, .roll_back = true, .trees = true};

/// A table that needs no source: a language model.
template <Abilities A = all>
struct LanguageTable {
  using Source = std::monostate;
  static constexpr Abilities abilities = A;
  TableModel<A> table;

  Vocabulary vocabulary() const { return table.vocabulary(); }
  Limits limits() const { return table.limits(); }
  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    for (auto const* source : sources)
      if (source == nullptr) throw std::logic_error("no source");
    std::vector<std::uint64_t const*> const seeds(slots.size(), &language_seed);
    table.start(seeds, slots);
  }
  Scores<float> step(std::span<Row const> rows) { return table.step(rows); }
};

/// A fusion, and what it must come to in double precision.
struct Case {
  Table table, language;
  FusedOptions options;
  std::uint64_t seed = 0;

  /// The fused scores after `tokens`, which follow bos.
  std::vector<double> line(std::span<Token const> tokens) const {
    std::vector<double> a(static_cast<std::size_t>(table.size)), b(static_cast<std::size_t>(language.size));
    table.log_probs(seed, tokens, a);
    std::vector<Token> theirs;
    for (auto const token : tokens) theirs.push_back(mapped(token));
    language.log_probs(language_seed, theirs, b);
    for (std::size_t v = 0; v < a.size(); ++v) {
      auto const token = static_cast<Token>(v);
      auto const theirs_token = mapped(token);
      auto const absent = !options.tokens.empty() && options.tokens[v] < 0;
      auto const other = theirs_token < 0
                             ? -infinity
                             : b[static_cast<std::size_t>(theirs_token)] + (absent ? options.unknown_log_prob : 0);
      auto const word =
          options.words.empty() ? !table.ends(token) : std::ranges::find(options.words, token) != options.words.end();
      if (options.weight != 0) a[v] = a[v] > -infinity && other > -infinity ? a[v] + options.weight * other : -infinity;
      if (word) a[v] += options.word_bonus;
    }
    if (options.normalise) return normalised(a);
    return a;
  }
  Token mapped(Token token) const {
    if (options.tokens.empty()) return token;
    auto const theirs = options.tokens[static_cast<std::size_t>(token)];
    return theirs < 0 ? options.unknown : theirs;
  }
};

Case random_case(std::uint64_t seed, std::int32_t size, bool falling) {
  std::mt19937_64 random(seed);
  Case made{.table = random_table(random, size), .language = random_table(random, size), .options = {}, .seed = seed};
  auto& o = made.options;
  o.weight = std::vector{0.3, 1.0, 0.0, falling ? 0.6 : -0.4}[random() % 4];
  o.word_bonus = std::vector{0.0, falling ? -0.7 : 0.7, -1.5}[random() % 3];
  if (random() % 2 == 0)
    for (Token v = 3; v < size; v += 2) o.words.push_back(v);
  if (random() % 2 == 0) {  // another vocabulary: fewer tokens, in another order, the same one for some
    made.language.size = 5 + static_cast<std::int32_t>(random() % 4);
    o.tokens = {-1, -1, eos};
    for (Token v = 3; v < size; ++v) o.tokens.push_back(random() % 4 == 0 ? -1 : 3 + static_cast<Token>(random() % 2));
    if (random() % 2 == 0) o.unknown = 4, o.unknown_log_prob = -1.25;
  }
  return made;
}

constexpr auto by_log_prob = [](Sequence const& one) { return one.log_prob; };

/// All outputs of up to `most` tokens that are possible, best first.
std::vector<Sequence> best_of(Case const& one, std::int32_t most, std::size_t count) {
  TableModel<all> model(one.table);
  auto found =
      every_sequence(model.vocabulary(), most, [&](std::span<Token const> tokens) { return one.line(tokens); });
  std::erase_if(found, [](Sequence const& s) { return !(s.log_prob > -infinity); });
  return n_best(std::move(found), count, by_log_prob);
}

}  // namespace

TEST_CASE("a fused line is the sum computed in double", "[fused]") {
  for (std::uint64_t seed = 0; seed < times(600u); ++seed) {
    std::mt19937_64 random(seed);
    auto one = random_case(seed, 4 + static_cast<std::int32_t>(random() % 60), false);
    one.options.normalise = seed % 7 == 0;
    INFO("seed " << seed);
    TableModel<> model(one.table, {.kind = seed % 3 == 0 ? Kind::log_probs : Kind::logits});
    LanguageTable<> language{TableModel<all>(one.language, {.kind = seed % 4 == 0 ? Kind::log_probs : Kind::logits})};
    Fused fused(model, language, one.options);
    std::vector<Token> tokens{bos};
    for (auto n = random() % 5; n > 0; --n)
      tokens.push_back(3 + static_cast<Token>(random() % static_cast<std::size_t>(one.table.size - 3)));
    auto line = line_after(fused, seed, tokens);
    if (one.options.normalise) line = normalised(line);
    auto const impossible = std::ranges::all_of(line, [](double x) { return x == -infinity; });
    if (one.options.tokens.empty() || one.options.unknown >= 0 || !impossible) {
      auto context = std::span(tokens).subspan(1);
      bool const known = std::ranges::all_of(context, [&](Token t) { return one.mapped(t) >= 0; });
      if (known) CHECK(difference(line, one.line(context), 4e-6) == -1);
    }
  }
}

TEST_CASE("every search finds in a fused model what it finds among all outputs", "[fused]") {
  std::size_t compared = 0;
  for (std::uint64_t seed = 0; seed < times(150u); ++seed) {
    INFO("seed " << seed);
    auto const one = random_case(seed, 5 + static_cast<std::int32_t>(seed % 3), true);
    auto const expected = best_of(one, 4, 3);
    if (expected.size() < 3) continue;
    ++compared;
    CheckedModel<TableModel<all>> model(TableModel<all>(one.table), all, {.first_child_in_place = false});
    LanguageTable<> language{TableModel<all>(one.language)};
    Fused fused(model, language, one.options);
    std::vector<std::uint64_t> const sources{seed};
    check_n_best(decode(fused, sources, ExactSearch{.n_best = 3, .length = {.max = 4}}).at(0), expected);
    LengthPenalty const none{.alpha = 0};
    BeamSearch const beam{.width = 100, .n_best = 3, .length = {.max = 4}, .penalty = none};
    check_n_best(decode(fused, sources, beam).at(0), expected);
    BestFirstBeam const first{.width = 100, .n_best = 3, .length = {.max = 4}, .penalty = none};
    check_n_best(decode(fused, sources, first).at(0), expected);
    DiverseBeamSearch diverse{.search = beam, .groups = 1, .penalty = 0};
    diverse.n_best = 3, diverse.search.n_best = beam.width;
    check_n_best(decode(fused, sources, diverse).at(0), expected);
    auto with = best_of(one, 4, 10000);
    std::erase_if(with, [](Sequence const& s) { return std::ranges::find(s.tokens, 3) == s.tokens.end(); });
    if (with.size() >= 3) {
      with.resize(3);
      ConstrainedBeamSearch<Phrases> constrained{.beam = beam, .constraints = Phrases(std::vector<Phrase>{{3}})};
      constrained.prune_finished = Pruning::off, constrained.beam.width = 300;
      check_n_best(decode(fused, sources, constrained).at(0), with);
    }
    auto const greedy = decode(fused, sources, Greedy{.length = {.max = 4}}).at(0);
    for (auto const& h : greedy.hypotheses)
      for (std::size_t i = 0; i < h.tokens.size(); ++i) {
        auto const line = one.line(std::span(h.tokens).first(i));
        auto const own = line[static_cast<std::size_t>(h.tokens[i])];
        CHECK_THAT(static_cast<double>(h.log_probs[i]), WithinAbs(own, 2e-5));
        for (Token v = 2; v < one.table.size && i + 1 < 4; ++v) CHECK(line[static_cast<std::size_t>(v)] <= own + 2e-5);
      }
    using Scored = TableRequest<ForcedScore>;
    auto const scored =
        decode(fused, std::vector<Scored>{{.source = seed, .prefix = expected[0].tokens}}, ForcedScore{}).at(0);
    CHECK_THAT(scored.hypotheses.at(0).log_prob, WithinAbs(expected[0].log_prob, 1e-4));
    CHECK(model.report() == "");
  }
  CHECK(compared > times(100u));
}

TEST_CASE("a bonus may also lift scores above 0, and a weight may be negative", "[fused]") {
  for (std::uint64_t seed = 0; seed < times(60u); ++seed) {
    INFO("seed " << seed);
    auto one = random_case(seed, 6, false);
    if (seed % 2 == 0) one.options.word_bonus = 3;
    auto const expected = best_of(one, 4, 3);
    if (expected.size() < 3) continue;
    TableModel<all> model(one.table);
    LanguageTable<> language{TableModel<all>(one.language)};
    Fused fused(model, language, one.options);
    // Outputs that are longer may score more: only a beam that goes on to the end finds them.
    BeamSearch const beam{.width = 200,
                          .n_best = 3,
                          .length = {.max = 4},
                          .penalty = {.alpha = 0},
                          .early_stopping = {.finished = 100000}};
    check_n_best(decode(fused, std::vector<std::uint64_t>{seed}, beam).at(0), expected);
  }
}

TEST_CASE("searches that prove their results refuse a fusion whose scores may rise", "[fused]") {
  LengthPenalty const none{.alpha = 0};
  LengthLimits const length{.max = 4};
  BeamSearch const proving{.width = 100,
                           .n_best = 3,
                           .length = length,
                           .penalty = none,
                           .early_stopping = {.rule = EarlyStopping::Rule::exact}};
  int refused = 0, found = 0;
  for (std::uint64_t seed = 0; seed < times(60u); ++seed) {
    INFO("seed " << seed);
    auto const one = random_case(seed, 6, seed % 3 == 0);
    auto const expected = best_of(one, 4, 3);
    if (expected.size() < 3) continue;
    TableModel<all> model(one.table);
    LanguageTable<> language{TableModel<all>(one.language)};
    Fused fused(model, language, one.options);
    AnyModel<std::uint64_t> any(&fused);
    std::vector<std::uint64_t> const sources{seed};
    auto const rises = one.options.word_bonus > 0 || one.options.weight < 0;
    auto const compare = [&](auto const& search) {
      if (!rises) {
        check_n_best(decode(any, sources, search).at(0), expected);
        return;
      }
      auto const text = thrown([&] { decode(any, sources, search); });
      CHECK(text.find("sluice: limits().log_prob = ") == 0);
      CHECK(text.find("word_bonus > 0") != std::string::npos);
    };
    compare(ExactSearch{.n_best = 3, .length = length});
    compare(Processed{ExactSearch{.n_best = 3, .length = length}, NoRepeatNgram{5}});
    compare(BestFirstBeam{.width = 100, .n_best = 3, .length = length, .penalty = none});
    compare(proving);
    compare(Processed{proving, NoRepeatNgram{5}});
    ++(rises ? refused : found);
    if (!rises) continue;
    // A softmax of the sum falls again; and a request with such a search of its own is refused alone.
    auto options = one.options;
    options.normalise = true;
    Fused normalised(model, language, options);
    CHECK(decode(normalised, sources, proving).at(0).ok());
    auto plain = proving;
    plain.early_stopping.rule = EarlyStopping::Rule::count;
    auto const results = decode(
        any, std::vector<TableRequest<BeamSearch>>{{.source = seed}, {.source = seed, .search = proving}}, plain);
    CHECK(results[0].ok());
    CHECK(results[1].failure == Failure::bad_request);
    CHECK(results[1].message.find("limits().log_prob") != std::string::npos);
  }
  CHECK(refused > times(15));
  CHECK(found > times(10));
}

TEST_CASE("how high the scores of a fusion may go", "[fused]") {
  TableModel<all> model(Table{.size = 6});
  LanguageTable<> language{TableModel<all>(Table{.size = 6})};
  auto const most = [&](FusedOptions const& options) { return Fused(model, language, options).limits().log_prob; };
  CHECK(most({.weight = 0.5}) == 0);
  CHECK(most({.weight = 0.5, .word_bonus = -1}) == 0);
  CHECK(most({.weight = 0, .word_bonus = 0.25}) == 0.25);
  CHECK(most({.weight = -0.1}) == infinity);
  CHECK(most({.weight = -0.1, .word_bonus = 2, .normalise = true}) == 0);
  CHECK(most({.weight = 0.5, .tokens = {-1, -1, 2, 3, 4, -1}, .unknown = 3, .unknown_log_prob = 3}) == 1.5);
  Fused inner(model, language, {.weight = 0, .word_bonus = 0.25});
  CHECK(Fused(inner, language, {.weight = 1, .word_bonus = 0.5}).limits().log_prob == 0.75);
  CHECK(Fused(inner, language, FusedOptions{.weight = 0.5}).limits().log_prob == 0.25);
  CHECK(Fused(model, language, FusedOptions{.weight = -0.5}).limits().log_prob == infinity);
  CHECK(Fused(model, inner, FusedOptions{.weight = 2}, std::identity{}).limits().log_prob == 0.5);
  // Wrappers pass it on; a draft's scores are none of the output's.
  TableModel<Abilities{}> plain(Table{.size = 6});
  Fused few(plain, language, {.weight = 0, .word_bonus = 0.25});
  CHECK(Restarting(few).limits().log_prob == 0.25);
  CHECK(TokenByToken(few).limits().log_prob == 0.25);
  CHECK(Checked(inner).limits().log_prob == 0.25);
  CHECK(Speculated(inner, PromptLookup()).limits().log_prob == 0.25);
  CHECK(Speculated(inner, DraftModel(model)).limits().log_prob == 0.25);
  CHECK(Speculated(model, DraftModel(inner)).limits().log_prob == 0);
  CHECK(AnyModel<std::uint64_t>(&inner).limits().log_prob == 0.25);
}

TEST_CASE("an internal language model is subtracted by a second fusion", "[fused]") {
  for (std::uint64_t seed = 0; seed < times(40u); ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    Case one{.table = random_table(random, 7),
             .language = random_table(random, 7),
             .options = {.weight = 0.7},
             .seed = seed};
    auto const own = random_table(random, 7);
    TableModel<all> model(one.table), internal(own);
    LanguageTable<> language{TableModel<all>(one.language)};
    Fused without(model, internal, {.weight = -0.3}, std::identity{});
    Fused both(without, language, {.weight = 0.7, .word_bonus = 0.1});
    one.options.word_bonus = 0.1;
    auto const line = [&](std::span<Token const> tokens) {
      auto sum = one.line(tokens);
      std::vector<double> subtracted(7);
      own.log_probs(seed, tokens, subtracted);
      for (std::size_t v = 0; v < 7; ++v) sum[v] = sum[v] > -infinity ? sum[v] - 0.3 * subtracted[v] : sum[v];
      return sum;
    };
    CHECK(difference(line_after(both, seed, {bos, 4, 5}), line(std::vector<Token>{4, 5}), 4e-6) == -1);
    auto const expected = n_best(every_sequence(model.vocabulary(), 4, line), 3, by_log_prob);
    BeamSearch const beam{.width = 400,
                          .n_best = 3,
                          .length = {.max = 4},
                          .penalty = {.alpha = 0},
                          .early_stopping = {.finished = 100000}};
    check_n_best(decode(both, std::vector<std::uint64_t>{seed}, beam).at(0), expected);
  }
}

TEST_CASE("sampling draws from the normalised sum", "[fused]") {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    Case one{.table = {.size = 9, .scale = 2},
             .language = {.size = 9, .scale = 2},
             .options = {.weight = 1.5},
             .seed = seed};
    one.options.normalise = true, one.options.word_bonus = 0.5, one.options.words = {4, 6};
    TableModel<all> model(one.table);
    LanguageTable<> language{TableModel<all>(one.language)};
    Fused fused(model, language, one.options);
    constexpr std::int32_t rounds = 20000;
    std::vector<std::uint64_t> const sources{seed};
    auto const drawn = decode(fused, sources, Sample{.samples = rounds, .length = {.max = 2}}).at(0);
    std::vector<std::int64_t> counts(9);
    for (auto const& h : drawn.hypotheses) ++counts[static_cast<std::size_t>(h.tokens.at(0))];
    auto probabilities = one.line({});
    for (auto& x : probabilities) x = std::exp(x);
    check_distribution(counts, probabilities);
  }
}

TEST_CASE("a fused model gives the same bits in any batch", "[fused]") {
  for (std::int32_t const size : {5, 37, 1100}) {
    std::vector<std::uint64_t> sources(30);
    for (std::size_t i = 0; i < sources.size(); ++i) sources[i] = 11 * i;
    BeamSearch const search{.width = 4, .n_best = 4, .length = {.max = 7}};
    auto const run = [&](auto const& schedule) {
      TableModel<> model({.size = size});
      LanguageTable<> language{TableModel<all>({.size = size, .scale = 5})};
      Fused fused(model, language, {.weight = 0.25});
      return decode(fused, sources, search, schedule);
    };
    auto const alone = run(Batched{.size = 1}), some = run(Streaming{.size = 7}), together = run(Batched{.size = 64});
    for (std::size_t i = 0; i < sources.size(); ++i) {
      CHECK(identical(alone[i], some[i]));
      CHECK(identical(alone[i], together[i]));
    }
  }
}

TEST_CASE("what is impossible or no number in one of the two stays so when they are fused", "[fused]") {
  auto const inf = std::numeric_limits<float>::infinity();
  FixedModel<float> model{{0, 1, -inf, 2}}, language{{1, -inf, 1, 1}}, nothing{{-inf, -inf, -inf, -inf}},
      broken{{0, std::nanf(""), 0, 0}}, infinite{{0, 0, inf, 0}};
  auto const line = [](auto& a, auto& b, FusedOptions const& options) {
    Fused fused(a, b, options, std::identity{});
    return line_after(fused, 0, {0});
  };
  auto const p = normalised(model.line), q = normalised(language.line);
  std::vector<double> const all_nan(4, no_number), all_impossible(4, -infinity);
  for (auto const weight : {0.5, -0.5, 3.0}) {
    for (auto const& tokens : {std::vector<Token>{}, std::vector<Token>{0, 1, 2, 3}}) {
      FusedOptions const options{.weight = weight, .tokens = tokens};
      INFO("weight " << weight);
      CHECK(difference(line(model, language, options),
                       {p[0] + weight * q[0], -infinity, -infinity, p[3] + weight * q[3]}, 1e-6) == -1);
      CHECK(difference(line(model, nothing, options), all_impossible, 0) == -1);
      CHECK(difference(line(nothing, model, options), all_impossible, 0) == -1);
      CHECK(difference(line(model, broken, options), all_nan, 0) == -1);
      CHECK(difference(line(broken, model, options), all_nan, 0) == -1);
      CHECK(difference(line(infinite, model, options), all_nan, 0) == -1);
      CHECK(difference(line(nothing, broken, options), all_nan, 0) == -1);
    }
  }
  CHECK(difference(line(model, broken, {.weight = 0}), p, 1e-6) == -1);
}

TEST_CASE("a fused model encodes ahead, and has no more than the smaller of the two", "[fused]") {
  EncodingTable<> model({.size = 9}, {}, {.limits = {.slot_count = 7, .length = 90}});
  LanguageTable<Abilities{.ragged = true}> language{
      TableModel<Abilities{.ragged = true}>({.size = 9, .scale = 3}, {.limits = {.slot_count = 9, .length = 30}})};
  Fused fused(model, language, {.weight = 0.5});
  static_assert(EncodingModel<decltype(fused)> && ReleasingModel<decltype(fused)>);
  CHECK(encodes(fused));
  CHECK(fused.limits().slot_count == 7);
  CHECK(fused.limits().length == 30);
  std::vector<HeapSource> sources;
  for (std::uint64_t i = 0; i < 12; ++i) sources.emplace_back(i);
  BeamSearch const search{.width = 3, .length = {.max = 8}};
  auto const expected = decode(fused, sources, search);
  auto const ahead = decode(fused, sources, search, Batched{.size = 2}, LogSoftmaxTopK(), {.encode_ahead = 3});
  for (std::size_t i = 0; i < sources.size(); ++i) CHECK(identical(expected[i], ahead[i]));
}

TEST_CASE("guesses of the model are verified under the fusion", "[fused]") {
  Table const table{.size = 6, .scale = 3, .eos_bias = -4, .eos_slope = 0.1, .order = 1};
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    TableModel<all> model(table), alone(table);
    LanguageTable<> language{TableModel<all>({.size = 6, .scale = 3, .order = 1})}, again = language;
    Speculated guessing(model, PromptLookup());
    FusedOptions const options{.weight = 0.8, .word_bonus = -0.1};
    Fused fused(guessing, language, options);
    Fused without(alone, again, options);
    CHECK(proposes(fused));
    std::vector<std::uint64_t> const sources{seed};
    auto const results = decode(fused, sources, Blockwise<>{.block = 4, .length = {.max = 25}});
    auto const expected = decode(without, sources, Greedy{.length = {.max = 25}});
    CHECK(results[0].hypotheses.at(0).tokens == expected[0].hypotheses.at(0).tokens);
  }
}

TEST_CASE("if the language model of a fusion cannot start, the model holds nothing", "[fused]") {
  Table const table{.size = 8};
  SlotChecker<TableModel<>> model{TableModel<>(table)};
  FailingTable<> language(table, 13);
  Fused fused(model, language, {.weight = 0.5}, std::identity{});
  auto const results =
      decode(fused, std::vector<std::uint64_t>{13, 1, 2}, BeamSearch{.width = 2, .length = {.max = 5}});
  CHECK(results[0].failure == Failure::source);
  CHECK(results[1].ok());
  CHECK(results[2].ok());
  CHECK(model.report() == "");
}

TEST_CASE("a fusion that makes no sense is refused", "[fused]") {
  TableModel<> model({.size = 8});
  LanguageTable<> larger{TableModel<all>({.size = 9})}, fitting{TableModel<all>({.size = 8})};
  auto const problem = [&](auto& language, FusedOptions const& options) {
    return thrown([&] { Fused fused(model, language, options); });
  };
  CHECK(problem(larger, {}) == "sluice: Fused: language model: vocabulary.size = 9: must be that of the model, 8");
  CHECK(problem(fitting, {.weight = no_number}).find("sluice: Fused: weight = ") == 0);
  CHECK(problem(fitting, {.word_bonus = infinity}).find("sluice: Fused: word_bonus = ") == 0);
  CHECK(problem(fitting, {.words = {8}}) == "sluice: Fused: words = 8: is outside the vocabulary");
  CHECK(problem(larger, {.tokens = {0, 1}}) ==
        "sluice: Fused: tokens.size() = 2: must be that of the model's vocabulary, 8");
  CHECK(problem(larger, {.tokens = {0, 1, 2, 3, 4, 5, 6, 9}}) ==
        "sluice: Fused: tokens = 9: is outside the language model's vocabulary");
  CHECK(problem(larger, {.tokens = {0, 1, 2, 3, 4, 5, 6, -1}, .unknown = 9}) ==
        "sluice: Fused: unknown = 9: is outside the language model's vocabulary");
  CHECK(problem(larger, {.tokens = {0, 1, 2, 3, 4, 5, 6, -1}, .unknown_log_prob = infinity})
            .find("sluice: Fused: unknown_log_prob = ") == 0);
}

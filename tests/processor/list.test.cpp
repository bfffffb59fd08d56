// SPDX-License-Identifier: Apache-2.0
// What every search gives under lists of logits processors, against hashes of what it gave when each list was a type of its own, wrapped
// around the type of the search (before 2026-11-28): tokens, log-probabilities to the last bit, scores, stops, blocks.
#include <sluice/core/logits_processor_list.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/phrase.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/processor/stop_sequences.hpp>
#include <sluice/processor/whisper.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/best_first_beam.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/exact_search.hpp>
#include <sluice/search/forced_score.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/presets.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/search/stochastic_beam.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/watermark/watermark.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/table_model.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

std::map<std::string, std::uint64_t> const expected{
    {"greedy, forbidden, no repeat", 0xc84db656f7f45d27},
    {"greedy, penalties, first, tokens", 0x650bbf246dd7247b},
    {"greedy, stops", 0x35578e0c5c52028c},
    {"greedy, structure", 0x4f653a3d403d35d3},
    {"greedy, bias", 0x3a1fab64ebb299d4},
    {"greedy, all", 0x81a1ff6d2b2f71c8},
    {"greedy, bias, stops", 0xe16e285e941f872f},
    {"greedy, token bias", 0x8d7a7f625476e3ce},
    {"beam, forbidden, no repeat", 0x3dd3ecfa5472e031},
    {"beam, penalties, first, tokens", 0xcc85b8f12962774f},
    {"beam, stops", 0xe08371d6526740e4},
    {"beam, structure", 0xb23958f1a3757a70},
    {"beam, bias", 0x2c3194906992806c},
    {"beam, all", 0x1a1d7b2238ae6336},
    {"beam, bias, stops", 0xed4e253ab262a246},
    {"beam, token bias", 0xff0dab2615187610},
    {"sample, forbidden, no repeat", 0x4483df64e7ad48d9},
    {"sample, penalties, first, tokens", 0x9feaf00a0c29343d},
    {"sample, stops", 0xd7f5e2717ab0210e},
    {"sample, structure", 0xc64569384c033385},
    {"sample, bias", 0x711db604548dde77},
    {"sample, all", 0x945bfe7c3ca9679c},
    {"sample, bias, stops", 0x686bae587469e5c6},
    {"sample, token bias", 0xda829c368ff41f78},
    {"blockwise, forbidden, no repeat", 0x2a6aa6a4ffce6b25},
    {"blockwise, penalties, first, tokens", 0xfb9a78ea8eceec33},
    {"blockwise, stops", 0xcb2301406a0bcc68},
    {"blockwise, structure", 0x034f6c966ae390da},
    {"blockwise, bias", 0x5e40ebf755320040},
    {"blockwise, all", 0x8422f926ddcc47b9},
    {"blockwise, bias, stops", 0x969df093d8a01e5c},
    {"blockwise, token bias", 0x986c5969607ecc0e},
    {"stochastic, forbidden, no repeat", 0x0ba1bfca526696a4},
    {"stochastic, penalties, first, tokens", 0x09c53ac8c7561221},
    {"stochastic, stops", 0x59f02867c4a2337f},
    {"stochastic, structure", 0x2afd2c87a2990b80},
    {"stochastic, bias", 0x24a3b90cdd34794f},
    {"stochastic, all", 0x50a4cb4a8e41d6ab},
    {"stochastic, bias, stops", 0xe4d58d22f2b60966},
    {"stochastic, token bias", 0x4d73605fb6afea34},
    {"constrained, forbidden, no repeat", 0x49427749267f0a3e},
    {"constrained, penalties, first, tokens", 0x4782db34de0426c0},
    {"constrained, stops", 0x36b9d9b5c0955c18},
    {"constrained, structure", 0x3cdedb055948c434},
    {"constrained, bias", 0x2cd31f71b8e57be9},
    {"constrained, all", 0x838891497f6d307e},
    {"constrained, bias, stops", 0x6333b5ef7b8d2ae3},
    {"constrained, token bias", 0xecc80c3cf074d171},
    {"diverse, forbidden, no repeat", 0xec13f7004f994d3d},
    {"diverse, penalties, first, tokens", 0x94ceb8b27076d138},
    {"diverse, stops", 0x6d47d723fa21e47a},
    {"diverse, structure", 0x483f7e802af1014a},
    {"diverse, bias", 0xf2c786df1c8d10e1},
    {"diverse, all", 0xa135494c3a5c0091},
    {"diverse, bias, stops", 0x47e5955c25b949f4},
    {"diverse, token bias", 0x948be705c3bf0ccc},
    {"exact, forbidden, no repeat", 0xa68137b287719151},
    {"exact, penalties, first, tokens", 0x8df103089fd24bc4},
    {"exact, stops", 0x603c2b62e3af8ee2},
    {"exact, structure", 0x95058ff24e839e2e},
    {"exact, token bias", 0x26b35a595bfd2dba},
    {"forced, forbidden, no repeat", 0x5a5fd8216b547b07},
    {"forced, penalties, first, tokens", 0x5a5fd8216b547b07},
    {"forced, stops", 0x5a5fd8216b547b07},
    {"forced, structure", 0xd54285f8eaefe1ac},
    {"forced, bias", 0x7bfed87ad9235a43},
    {"forced, all", 0xd54285f8eaefe1ac},
    {"forced, bias, stops", 0x7bfed87ad9235a43},
    {"forced, token bias", 0x5a5fd8216b547b07},
};

struct Digest {
  std::uint64_t value = 1;
  void add(std::uint64_t x) { value = hash_mix(value ^ (x + 0x9E3779B97F4A7C15u)); }
  void add(std::vector<Result> const& results) {
    for (auto const& r : results) {
      add(static_cast<std::uint64_t>(r.failure)), add(r.hypotheses.size());
      for (auto const& h : r.hypotheses) {
        add(h.tokens.size());
        for (auto const token : h.tokens) add(static_cast<std::uint64_t>(token));
        for (auto const log_prob : h.log_probs) add(std::bit_cast<std::uint32_t>(log_prob));
        add(std::bit_cast<std::uint64_t>(h.score)), add(h.finished ? 1 : 0);
        add(static_cast<std::uint64_t>(h.stop + 1));
        for (auto const block : h.blocks) add(static_cast<std::uint64_t>(block));
      }
    }
  }
};

std::vector<Table> const tables{{.size = 12, .eos_bias = 1},
                                {.size = 12, .scale = 4, .eos_bias = 2, .eos_slope = 0.1},
                                {.size = 12, .eos_bias = 3, .order = 1, .levels = 4},
                                {.size = 12, .eos_bias = 2, .order = 2, .second_eos = 11}};

/// A batch, or a stream.
struct Either {
  bool streams = false;
  std::size_t admit(std::span<Live const> live, std::span<std::int32_t const> waiting) const {
    return streams ? Streaming{.size = 3}.admit(live, waiting) : Batched{.size = 5}.admit(live, waiting);
  }
  void select(std::span<Live const> live, std::vector<std::int32_t>& chosen) const {
    streams ? Streaming{.size = 3}.select(live, chosen) : Batched{.size = 5}.select(live, chosen);
  }
};

template <class S>
void check_hashes(std::string const& name, S const& search) {
  TokenBytes const bytes{std::vector<std::string>{"", "", "", "a", "b", "c", "ab", "ba", "cc", "abc", "(", ")"}};
  TokenTrie const trie{bytes, {.size = 12, .bos = bos, .eos = {eos}, .never = {pad, bos}}};
  Structure const structure(Grammar::from_gbnf("root ::= \"(\" item (\"c\" item)* \")\"\nitem ::= [ab]+ | root"), trie);
  Forbidden const forbidden({{3}, {4, 5}, {6, 7, 8}});
  NoRepeatNgram const ngram{2};
  Penalties const penalties{.repetition = 1.2f, .frequency = 0.1f, .presence = 0.2f};
  StopSequences const stops({.tokens = {{5, 6}}, .strings = {"ba", "cca"}, .bytes = bytes, .minimum = 2});
  Bias const bias({{.spellings = {{3, 4}}, .whole = 1.5f},
                   {.spellings = {{6}}, .whole = 0.75f},
                   {.spellings = {{4, 4, 5}}, .whole = -1.0f},
                   {.spellings = {{7, 8, 9}}, .whole = 2.0f}});
  std::map<std::string, LogitsProcessorList> const lists{
      {"forbidden, no repeat", {forbidden, ngram}},
      {"penalties, first, tokens", {penalties, ForbidFirst{{4}}, ForbidTokens{{9}}}},
      {"stops", stops},
      {"structure", structure},
      {"bias", bias},
      {"all", {forbidden, penalties, ngram, structure, bias, stops}},
      {"bias, stops", {bias, stops}},
      {"token bias", {TokenBias{{{5, 1.0f}, {6, -0.5f}}}, RepetitionPenalty{1.3f}}}};
  for (auto const& [what, processors] : lists) {
    auto const found = expected.find(name + ", " + what);
    if (found == expected.end()) continue;
    Digest digest;
    auto const add = [&](Table const& table, bool streams) {
      std::vector<TableRequest<S>> requests;
      for (std::uint64_t source = 0; source < 24; ++source) {
        TableRequest<S> request{.source = source, .processors = processors, .seed = source * 3};
        if (source % 3 == 1) request.prefix = {static_cast<Token>(3 + source % 7)};
        if (source % 4 == 1) request.prompt = {static_cast<Token>(4 + source % 5), 5, 6};
        requests.push_back(std::move(request));
      }
      digest.add(sluice::test::run<everything>(table, std::move(requests), search, Either{streams}));
    };
    for (auto const& table : tables) add(table, false);
    add(tables[0], true);
    INFO(found->first);
    CHECK(digest.value == found->second);
  }
}

/// Writes the scores of another table, so that a search decodes that one: its logits, or, where they are asked for, log-probabilities.
struct OtherTable {
  struct State {
    std::uint64_t seed = 0;
  };
  static constexpr std::string_view name = "OtherTable";
  Table table{};
  bool falls = false;
  std::int32_t throws_after = -1;  ///< tokens
  float writes = 0;                ///< at the first token, if not 0

  State initial(Sentence const& sentence) const { return {sentence.seed}; }
  State next(State state, Token) const { return state; }
  void edit(State const&, Output const&, std::vector<Edit>&) const {}
  bool raising() const { return !falls; }
  void process(State const& state, Output const& output, std::span<float> scores) const {
    if (throws_after >= 0 && std::ssize(output.tokens) > throws_after && state.seed % 2 == 1)
      throw std::runtime_error("no score for " + std::to_string(output.tokens.size()) + " tokens");
    std::vector<double> logits(scores.size());
    table.logits(state.seed, output.tokens, logits);
    double sum = 0;
    for (auto const x : logits) sum += std::exp(x);
    for (std::size_t v = 0; v < scores.size(); ++v) scores[v] = static_cast<float>(logits[v] - std::log(sum));
    if (writes != 0) scores[3] = writes;
  }
};

template <class S>
void check_other_table(S const& search, bool falls = false) {
  Table const shown{.size = 12, .scale = 3, .eos_bias = 1}, other{.size = 12, .eos_bias = 2, .eos_slope = 0.1};
  std::vector<TableRequest<S>> plain, processed;
  for (std::uint64_t source = 0; source < 30; ++source) {
    plain.push_back({.source = source, .seed = source});
    processed.push_back({.source = source, .processors = OtherTable{other, falls}, .seed = source});
  }
  auto const wanted = sluice::test::run<everything>(other, plain, search, Either{false});
  for (auto const streams : {false, true}) {
    auto const found = sluice::test::run<everything>(shown, processed, search, Either{streams});
    for (std::size_t i = 0; i < found.size(); ++i) {
      INFO("source " << i << found[i].message);
      REQUIRE(found[i].hypotheses.size() == wanted[i].hypotheses.size());
      for (std::size_t h = 0; h < found[i].hypotheses.size(); ++h) {
        CHECK(found[i].hypotheses[h].tokens == wanted[i].hypotheses[h].tokens);
        CHECK(found[i].hypotheses[h].score == Approx(wanted[i].hypotheses[h].score).margin(1e-4));
      }
    }
  }
}

/// A vocabulary as Whisper's: text 3 to 8, its end, three control tokens, the last `<|notimestamps|>`, and ten timestamps.
struct WhisperLike {
  static constexpr Token end = 9, none = 12, size = 23;
  static constexpr int latest = 4;  ///< of the first timestamp
  static constexpr Token suppressed = 7, first_suppressed = 14;
  static Table table() { return {.size = size, .scale = 4, .has_eos = false, .second_eos = end}; }
  static WhisperTimestamps rules() { return {.no_timestamps = none, .max_initial_timestamp_index = latest}; }
};

/// The rules of timestamps as the paper and openai/whisper's decoding say them, over the whole output each time.
std::vector<float> by_the_rules(std::vector<Token> const& output, std::vector<float> scores) {
  using W = WhisperLike;
  auto const never = -std::numeric_limits<float>::infinity();
  auto const is_time = [](Token token) { return token > W::none; };
  scores[W::none] = never;
  auto const last_is = !output.empty() && is_time(output.back());
  auto const one_before_is = output.size() < 2 || is_time(output[output.size() - 2]);
  Token latest = -1;
  for (Token v = 0; v < W::size; ++v) {
    auto& x = scores[static_cast<std::size_t>(v)];
    if (last_is && one_before_is && is_time(v)) x = never;
    if (last_is && !one_before_is && v < W::end) x = never;
    for (auto const token : output)
      if (is_time(token)) latest = token;
    if (is_time(v) && (v < latest || (v == latest && !(last_is && !one_before_is)))) x = never;
    if (output.empty() && (!is_time(v) || v - (W::none + 1) > W::latest)) x = never;
  }
  double all = 0, times = 0, text = 0;
  for (Token v = 0; v < W::size; ++v) {
    auto const p = std::exp(static_cast<double>(scores[static_cast<std::size_t>(v)]));
    all += p;
    if (is_time(v)) times += p;
    else text = std::max(text, p);
  }
  if (times / all > text / all) std::fill(scores.begin(), scores.begin() + W::none + 1, never);
  return scores;
}
/// The same as a processor, with the tokens that are suppressed.
struct ByTheRules {
  struct State {};
  State initial(Sentence const&) const { return {}; }
  State next(State, Token) const { return {}; }
  void edit(State, Output const&, std::vector<Edit>&) const {}
  void process(State, Output const& output, std::span<float> scores) const {
    std::vector<float> line(scores.begin(), scores.end());
    line[WhisperLike::suppressed] = -std::numeric_limits<float>::infinity();
    if (output.tokens.size() == output.prefix)
      line[WhisperLike::first_suppressed] = -std::numeric_limits<float>::infinity();
    line = by_the_rules({output.tokens.begin(), output.tokens.end()}, line);
    std::copy(line.begin(), line.end(), scores.begin());
  }
};

template <class S>
void check_timestamps(S const& search) {
  using W = WhisperLike;
  auto const decoded = [&](LogitsProcessorList const& list) {
    std::vector<TableRequest<S>> requests;
    for (std::uint64_t source = 0; source < 60; ++source) {
      requests.push_back({.source = source, .processors = list, .seed = source});
      if (source % 3 == 0) requests.back().prefix = {W::none + 2, 4};
    }
    return sluice::test::run<everything>(W::table(), requests, search, Either{false});
  };
  auto const wanted = decoded(ByTheRules{});
  auto const found = decoded({ForbidTokens{{W::suppressed}}, ForbidFirst{{W::first_suppressed}}, W::rules()});
  std::size_t times = 0, texts = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("source " << i << found[i].message);
    REQUIRE(found[i].ok());
    REQUIRE(found[i].hypotheses.size() == wanted[i].hypotheses.size());
    for (std::size_t h = 0; h < found[i].hypotheses.size(); ++h) {
      CHECK(found[i].hypotheses[h].tokens == wanted[i].hypotheses[h].tokens);
      CHECK(found[i].hypotheses[h].score == Approx(wanted[i].hypotheses[h].score).margin(1e-4));
      for (auto const token : found[i].hypotheses[h].tokens) ++(token > W::none ? times : texts);
    }
  }
  CHECK(std::min(times, texts) > found.size());
}

}  // namespace

TEST_CASE("Whisper's timestamps follow the rules that its paper says, in greedy search and in beams", "[processors]") {
  using W = WhisperLike;
  LengthLimits const length{.max = 12};
  check_timestamps(Greedy{.length = length, .stage = Stage::before_softmax});
  check_timestamps(Greedy{.length = length});
  check_timestamps(BeamSearch{.width = 4, .n_best = 4, .length = length});
  auto five = presets::ctranslate2(5);
  five.length = length;
  check_timestamps(five);

  // Random lines after random outputs, of tokens that the rules would not allow, too.
  std::mt19937_64 random(3);
  Vocabulary const vocabulary{.size = W::size, .bos = 1, .eos = {W::end}};
  auto const rules = W::rules();
  std::size_t outweighed = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<Token> output(std::uniform_int_distribution<std::size_t>(0, 6)(random));
    auto state = rules.initial({.vocabulary = &vocabulary});
    for (auto& token : output) {
      token = random() % 2 == 0 ? std::uniform_int_distribution(3, 8)(random)
                                : std::uniform_int_distribution(W::none + 1, W::size - 1)(random);
      state = rules.next(state, token);
    }
    std::vector<float> line(W::size);
    for (auto& x : line)
      x = random() % 8 == 0 ? -std::numeric_limits<float>::infinity() : std::normal_distribution<float>(0, 3)(random);
    auto const wanted = by_the_rules(output, line);
    outweighed += wanted[4] < line[4] && !output.empty() && output.back() <= W::none ? 1u : 0u;
    rules.process(state, {output, 0, vocabulary}, line);
    CHECK(line == wanted);
  }
  CHECK(outweighed > 100);

  CHECK_THROWS_WITH((WhisperTimestamps{.no_timestamps = 12, .max_initial_timestamp_index = -2}.check()),
                    Catch::Matchers::StartsWith("sluice: whisper_timestamps.max_initial_timestamp_index = -2"));
  for (auto const token : {-1, W::size - 1, W::end})
    CHECK_THROWS_WITH(
        (WhisperTimestamps{.no_timestamps = token}.initial({.vocabulary = &vocabulary})),
        Catch::Matchers::StartsWith("sluice: whisper_timestamps.no_timestamps = " + std::to_string(token)));
}

TEST_CASE("a processor of whole lines that writes another model's scores makes every search decode that model",
          "[processors]") {
  LengthLimits const length{.max = 12};
  check_other_table(Greedy{.length = length});
  check_other_table(BeamSearch{.width = 4, .n_best = 4, .length = length});
  check_other_table(Sample{.samples = 3, .length = length});
  check_other_table(Blockwise<>{.block = 4, .length = length});
  check_other_table(StochasticBeam{.width = 3, .length = length});
  check_other_table(DiverseBeamSearch{.search = {.width = 4, .n_best = 4, .length = length}, .groups = 2, .n_best = 3});
  check_other_table(ExactSearch{.length = {.max = 7}}, true);
}

TEST_CASE("edits and sets act before a processor of whole lines, and probes keep their scores", "[processors]") {
  // What others forbid stays forbidden to it: it sees -infinity, and this one only scales.
  struct Halved {
    struct State {};
    State initial(Sentence const&) const { return {}; }
    State next(State, Token) const { return {}; }
    void edit(State, Output const&, std::vector<Edit>&) const {}
    void process(State, Output const&, std::span<float> scores) const {
      for (auto& x : scores) x *= 0.5f;
    }
  };
  Table const table{.size = 12, .eos_bias = 1};
  auto half = table;
  half.scale /= 2, half.eos_bias /= 2, half.eos_slope /= 2;
  Forbidden const forbidden({{3}, {4, 5}, {6, 7, 8}});
  auto const decoded = [&](Table const& shown, LogitsProcessorList const& list) {
    std::vector<TableRequest<Greedy>> requests;
    for (std::uint64_t source = 0; source < 24; ++source)
      requests.push_back({.source = source, .prefix = {static_cast<Token>(3 + source % 7)}, .processors = list});
    return sluice::test::run<everything>(shown, requests, Greedy{.length = {.max = 12}});
  };
  auto const some = decoded(half, forbidden), same = decoded(table, {forbidden, Halved{}});
  TokenBias const bias{{{5, 1.0f}, {6, -0.5f}}}, twice{{{5, 2.0f}, {6, -1.0f}}};
  auto const biased = decoded(half, {bias, forbidden}), same_biased = decoded(table, {Halved{}, twice, forbidden});
  for (std::size_t i = 0; i < some.size(); ++i) {
    CHECK(some[i].hypotheses.at(0).tokens == same[i].hypotheses.at(0).tokens);
    CHECK(biased[i].hypotheses.at(0).tokens == same_biased[i].hypotheses.at(0).tokens);
  }
}

TEST_CASE("what a processor of whole lines throws or writes wrongly ends its own request alone", "[processors]") {
  Table const table{.size = 12};
  TableModel<everything> model(table);
  using R = TableRequest<Greedy>;
  std::vector<R> requests;
  for (std::uint64_t source = 0; source < 6; ++source)
    requests.push_back({.source = source, .processors = OtherTable{table, false, 0}, .seed = source});
  auto const results = decode(model, requests, Greedy{.length = {.min = 3, .max = 12}});
  for (std::size_t i = 0; i < results.size(); ++i) {
    CHECK(results[i].failure == (i % 2 == 1 ? Failure::search : Failure::none));
    if (i % 2 == 1) CHECK(results[i].message == "no score for 1 tokens");
  }
  auto const written = [&](float x) {
    std::vector<R> const one{{.source = 1, .processors = {NoRepeatNgram{3}, OtherTable{table, false, -1, x}}}};
    return decode(model, one, Greedy{}).at(0).message;
  };
  CHECK(written(std::numeric_limits<float>::quiet_NaN()) ==
        "sluice: processors[1], OtherTable = nan: is the score that it gives token 3: must be finite or -infinity");
  CHECK(written(std::numeric_limits<float>::infinity()) ==
        "sluice: processors[1], OtherTable = inf: is the score that it gives token 3: must be finite or -infinity");
}

TEST_CASE("every search gives what it gave before, under any list of processors", "[processors]") {
  LengthLimits const length{.max = 12};
  check_hashes("greedy", Greedy{.length = length});
  check_hashes("beam", BeamSearch{.width = 4, .n_best = 4, .length = length});
  check_hashes("sample", Sample{.samples = 3, .length = length});
  check_hashes("blockwise", Blockwise<>{.block = 4, .length = length});
  check_hashes("stochastic", StochasticBeam{.width = 3, .length = length});
  check_hashes("constrained", ConstrainedBeamSearch<Phrases>{.beam = {.width = 5, .length = length},
                                                             .constraints = Phrases({{5, 6}})});
  check_hashes("diverse",
               DiverseBeamSearch{.search = {.width = 4, .n_best = 4, .length = length}, .groups = 2, .n_best = 3});
  check_hashes("exact", ExactSearch{.length = {.max = 7}});
  check_hashes("forced", ForcedScore{});
}

TEST_CASE("loops are noticed as a scan of whole outputs notices them", "[processors]") {
  std::mt19937_64 random(7);
  Vocabulary const vocabulary{.size = 9, .eos = {2}};
  std::size_t ended = 0, forbade = 0;
  for (int round = 0; round < 20000; ++round) {
    RepetitionDetection detection{.max_pattern_size = 1 + static_cast<std::int32_t>(random() % 4),
                                  .min_count = 2 + static_cast<std::int32_t>(random() % 2)};
    detection.min_pattern_size =
        1 + static_cast<std::int32_t>(random() % static_cast<std::size_t>(detection.max_pattern_size));
    std::vector<Token> tokens(random() % 14);
    for (auto& token : tokens) token = 3 + static_cast<Token>(random() % 2);
    auto const loop = [&](std::vector<Token> const& text) {
      for (auto n = detection.min_pattern_size; n <= detection.max_pattern_size; ++n) {
        auto const size = static_cast<std::size_t>(n), count = static_cast<std::size_t>(detection.min_count);
        if (text.size() < size * count) continue;
        std::vector<Token> const pattern(text.end() - n, text.end());
        std::vector<Token> all;
        for (std::size_t i = 0; i < count; ++i) all.insert(all.end(), pattern.begin(), pattern.end());
        if (std::equal(all.rbegin(), all.rend(), text.rbegin())) return n;
      }
      return -1;
    };
    INFO("round " << round);
    CHECK(detection.stop({}, {tokens, 0, vocabulary}) == loop(tokens));
    ended += loop(tokens) > 0 ? 1u : 0u;
    detection.action = RepetitionDetection::Action::forbid;
    CHECK(detection.stop({}, {tokens, 0, vocabulary}) == -1);
    std::vector<Edit> edits;
    detection.edit({}, {tokens, 0, vocabulary}, edits);
    for (Token token = 3; token < 5; ++token) {
      auto longer = tokens;
      longer.push_back(token);
      auto const forbidden = std::any_of(edits.begin(), edits.end(), [&](Edit const& e) { return e.token == token; });
      CHECK(forbidden == (loop(longer) > 0));
      forbade += forbidden ? 1u : 0u;
    }
  }
  CHECK((ended > 1000 && forbade > 1000));

  // A model that only looks at its last token loops sooner or later.
  TableModel<everything> model(Table{.size = 8, .eos_bias = -30, .eos_slope = 0, .order = 1});
  std::vector<std::uint64_t> const sources{1, 2, 3, 4, 5, 6, 7, 8};
  Greedy const search{.length = {.max = 40}};
  RepetitionDetection detection{.max_pattern_size = 6, .min_count = 3};
  for (auto const& result : decode(model, sources, search, detection)) {
    auto const& h = result.hypotheses.at(0);
    CHECK((h.finished && h.stop >= 1 && h.stop <= 6 && h.tokens.size() < 40));
  }
  detection.action = RepetitionDetection::Action::forbid;
  for (auto const& result : decode(model, sources, search, detection)) {
    auto const& tokens = result.hypotheses.at(0).tokens;
    for (std::size_t n = 1; n + 1 < tokens.size(); ++n)  // the last one is the eos of the maximum length
      CHECK(RepetitionDetection{.max_pattern_size = 6, .min_count = 3}.stop(
                {}, {std::span(tokens).first(n), 0, vocabulary}) == -1);
  }
  CHECK_THROWS_WITH(LogitsProcessorList(RepetitionDetection{.max_pattern_size = 2, .min_count = 1}).check(),
                    "sluice: repetition_detection.min_count = 1: must be at least 2");
}

TEST_CASE("a request whose processors its search cannot bear is refused by name", "[processors]") {
  Bias const bias({{.spellings = {{3, 4}}, .whole = 1.5f}});
  TableModel<everything> model(Table{.size = 8});
  auto const refused = [&](auto const& search, LogitsProcessorList const& processors) {
    using R = TableRequest<std::remove_cvref_t<decltype(search)>>;
    auto const result = decode(model, std::vector<R>{{.source = 1, .processors = processors}}, search).at(0);
    CHECK(result.failure == Failure::bad_request);
    return result.message;
  };
  CHECK(refused(BestFirstBeam{}, {NoRepeatNgram{3}, bias}) ==
        "sluice: processors[1] = Bias: adds to scores, and this search proves its result by "
        "log-probabilities that only fall: use BeamSearch or ExactSearch");
  CHECK(refused(ExactSearch{.length = {.max = 5}},
                GreenList{{.scheme = WatermarkScheme::red_green, .key = WatermarkKey(3)}}) ==
        "sluice: processors[0] = GreenList: adds to scores, and this search proves its result by "
        "log-probabilities that only fall: use BeamSearch");
  CHECK(
      refused(ExactSearch{.length = {.max = LengthLimits::unlimited}}, bias).find("sluice: length.max = unlimited: ") ==
      0);
  CHECK(refused(Processed(Greedy{}, StopSequences({.tokens = {{3}}})), bias) ==
        "sluice: processors[0] = Bias: adds to scores, so it must see where outputs end: put it into one list with the "
        "processor that ends them");
  CHECK(refused(BestFirstBeam{}, OtherTable{}) ==
        "sluice: processors[0] = OtherTable: adds to scores, and this search proves its result by "
        "log-probabilities that only fall: use BeamSearch");
  CHECK(refused(Greedy{}, NoRepeatNgram{-1}) == "sluice: no_repeat_ngram.n = -1: must not be negative");
}

TEST_CASE("decode's processors come before a request's own", "[processors]") {
  TableModel<everything> model(Table{.size = 8});
  using R = TableRequest<Greedy>;
  // The first processor's stop is told, if several end an output.
  StopSequences const one({.tokens = {{3}, {4}, {5}, {6}, {7}}}), other({.tokens = {{3, 3}, {3}, {4}, {5}, {6}, {7}}});
  auto const stop = [&](StopSequences const& ours, StopSequences const& own) {
    auto const results = decode(model, std::vector<R>{{.source = 1, .processors = own}}, Greedy{}, ours);
    return results.at(0).hypotheses.at(0).stop;
  };
  CHECK(stop(one, other) + 1 == stop(other, one));
  LogitsProcessorList bad(NoRepeatNgram{-1});
  CHECK_THROWS_AS(decode(model, std::vector<std::uint64_t>{1}, Greedy{}, bad), std::invalid_argument);
}

// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/model/any_model.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/draft_model.hpp>
#include <sluice/speculative/prompt_lookup.hpp>
#include <sluice/speculative/suffix_cache.hpp>

#include <support/allocations.hpp>
#include <support/branching.hpp>
#include <support/chi_squared.hpp>
#include <support/decoding.hpp>
#include <support/looking.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Text = std::vector<Token>;
using Target = CheckedModel<TableModel<with_trees>>;

std::string contents(SuffixCache& cache) {
  std::ostringstream stream;
  cache.write(stream);
  return std::move(stream).str();
}

template <class S>
std::vector<TableRequest<S>> requests_of(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  std::vector<TableRequest<S>> requests(count);
  for (auto& request : requests) {
    request.source = random() % 7, request.seed = random() % 3;  // some come again
    if (random() % 4 == 0) request.prefix = {static_cast<Token>(3 + random() % 4)};
    if (random() % 4 == 0) request.prompt = {bos, 3, 4};
  }
  return requests;
}

/// What was guessed for a text.
struct Guessed {
  Text pending{}, tokens{};
  std::vector<std::int32_t> parents{};
};

/// A model that is given its guesses, one draft after another.
template <Model M>
class Given : public sluice::detail::Forwarding<M> {
 public:
  using Source = typename M::Source;
  Given(M& model, std::vector<Guessed> guesses) : sluice::detail::Forwarding<M>(model), guesses_(std::move(guesses)) {}

  bool proposes() const { return true; }
  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    this->model_.start(sources, slots);
  }
  void release(std::span<Slot const> slots) { sluice::detail::release(this->model_, slots); }
  decltype(auto) step(std::span<Row const> rows) { return this->model_.step(rows); }
  void propose(std::span<Draft const> drafts) {
    for (auto const& draft : drafts) {
      REQUIRE(given < guesses_.size());
      auto const& guess = guesses_[given++];
      CHECK(std::ranges::equal(draft.pending, guess.pending));
      *draft.tokens = guess.tokens;
      if (draft.tree != nullptr) draft.tree->parents = guess.parents;
    }
  }
  std::size_t given = 0;

 private:
  std::vector<Guessed> guesses_;
};

std::size_t rounds(std::vector<Result> const& results) {
  std::size_t sum = 0;
  for (auto const& result : results)
    if (!result.hypotheses.empty()) sum += result.hypotheses.front().blocks.size();
  return sum;
}

/// A model whose sources are texts, and that is never run.
struct Unread {
  using Source = Text;
  static constexpr Abilities abilities = with_trees;
  static Vocabulary vocabulary() { return {.size = 100, .bos = bos, .eos = {eos}}; }
  void start(std::span<Source const* const>, std::span<Slot const>) {}
  Scores<float> step(std::span<Row const>) { return {}; }
};

/// The guesses for one text, of a sentence whose source is empty.
struct Asked {
  Text tokens{};
  std::vector<std::int32_t> parents{};
};
template <class M>
Asked ask(M& model, Text const& pending, std::int32_t count, std::int32_t leaves = 1, bool remember = true,
          Text const& source = {}) {
  std::array const sources{&source};
  std::array const slots{Slot{0}};
  model.start(sources, slots);
  Asked asked;
  DraftTree tree{.nodes = 100, .leaves = leaves};
  Draft const draft{.pending = pending,
                    .count = count,
                    .tokens = &asked.tokens,
                    .tree = leaves > 1 ? &tree : nullptr,
                    .remember = remember};
  model.propose(std::span(&draft, 1));
  model.release(slots);
  asked.parents = tree.parents;
  return asked;
}

}  // namespace

TEST_CASE("suffix decoding gives greedy's output, bit for bit, whatever is remembered", "[with_suffix_cache]") {
  std::mt19937_64 random(1);
  std::size_t first = 0, later = 0;
  for (int round = 0; round < 25; ++round) {
    Table const table{.size = static_cast<std::int32_t>(6 + random() % 6),
                      .scale = 5,
                      .eos_bias = -2,
                      .eos_slope = 0.2,
                      .order = static_cast<std::int32_t>(random() % 4) - 1};
    LengthLimits const length{.max = static_cast<std::int32_t>(5 + random() % 20)};
    auto const seed = random();
    auto const greedy = run<everything>(table, requests_of<Greedy>(seed, 20), Greedy{.length = length});
    SuffixCache cache(4096 + static_cast<std::int64_t>(random() % 4096), static_cast<std::int32_t>(1 + random() % 12));
    SuffixDecoding::Options const options{.shortest = static_cast<std::int32_t>(1 + random() % 2),
                                          .factor = random() % 2 == 0 ? 1.0 : 3.0,
                                          .least = 0.1 * static_cast<double>(random() % 6),
                                          .samples = static_cast<std::int32_t>(1 + random() % 8),
                                          .own = random() % 2 == 0};
    for (int again = 0; again < 4; ++again) {
      Target model(TableModel<with_trees>(table), again % 2 == 0 ? with_trees : everything);
      Speculated remembering(model, SuffixDecoding(cache, options));
      Blockwise<> const search{.block = static_cast<std::int32_t>(2 + random() % 6),
                               .length = length,
                               .adaptive = random() % 4 == 0,
                               .branches = static_cast<std::int32_t>(1 + random() % 4)};
      auto const requests = requests_of<Blockwise<>>(seed, 20);
      auto const results = again < 2 ? decode(remembering, requests, search, Batched{1 + random() % 7})
                                     : decode(remembering, requests, search, Streaming{.size = 1 + random() % 7});
      for (std::size_t i = 0; i < results.size(); ++i) CHECK(same_outputs(results[i], greedy[i]));
      CHECK(model.report() == "");
      if (again == 0) first += rounds(results);
      if (again == 3) later += rounds(results);
    }
    CHECK(cache.tokens() > 0);
  }
  CHECK(later * 5 < first * 4);
}

TEST_CASE("suffix decoding gives the output of Sample", "[with_suffix_cache]") {
  Table const table{.size = 9, .scale = 3, .eos_bias = -2, .eos_slope = 0.2};
  LengthLimits const length{.max = 20};
  auto const sampled = run<everything>(table, requests_of<Sample>(5, 20), Sample{.length = length});
  SuffixCache cache(1 << 16);
  for (int again = 0; again < 2; ++again) {
    TableModel<with_trees> model(table);
    Speculated remembering(model, SuffixDecoding(cache));
    Blockwise<acceptance::Sampling> const search{.block = 6, .length = length};
    auto const results = decode(remembering, requests_of<Blockwise<acceptance::Sampling>>(5, 20), search, Batched{4});
    for (std::size_t i = 0; i < results.size(); ++i) CHECK(same_outputs(results[i], sampled[i]));
  }
}

TEST_CASE("under rejection, what is remembered does not change the distribution", "[with_suffix_cache]") {
  // Whatever a cache holds when a text is drawn, the text has the model's distribution: so texts are independent, and none tells
  // from a guess what the next one will be.
  Table const table{.size = 6, .scale = 2, .order = 1, .has_eos = false};
  constexpr std::size_t texts = 20000, length = 5, outputs = 243;
  std::vector<double> expected(outputs);
  for (std::size_t cell = 0; cell < outputs; ++cell) {
    Text text;
    for (std::size_t n = 0, rest = cell; n < length; ++n, rest /= 3)
      text.insert(text.begin(), static_cast<Token>(3 + rest % 3));
    std::vector<double> line(6);
    double log_prob = 0;
    for (std::size_t n = 0; n < length; ++n) {
      table.log_probs(1, std::span(text).first(n), line);
      log_prob += line[static_cast<std::size_t>(text[n])];
    }
    expected[cell] = std::exp(log_prob);
  }
  for (auto const branches : {1, 3}) {
    INFO(branches);
    TableModel<with_trees> model(table);
    SuffixCache cache(1 << 16, 8);
    Speculated remembering(model, SuffixDecoding(cache, {.factor = 3}));
    Blockwise<acceptance::Rejection> const search{
        .block = 4, .length = {.max = static_cast<std::int32_t>(length)}, .branches = branches};
    std::vector<TableRequest<Blockwise<acceptance::Rejection>>> requests(texts);
    for (std::size_t i = 0; i < texts; ++i) requests[i].source = 1, requests[i].seed = derive(11, i);
    auto const results = decode(remembering, requests, search, Batched{5});
    std::vector<std::int64_t> counts(outputs);
    for (auto const& result : results) {
      std::size_t cell = 0;
      for (auto const token : result.hypotheses.at(0).tokens) cell = cell * 3 + static_cast<std::size_t>(token - 3);
      ++counts.at(cell);
    }
    check_distribution(counts, expected, 100);
    CHECK(rounds(results) * 5 < texts * length * 4);  // guesses were accepted
  }
}

TEST_CASE("a relaxed rule keeps of the cache's guesses what it keeps of the same guesses from elsewhere",
          "[with_suffix_cache]") {
  std::mt19937_64 random(12);
  std::size_t relaxed = 0, accepted = 0;
  for (int round = 0; round < 30; ++round) {
    Table const table{.size = 9, .scale = 3, .eos_bias = -2, .eos_slope = 0.2, .order = round % 2};
    std::int32_t const n = 2 + round % 2;
    Blockwise<acceptance::TopK> const search{
        .block = 5, .accept = {.n = n}, .length = {.max = 20}, .branches = static_cast<std::int32_t>(1 + random() % 3)};
    auto const requests = requests_of<Blockwise<acceptance::TopK>>(random(), 20);
    auto const batch = 1 + random() % 5;
    SuffixCache cache(1 << 16);
    std::vector<Guessed> guesses;
    Target model(TableModel<with_trees>(table), with_trees);
    Speculated remembering(model, SuffixDecoding(cache, {.factor = 3}));
    for (int i = 0; i < 50; ++i) {  // of another model
      Text noise(10);
      for (auto& token : noise) token = static_cast<Token>(3 + random() % 6);
      cache.insert({}, noise);
    }
    Looking looking(remembering, [&](Draft const& draft, std::span<Token const>, std::uint64_t) {
      guesses.push_back({{draft.pending.begin(), draft.pending.end()},
                         *draft.tokens,
                         draft.tree != nullptr ? draft.tree->parents : std::vector<std::int32_t>{}});
    });
    auto const results = decode(looking, requests, search, Batched{batch});
    CHECK(model.report() == "");
    REQUIRE(guesses.size() > 20);
    TableModel<with_trees> same(table);
    Given given(same, guesses);
    auto const expected = decode(given, requests, search, Batched{batch});
    CHECK(given.given == guesses.size());
    for (std::size_t i = 0; i < results.size(); ++i) CHECK(identical(results[i], expected[i]));
    // All tokens are among the n best, and some are not the best.
    std::vector<double> line(9);
    for (std::size_t i = 0; i < results.size(); ++i) {
      REQUIRE(results[i].ok());
      auto const& h = results[i].hypotheses[0];
      accepted += h.tokens.size() - requests[i].prefix.size() - h.blocks.size();
      Text context;
      if (!requests[i].prompt.empty()) context.assign(requests[i].prompt.begin() + 1, requests[i].prompt.end());
      for (std::size_t t = 0; t < h.tokens.size(); ++t) {
        table.log_probs(requests[i].source, context, line);
        auto const own = line[static_cast<std::size_t>(h.tokens[t])];
        auto const better = std::count_if(line.begin(), line.end(), [&](double x) { return x > own; });
        if (t >= requests[i].prefix.size()) {
          CHECK(better < n);
          relaxed += better > 0;
        }
        context.push_back(h.tokens[t]);
      }
    }
  }
  CHECK(relaxed > 300);
  CHECK(accepted > 500);
}

TEST_CASE("a request that does not share leaves nothing and gets nothing", "[with_suffix_cache]") {
  Table const table{.size = 9, .scale = 4, .eos_bias = -3, .eos_slope = 0.1};
  Blockwise<> const search{.block = 6, .length = {.max = 20}};
  auto shared = requests_of<Blockwise<>>(3, 20);
  auto alone = shared;
  for (auto& request : alone) request.remember = false;
  auto const decoded = [&](SuffixCache& cache, auto const& requests) {
    TableModel<with_trees> model(table);
    Speculated remembering(model, SuffixDecoding(cache));
    return decode(remembering, requests, search, Batched{5});
  };
  SuffixCache cache(1 << 16), empty(1 << 16), nobody(1 << 16);
  decoded(cache, shared);
  auto const before = contents(cache);
  auto const found = decoded(cache, alone);
  CHECK(contents(cache) == before);  // nothing new, and no text was used
  auto const expected = decoded(empty, alone);
  CHECK(contents(empty) == contents(nobody));
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(identical(found[i], expected[i]));  // in the same blocks, too
  CHECK(rounds(decoded(cache, shared)) * 3 < rounds(found) * 2);

  // Mixed in a batch: those that do not share run as they do alone, and only the others are stored.
  auto mixed = shared;
  for (std::size_t i = 0; i < mixed.size(); i += 2) mixed[i].remember = false;
  SuffixCache half(1 << 16);
  auto const results = decoded(half, mixed);
  for (std::size_t i = 0; i < results.size(); i += 2) CHECK(identical(results[i], expected[i]));
  CHECK(half.texts() == 10);
}

TEST_CASE("any search's outputs are remembered, failures are not", "[with_suffix_cache]") {
  Table const table{.size = 9, .scale = 4, .broken = [](std::uint64_t seed) { return seed == 1; }};
  SuffixCache cache(1 << 16);
  TableModel<with_trees> model(table);
  Speculated remembering(model, SuffixDecoding(cache));
  AnyModel<std::uint64_t> any(&remembering);
  BeamSearch const search{.width = 3, .length = {.max = 10}};
  auto const results = decode(any, std::vector<std::uint64_t>{0, 1, 2}, search, Batched{2});
  CHECK(results[1].failure == Failure::not_a_number);
  CHECK(cache.texts() == 2);
  for (auto const i : {0u, 2u}) {
    auto const& tokens = results[i].hypotheses.at(0).tokens;
    Text before{bos};
    before.insert(before.end(), tokens.begin(), tokens.end() - 1);
    CHECK(cache.count(before) == 1);
  }
}

TEST_CASE("a guess is as long as its beginnings were frequent", "[with_suffix_cache]") {
  Unread model;
  SuffixCache cache(1 << 16);
  Speculated guessing(model, SuffixDecoding(cache, {.least = 0.5, .own = false}));
  CHECK(ask(guessing, {4, 5}, 8).tokens.empty());
  cache.insert({}, Text{4, 5, 6, 7, 8, 9, 10, 11});
  CHECK(ask(guessing, {4, 5}, 8).tokens == Text{6, 7});  // no longer than the match
  CHECK(ask(guessing, {3, 4, 5, 6}, 8).tokens == Text{7, 8, 9});
  CHECK(ask(guessing, {4, 5, 6}, 2).tokens == Text{7, 8});
  CHECK(ask(guessing, {4, 5, 6}, 8, 1, false).tokens.empty());
  CHECK(ask(guessing, {9, 10}, 8).tokens == Text{11});
  CHECK(ask(guessing, {11}, 8).tokens.empty());
  Speculated far(model, SuffixDecoding(cache, {.factor = 10, .least = 0.5, .own = false}));
  cache.insert({}, Text{4, 5, 6, 7, 20, 21});
  cache.insert({}, Text{4, 5, 6, 30, 31});
  CHECK(ask(far, {4, 5}, 8).tokens == Text{6, 7});  // all go on with 6, two of three with 7, one with 8
  cache.insert({}, Text{4, 5, 6, 30, 31});
  cache.insert({}, Text{4, 5, 6, 30, 31});
  CHECK(ask(far, {4, 5}, 8).tokens == Text{6, 30, 31});
  CHECK(ask(far, {7, 4, 5}, 8).tokens == Text{6, 30, 31});  // nothing matches all three
  CHECK(cache.count(Text{5, 6}) == 5);
}

TEST_CASE("what follows is trusted less, the further it is", "[with_suffix_cache]") {
  std::array<Token, 4> const one{5, 6, 7, 8}, other{5, 6, 9, 9};
  std::array<std::span<Token const>, 2> const both{one, other};
  detail::FrequentPaths paths;
  detail::PathGuesses made;
  paths.find(std::span(both).first(1), {.depth = 3, .nodes = 9, .sure = 0.5}, made);
  CHECK(made.tokens == Text{5, 6, 7});
  CHECK(made.expected == 0.5 + 0.25 + 0.125);
  paths.find(both, {.depth = 3, .nodes = 9, .leaves = 2, .sure = 0.5}, made);
  CHECK(made.tokens == Text{5, 6, 7, 9});
  CHECK(made.expected == 0.5 + 0.25 + 0.5 * 0.125 + 0.5 * 0.125);
}

TEST_CASE("a shorter match is taken if it expects more", "[with_suffix_cache]") {
  Unread model;
  SuffixCache cache(1 << 16);
  Speculated guessing(model, SuffixDecoding(cache, {.factor = 10, .own = false}));
  cache.insert({}, Text{7, 4, 5, 6});  // the longer match ends soon
  cache.insert({}, Text{8, 4, 5, 9, 10, 11});
  cache.insert({}, Text{8, 4, 5, 9, 10, 11});
  CHECK(ask(guessing, {7, 4, 5}, 8).tokens == Text{9, 10, 11});  // 3 * 2/3, not 1
  CHECK(ask(guessing, {7, 4, 5}, 1).tokens == Text{6});          // 1, not 2/3
}

TEST_CASE("several continuations are a tree, the most frequent first", "[with_suffix_cache]") {
  Unread model;
  SuffixCache cache(1 << 16);
  Speculated guessing(model, SuffixDecoding(cache, {.factor = 10, .least = 0.1, .own = false}));
  for (int i = 0; i < 3; ++i) cache.insert({}, Text{4, 5, 6});
  for (int i = 0; i < 2; ++i) cache.insert({}, Text{4, 7, 8});
  cache.insert({}, Text{4, 7, 9});
  auto const asked = ask(guessing, {4}, 4, 4);
  CHECK(asked.tokens == Text{5, 7, 6, 8, 9});
  CHECK(asked.parents == std::vector<std::int32_t>{-1, -1, 0, 1, 1});
  auto const two = ask(guessing, {4}, 4, 2);
  CHECK(two.tokens == Text{5, 7, 6, 8});
  CHECK(ask(guessing, {4}, 4).tokens == Text{5, 6});
}

TEST_CASE("the sentence's own text and source are looked into", "[with_suffix_cache]") {
  Unread model;
  SuffixCache cache(1 << 16);
  Speculated guessing(model, SuffixDecoding(cache));
  CHECK(ask(guessing, {bos, 4, 5, 6, 4, 5}, 8, 1, false).tokens == Text{6, 4});
  CHECK(ask(guessing, {bos, 21, 22}, 8, 1, false, {20, 21, 22, 23, 24, 25}).tokens == Text{23, 24});
  CHECK(ask(guessing, {bos, 24, 25}, 8, 1, false, {20, 24, 25}).tokens.empty());  // a source ends
  Speculated without(model, SuffixDecoding(cache, {.own = false}));
  CHECK(ask(without, {bos, 4, 5, 6, 4, 5}, 8).tokens.empty());
  cache.insert(Text{90, 91, 92, bos}, Text{40, 41, 42, 43, 44, eos});
  CHECK(ask(without, {bos}, 9, 1, true, {90, 91, 92}).tokens ==
        Text{40, 41, 42, 43});  // the same source: a match of four
}

TEST_CASE("whoever expects more makes the guesses", "[with_suffix_cache]") {
  Table const table{.size = 12, .scale = 6, .eos_bias = -8, .eos_slope = 0.2};
  Blockwise<> const search{.block = 5, .length = {.max = 30}};
  std::vector<std::uint64_t> sources(12);
  std::iota(sources.begin(), sources.end(), 0);
  auto const rounds_of = [&](auto& model) { return rounds(decode(model, sources, search, Batched{3})); };
  TableModel<with_trees> model(table), same(table);
  Speculated perfect(model, DraftModel(same));
  auto const best = rounds_of(perfect);
  SuffixCache cache(1 << 16), same_noise(1 << 16);
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; ++i) {  // whatever was decoded last, something always followed
    Text noise(10);
    for (auto& token : noise) token = static_cast<Token>(3 + random() % 9);
    cache.insert({}, noise), same_noise.insert({}, noise);
  }
  Speculated both(perfect, SuffixDecoding(cache));
  Speculated alone(model, SuffixDecoding(same_noise));
  auto const noisy = rounds_of(both);
  CHECK(noisy * 2 < rounds_of(alone));
  CHECK(noisy * 3 < best * 4);
  // A useless draft, and a cache that knows all: the cache is asked.
  Table const other{.size = 12, .scale = 6, .eos_bias = -8, .order = 0};
  TableModel<with_trees> wrong(other);
  Speculated useless(model, DraftModel(wrong));
  auto const worst = rounds_of(useless);
  Speculated knowing(useless, SuffixDecoding(cache));
  CHECK(rounds_of(knowing) * 2 < worst);
}

TEST_CASE("bad options, and a cache of another model, are refused", "[with_suffix_cache]") {
  Unread model;
  SuffixCache cache(1 << 16);
  auto const made = [&](SuffixDecoding::Options const& options) { Speculated(model, SuffixDecoding(cache, options)); };
  CHECK_THROWS_WITH(made({.shortest = 0}), Equals("sluice: shortest = 0: must be at least 1"));
  CHECK_THROWS_WITH(made({.factor = 0}), Equals("sluice: factor = 0.000000: must be a number above 0"));
  CHECK_THROWS_WITH(made({.least = 1.5}), Equals("sluice: least = 1.500000: must be from 0 to 1"));
  CHECK_THROWS_WITH(made({.samples = 0}), Equals("sluice: samples = 0: must be at least 1"));
  cache.insert({}, Text{100});
  CHECK_THROWS_WITH(made({}),
                    Equals("sluice: SuffixDecoding: cache.largest_token() = 100: is outside the vocabulary of "
                           "100: the cache is of another model"));
}

TEST_CASE("a warm guess allocates nothing", "[with_suffix_cache]") {
  Unread model;
  SuffixCache cache(1 << 16);
  std::mt19937_64 random(4);
  for (int i = 0; i < 500; ++i) {
    Text text(40);
    for (auto& token : text) token = static_cast<Token>(3 + random() % 5);
    cache.insert({}, text);
  }
  Speculated guessing(model, SuffixDecoding(cache));
  Text const source{};
  std::array const sources{&source};
  std::array const slots{Slot{0}};
  Text tokens, pending{3, 4, 5, 3, 4, 5};
  DraftTree tree{.nodes = 20, .leaves = 4};
  std::size_t counted = 1;
  for (int round = 0; round < 50; ++round) {
    guessing.start(sources, slots);
    tokens.clear(), tree.clear();
    for (auto& token : pending) token = static_cast<Token>(3 + random() % 5);
    Draft const draft{.pending = pending, .count = 6, .tokens = &tokens, .tree = &tree};
    auto const before = allocations();
    guessing.propose(std::span(&draft, 1));
    counted = allocations() - before;
    CHECK(!tokens.empty());
  }
  CHECK(counted == 0);
}

// SPDX-License-Identifier: Apache-2.0
// Blocks over models that lack the required abilities, and over models that encode ahead.
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/model/restarting.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/draft_model.hpp>
#include <sluice/speculative/heads.hpp>
#include <sluice/speculative/prompt_lookup.hpp>

#include <support/decoding.hpp>
#include <support/encoding_table.hpp>
#include <support/guessing.hpp>
#include <support/times.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

Table const table{.size = 11, .scale = 5, .eos_bias = -2, .eos_slope = 0.3};
Table const other{.size = 11, .scale = 2, .eos_bias = -2, .eos_slope = 0.3, .order = 1};
LengthLimits const length{.max = 18};

/// Calls f with a model that takes blocks and rolls back, built from `model`, which claims A.
template <Abilities A, class M, class F>
void complete(M& model, F&& f) {
  auto const with_blocks = [&](auto& inner) {
    if constexpr (A.blocks) {
      f(inner);
    } else {
      TokenByToken outer(inner);
      f(outer);
    }
  };
  if constexpr (A.roll_back) {
    with_blocks(model);
  } else {
    Restarting inner(model);
    with_blocks(inner);
  }
}

/// A table whose scores are the hidden vectors of an identity projection.
struct EncodingHidden {
  using Source = std::uint64_t;
  using Encoded = std::vector<std::uint64_t>;
  static constexpr Abilities abilities = everything;
  TableModel<everything> model{table};
  std::size_t encoded_sentences = 0;

  Vocabulary vocabulary() const { return model.vocabulary(); }
  Encoded encode(std::span<Source const* const> sources) const {
    Encoded encoded;
    for (auto const* source : sources) encoded.push_back(*source);
    return encoded;
  }
  void start(std::span<Source const* const> sources, std::span<Slot const> slots) { model.start(sources, slots); }
  void start(Encoded& encoded, std::span<std::int32_t const> items, std::span<Slot const> slots) {
    std::vector<Source const*> sources;
    for (auto const item : items) sources.push_back(&encoded[static_cast<std::size_t>(item)]);
    encoded_sentences += items.size();
    model.start(sources, slots);
  }
  Hidden<float> step(std::span<Row const> rows) {
    auto const answer = model.step(rows);
    return hidden(answer.data, answer.rows, answer.columns);
  }
};

/// Hidden vectors are scores.
struct Unchanged {
  LogSoftmaxTopK expander{};
  auto expand(Hidden<float> const& h, std::span<Query const> queries, std::span<Group const> groups) {
    return expander.expand(scores(h.data, h.rows, h.columns), queries, groups);
  }
};

/// Heads that predict what the model predicts now.
struct Repeating {
  std::int32_t size() const { return 3; }
  void apply(std::int32_t, MatrixView<float const> h, MatrixView<float> z) const {
    for (std::ptrdiff_t i = 0; i < h.rows; ++i) std::ranges::copy(h[i], z[i].begin());
  }
};

/// A model that repeats its source.
struct Echo {
  using Source = std::vector<Token>;
  using Encoded = std::vector<Source>;
  static constexpr Abilities abilities = everything;
  std::vector<Source> held{};
  std::vector<float> line{};
  std::size_t steps = 0;
  Vocabulary vocabulary() const { return {.size = 40, .bos = bos, .eos = {eos}, .never = {pad, bos}}; }
  static Encoded encode(std::span<Source const* const> sources) {
    Encoded encoded;
    for (auto const* source : sources) encoded.push_back(*source);
    return encoded;
  }
  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) put(*sources[i], slots[i]);
  }
  void start(Encoded& encoded, std::span<std::int32_t const> items, std::span<Slot const> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) put(encoded[static_cast<std::size_t>(items[i])], slots[i]);
  }
  void put(Source const& source, Slot slot) {
    held.resize(std::max(held.size(), static_cast<std::size_t>(slot) + 1));
    held[static_cast<std::size_t>(slot)] = source;
  }
  Scores<float> step(std::span<Row const> rows) {
    ++steps, line.clear();
    for (auto const& row : rows)
      for (auto i = row.tokens.size() - static_cast<std::size_t>(row.lines); i < row.tokens.size(); ++i) {
        auto const& source = held[static_cast<std::size_t>(row.from)];
        auto const n = static_cast<std::size_t>(row.length) + i;
        line.resize(line.size() + 40);
        line[line.size() - 40 + static_cast<std::size_t>(n < source.size() ? source[n] : eos)] = 9;
      }
    return scores(line.data(), std::ssize(line) / 40, 40);
  }
};

std::vector<Intake> const intakes{{}, {.encode_ahead = 5}, {.window = 7, .encode_ahead = 9, .encoder_thread = false}};

template <class Source>
Source source_of(std::uint64_t seed) {
  if constexpr (std::is_integral_v<Source>) return seed;
  else return Source(seed, static_cast<std::int32_t>(seed % 9));
}

/// Checks that blocks over `model` equal greedy decoding of the table.
template <class M, class E = LogSoftmaxTopK>
void check_intakes(M& model, E const& expander = {}) {
  using Source = typename M::Source;
  static_assert(EncodingModel<M>);
  for (auto const& intake : intakes) {
    Decoder decoder(model, Blockwise<>{.block = 5, .length = length}, Streaming{.size = 4, .refill_below = 1}, expander,
                    NoTrace{}, intake);
    for (std::uint64_t seed = 0; seed < 40; ++seed) decoder.submit({.source = source_of<Source>(seed)});
    while (decoder.step()) {
    }
    std::size_t count = 0;
    for (Result result; decoder.poll(result); ++count)
      CHECK(same_outputs(result, run_one(table, result.id, Greedy{.length = length})));
    CHECK(count == 40);
  }
}

}  // namespace

static_assert(sluice::abilities<TokenByToken<Restarting<TableModel<>>>>() ==
              Abilities{.blocks = true, .roll_back = true});
static_assert(!EncodingModel<TokenByToken<TableModel<>>> &&
              !EncodingModel<Speculated<TableModel<everything>, PromptLookup>>);
TEST_CASE("blocks run over any model, started again and fed token by token", "[blockwise]") {
  for_pairs_of_abilities([]<Abilities A>() {
    std::mt19937_64 random(5);
    for (int round = 0; round < times(40); ++round) {
      std::vector<TableRequest<Blockwise<>>> requests(9);
      std::vector<TableRequest<Greedy>> plain_requests(9);
      for (std::size_t i = 0; i < requests.size(); ++i) {
        requests[i].source = plain_requests[i].source = random();
        if (random() % 3 == 0) requests[i].prefix = plain_requests[i].prefix = {3, 4, 5};
      }
      auto const expected = run(table, plain_requests, Greedy{.length = length});
      CheckedTable<A> model{TableModel<everything>(table)};
      TableModel<everything> small(random() % 2 == 0 ? table : other);
      complete<A>(model, [&](auto& able) {
        Speculated drafted(able, DraftModel(small));
        Guessing guessing(drafted, random() % 2 == 0 ? Guesses::as_they_are : Guesses::corrupted, random());
        Blockwise<> const search{.block = static_cast<std::int32_t>(1 + random() % 6), .length = length};
        auto const check = [&](std::vector<Result> const& found) {
          for (std::size_t i = 0; i < found.size(); ++i) CHECK(same_outputs(found[i], expected[i]));
        };
        check(decode(guessing, requests, search, Batched{.size = 1 + random() % 9}));
        check(decode(guessing, requests, search, Streaming{.size = 1 + random() % 5}));
      });
      CHECK(model.report() == "");
    }
  });
}

TEST_CASE("a block fed token by token takes as many calls as it is long", "[blockwise]") {
  CheckedTable<Abilities{.ragged = true, .roll_back = true}> model{TableModel<everything>(table)};
  TokenByToken blocks(model);
  std::uint64_t const source = 4;
  std::vector<std::uint64_t const*> const sources{&source, &source};
  std::vector<Slot> const slots{0, 1};
  blocks.start(std::span<std::uint64_t const* const>(sources), std::span<Slot const>(slots));
  std::vector<Token> const longer{bos, 3, 4, 5}, shorter{bos, 6};
  std::vector<Row> const rows{{0, 0, 0, longer, 3}, {1, 1, 0, shorter, 1}};
  auto const answer = blocks.step(std::span<Row const>(rows));
  CHECK(model.counters().steps == 4);
  CHECK(model.counters().rows == 6);
  REQUIRE(answer.rows == 4);
  std::vector<Token> const texts[]{{3}, {3, 4}, {3, 4, 5}, {6}};
  std::vector<double> line(static_cast<std::size_t>(table.size));
  for (std::ptrdiff_t i = 0; i < 4; ++i) {
    table.log_probs(source, texts[i], line);
    for (Token token = eos; token < table.size; ++token) {
      auto const t = static_cast<std::size_t>(token);
      CHECK(static_cast<double>(answer[i][t]) - static_cast<double>(answer[i][eos]) ==
            Approx(line[t] - line[eos]).margin(1e-4));
    }
  }
}

TEST_CASE("who guesses lets its model encode ahead", "[blockwise]") {
  EncodingTable<everything> looked_up(table), large(table), small(other);
  Speculated lookup(looked_up, PromptLookup());
  check_intakes(lookup);
  CHECK(looked_up.counts().encoded == 80);
  CHECK(looked_up.counts().from_encoded == 80);
  Speculated draft(large, DraftModel(small));
  check_intakes(draft);
  CHECK(large.counts().encoded == 80);
  CHECK(small.counts().from_encoded == 80);
  CHECK(small.counts().broken + large.counts().broken + looked_up.counts().broken == 0);
  EncodingTable<everything> in_front(table), behind(other);
  Speculated both(in_front, PromptLookup(), DraftModel(behind));
  check_intakes(both);
  CHECK(in_front.counts().encoded == 80);
  CHECK(behind.counts().from_encoded == 80);
  CHECK(in_front.counts().broken + behind.counts().broken == 0);
  EncodingHidden hidden_model;
  Repeating heads;
  Speculated headed(hidden_model, DraftHeads(heads, Unchanged{}));
  check_intakes(headed, Unchanged{});
  CHECK(hidden_model.encoded_sentences == 80);
}

TEST_CASE("sources that were encoded ahead are looked up", "[blockwise]") {
  Echo echo;
  Speculated lookup(echo, PromptLookup());
  Decoder decoder(lookup, Blockwise<>{.block = 8}, Batched{.size = 2}, LogSoftmaxTopK{}, NoTrace{},
                  Intake{.encode_ahead = 4});
  std::vector<std::vector<Token>> sources;
  std::mt19937_64 random(8);
  std::size_t tokens = 0;
  for (int i = 0; i < 10; ++i) {
    auto& source = sources.emplace_back(static_cast<std::size_t>(20));
    for (auto& token : source) token = static_cast<Token>(3 + random() % 37);
    tokens += source.size() + 1;
    decoder.submit({.source = source});
  }
  while (decoder.step()) {
  }
  for (Result result; decoder.poll(result);) {
    auto expected = sources[result.id];
    expected.push_back(eos);
    CHECK(result.hypotheses.at(0).tokens == expected);
  }
  CHECK(echo.steps * 2 * 3 < tokens);  // two at a time
}

// SPDX-License-Identifier: Apache-2.0
// What a model attaches to lines comes back with the tokens that were chosen from them, whatever the search did meanwhile.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/model/any_model.hpp>
#include <sluice/model/checked.hpp>
#include <sluice/model/detail/slot_tokens.hpp>
#include <sluice/model/restarting.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/exact_search.hpp>
#include <sluice/search/forced_score.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/search/stochastic_beam.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/prompt_lookup.hpp>

#include <support/catch.hpp>
#include <support/cell_model.hpp>
#include <support/decoding.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

Table const table{.size = 9, .scale = 5, .eos_bias = -2, .eos_slope = 0.3};

/// Numbers that tell which source and tokens they are of, more of them after some texts than after others.
std::vector<float> mark(std::uint64_t seed, std::span<Token const> held) {
  auto key = hash_mix(seed + 7);
  for (auto const token : held) key = hash_mix(key + static_cast<std::uint64_t>(token) + 1);
  std::vector<float> numbers(1 + key % 4);
  for (auto& number : numbers) number = static_cast<float>((key = hash_mix(key)) % 100000);
  return numbers;
}

/// A model that attaches a mark to each line.
template <class M>
class Marking {
 public:
  using Source = typename M::Source;

  explicit Marking(M model, Abilities able = sluice::abilities<M>()) : model_(std::move(model)), able_(able) {}
  Abilities abilities() const { return able_; }
  Vocabulary const& vocabulary() const { return model_.vocabulary(); }
  Limits limits() const { return model_.limits(); }
  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      held_.clear(slots[i]);
      seed(slots[i]) = seed_of(*sources[i]);
    }
    model_.start(sources, slots);
  }
  void release(std::span<Slot const> slots) {
    if constexpr (ReleasingModel<M>) model_.release(slots);
  }
  auto step(std::span<Row const> rows) {
    for (auto const& row : rows) {
      auto const from = seed(row.from);
      seed(row.to) = from;
    }
    held_.apply(rows);
    lines_.clear(), widths_.clear();
    for (auto const& row : rows)
      for (auto i = std::ssize(row.tokens) - row.lines; i < std::ssize(row.tokens); ++i)
        lines_.push_back(mark(seed(row.to), held_[row.to].first(static_cast<std::size_t>(row.length + i + 1))));
    numbers_.assign(lines_.size() * 4, -1);
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      std::ranges::copy(lines_[i], numbers_.begin() + static_cast<std::ptrdiff_t>(4 * i));
      widths_.push_back(width > 0 ? width : static_cast<std::int32_t>(lines_[i].size()));
    }
    return model_.step(rows);
  }
  Attachments attachments() {
    return {{numbers_.data(), std::ssize(lines_) + too_many, 4, 4}, std::span(widths_).first(widths_.size() - missing)};
  }

  std::ptrdiff_t too_many = 0;
  std::size_t missing = 0;
  std::int32_t width = 0;  // of all lines; 0: their own

 private:
  static std::uint64_t seed_of(std::uint64_t source) { return source; }
  static std::uint64_t seed_of(EmptySource) { return 5; }
  std::uint64_t& seed(Slot slot) {
    auto const i = static_cast<std::size_t>(slot);
    if (i >= seeds_.size()) seeds_.resize(i + 1);
    return seeds_[i];
  }

  M model_;
  Abilities able_;
  detail::SlotTokens held_;
  std::vector<std::uint64_t> seeds_;
  std::vector<std::vector<float>> lines_;
  std::vector<float> numbers_;
  std::vector<std::int32_t> widths_;
};
using MarkingTable = Marking<TableModel<everything>>;

/// Whether every token has the mark of the line that it was chosen from.
void check_marks(Result const& result, std::uint64_t seed, std::vector<Token> text) {
  INFO(name(result.failure) << ": " << result.message);
  REQUIRE(result.ok());
  if (text.empty()) text = {bos};
  auto const prompt = text.size();
  for (auto const& hypothesis : result.hypotheses) {
    REQUIRE(hypothesis.attached.size() == hypothesis.tokens.size());
    text.resize(prompt);
    for (std::size_t i = 0; i < hypothesis.tokens.size(); ++i) {
      CHECK(hypothesis.attached[i] == mark(seed, text));
      text.push_back(hypothesis.tokens[i]);
    }
  }
}

/// Under every set of abilities that the search can do with, under both schedules, with prompts and prefixes.
template <class S>
void check_search(S const& search) {
  for (int able = 0; able < 8; ++able) {
    Abilities const abilities{.ragged = (able & 1) != 0, .blocks = (able & 2) != 0, .roll_back = (able & 4) != 0};
    MarkingTable model(TableModel<everything>(table), abilities);
    if constexpr (requires { S::needs; })
      if (!abilities.include(S::needs)) continue;
    INFO("abilities " << able);
    std::vector<TableRequest<S>> requests(7);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      requests[i].source = i + 3;
      requests[i].prompt.assign(i % 3, static_cast<Token>(3 + i % 5));
      requests[i].prefix.assign(i / 3, static_cast<Token>(4 + i % 3));
    }
    auto const check = [&](auto const& schedule) {
      auto const results = decode(model, requests, search, schedule);
      for (std::size_t i = 0; i < results.size(); ++i) check_marks(results[i], requests[i].source, requests[i].prompt);
    };
    check(Batched{.size = 4});
    check(Streaming{.size = 3, .refill_below = 1});
  }
}

}  // namespace

TEST_CASE("what a model attaches comes back under every search", "[attachments]") {
  LengthLimits const length{.max = 12};
  SECTION("greedy") { check_search(Greedy{.length = length}); }
  SECTION("beam") { check_search(BeamSearch{.width = 4, .n_best = 4, .length = length}); }
  SECTION("diverse") {
    check_search(DiverseBeamSearch{.search = {.width = 2, .n_best = 2, .length = length}, .groups = 2, .n_best = 4});
  }
  SECTION("samples") { check_search(Sample{.samples = 3, .length = length}); }
  SECTION("stochastic beam") { check_search(StochasticBeam{.width = 3, .length = length}); }
  SECTION("blocks") { check_search(Blockwise<>{.block = 3, .length = length}); }
  SECTION("exact") { check_search(ExactSearch{.length = {.max = 5}}); }
  SECTION("constraints") {
    check_search(ConstrainedBeamSearch<>{.beam = {.width = 4, .length = length},
                                         .constraints = Constraints({.all = {{3, 4}, {5}}})});
  }
}

TEST_CASE("wrappers pass on what is attached", "[attachments]") {
  std::vector<std::uint64_t> const sources{3, 4, 5, 6, 7};
  BeamSearch const search{.width = 3, .length = {.max = 12}};
  auto const check = [&](auto& model, auto const& how) {
    auto const results = decode(model, sources, how, Streaming{.size = 3});
    for (std::size_t i = 0; i < sources.size(); ++i) check_marks(results[i], sources[i], {});
  };
  MarkingTable plain_model(TableModel<everything>(table), Abilities{.ragged = true});
  Restarting rolls_back(plain_model);
  TokenByToken takes_blocks(rolls_back);
  check(takes_blocks, Blockwise<>{.block = 4, .length = {.max = 12}});
  {
    Speculated guesses(takes_blocks, PromptLookup());
    check(guesses, Blockwise<>{.block = 4, .length = {.max = 12}});
  }
  {
    Checked checked(plain_model);
    check(checked, search);
  }
  AnyModel<std::uint64_t> any(&plain_model);
  check(any, search);
  TableModel<everything> nothing(table);
  AnyModel<std::uint64_t> none(&nothing);
  CHECK(decode(none, sources, search)[0].hypotheses[0].attached.empty());
}

TEST_CASE("what is attached follows prompts that are shared and sentences that start again", "[attachments]") {
  Table const slow{.size = 9, .scale = 6, .eos_bias = -12, .eos_slope = 0.2};
  Marking<CellModel<everything>> model(CellModel<everything>(slow, 90, true));
  std::vector<Request<EmptySource, BeamSearch>> requests(12);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt.assign(20, 4);
    requests[i].prompt.push_back(static_cast<Token>(3 + i % 4));
    requests[i].prompt.push_back(static_cast<Token>(3 + i % 3));
  }
  std::vector<Result> results;
  auto const statistics = decode_each(
      model, requests, BeamSearch{.width = 3, .length = {.max = 20}},
      [&](Result&& result) { results.push_back(std::move(result)); }, Streaming{.size = 6}, LogSoftmaxTopK{},
      Intake{.prompt_chunk = 7, .shared_tokens = 100});
  CHECK(statistics.shared > 0);
  CHECK(statistics.restarted > 0);
  REQUIRE(results.size() == requests.size());
  for (std::size_t i = 0; i < results.size(); ++i) check_marks(results[i], 5, requests[i].prompt);
}

TEST_CASE("attachments of another shape than the lines are refused", "[attachments]") {
  auto const message = [](std::ptrdiff_t too_many, std::size_t missing, std::int32_t width = 0) {
    MarkingTable model{TableModel<everything>(table)};
    model.too_many = too_many, model.missing = missing, model.width = width;
    Decoder decoder(model, Greedy{});
    decoder.submit({.source = 1});
    try {
      while (decoder.step()) {
      }
    } catch (std::logic_error const& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  CHECK(message(1, 0) == "sluice: the model was asked for 1 lines and attaches 2");
  CHECK(message(0, 1) == "nothing was thrown");  // no widths: all columns
  CHECK(message(0, 0) == "nothing was thrown");
  CHECK(message(0, 0, 5) == "sluice: the model attaches a width of 5 among 4 columns");
}

TEST_CASE("a trace may want entropies, and changes nothing", "[trace]") {
  struct Curious {
    bool wanted = false;
    double sum = 0;
    std::size_t lines = 0;
    bool wants_entropy() const { return wanted; }
    void answered(StepPlan const& step, Expansion const& answer) {
      for (std::size_t i = 0; i < step.queries.size(); ++i, ++lines) {
        CHECK(step.queries[i].entropy == wanted);
        sum += static_cast<double>(answer[i].entropy);
      }
    }
  };
  TableModel<everything> model(table);
  auto const decoded = [&](bool wanted) {
    Decoder decoder(model, BeamSearch{.width = 3, .length = {.max = 12}}, Batched{}, LogSoftmaxTopK{},
                    Curious{.wanted = wanted});
    for (std::uint64_t source = 0; source < 5; ++source) decoder.submit({.source = source});
    while (decoder.step()) {
    }
    CHECK(decoder.trace().lines > 0);
    CHECK((decoder.trace().sum > 0) == wanted);
    std::vector<Result> results;
    for (Result result; decoder.poll(result);) results.push_back(result);
    return results;
  };
  auto const without = decoded(false), with = decoded(true);
  REQUIRE(without.size() == with.size());
  for (std::size_t i = 0; i < with.size(); ++i) CHECK(identical(without[i], with[i]));
}

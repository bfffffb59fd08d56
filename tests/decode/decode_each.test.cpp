// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/encoding_table.hpp>
#include <support/table_model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace each {

Table const table{.size = 12, .scale = 6, .eos_bias = -2, .eos_slope = 0.3};

/// Numbers 0 .. count - 1, each made when it is read; throws in the place of number `bad`.
class Numbers {
 public:
  class Iterator {
   public:
    using value_type = std::uint64_t;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;
    Iterator() = default;
    explicit Iterator(Numbers& from) : from_(&from) {}
    std::uint64_t operator*() const {
      if (from_->next_ == from_->bad_) throw std::runtime_error("line " + std::to_string(from_->next_) + " is broken");
      return from_->next_;
    }
    Iterator& operator++() {
      ++from_->next_;
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return from_->next_ == from_->count_; }

   private:
    Numbers* from_ = nullptr;
  };
  explicit Numbers(std::uint64_t count, std::uint64_t bad = ~std::uint64_t{0}) : count_(count), bad_(bad) {}
  Iterator begin() { return Iterator(*this); }
  static std::default_sentinel_t end() { return {}; }
  std::uint64_t read() const { return next_; }

 private:
  std::uint64_t count_, bad_, next_ = 0;
};

/// A table that notes which rows it was asked for.
class Noting : public TableModel<everything> {
 public:
  using TableModel::TableModel;
  Scores<float> step(std::span<Row const> rows) {
    auto& noted = steps.emplace_back();
    for (auto const& row : rows) noted.push_back(row.to * 1000 + row.length);
    return TableModel::step(rows);
  }
  std::vector<std::vector<Slot>> steps{};
};

}  // namespace each
using namespace each;

TEST_CASE("lazy inputs are read when they are wanted, and change nothing", "[decode_each]") {
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 0; i < 60; ++i) all.push_back(i);
  auto const check = [&](auto const& schedule, Intake const& intake) {
    Noting eager(table, TableOptions{.length_modulus = 7}), lazy(table, TableOptions{.length_modulus = 7});
    BeamSearch const search{.width = 2};
    auto const expected = decode(eager, all, search, schedule, {}, intake);
    Numbers numbers(60);
    std::uint64_t given = 0, ahead = 0;
    decode_each(
        lazy, numbers, search,
        [&](Result&& result) {
          CHECK(result.id == given);
          CHECK(identical(result, expected[given++]));
          ahead = std::max(ahead, numbers.read() - given);
        },
        schedule, {}, intake);
    CHECK(given == 60);
    CHECK(lazy.steps == eager.steps);
    return ahead;
  };
  CHECK(check(Batched{.size = 1}, {}) <= 1);
  CHECK(check(Batched{.size = 4}, {}) <= 5);
  CHECK(check(Batched{.size = 4}, {.window = 8}) <= 20);
  CHECK(check(Streaming{.size = 5, .refill_below = 1}, {}) <= 30);  // one sentence may take long: others pass it
  CHECK(check(Streaming{.size = 6, .refill = {.source_tokens = 20}}, {.window = 5}) < 60);
}

TEST_CASE("lazy inputs are encoded ahead as others are", "[decode_each]") {
  for (auto const& intake : {Intake{.encode_ahead = 6, .encode_group = 3},
                             Intake{.window = 4, .encode_ahead = 6, .encoder_thread = false}}) {
    EncodingTable<> model(table);
    std::vector<Result> results;
    auto sources = std::views::iota(0, 40) |
                   std::views::transform([](int i) { return HeapSource(static_cast<std::uint64_t>(i)); });
    decode_each(
        model, sources, Greedy{}, [&](Result&& result) { results.push_back(std::move(result)); }, Batched{.size = 3},
        {}, intake);
    REQUIRE(results.size() == 40);
    for (std::size_t i = 0; i < 40; ++i) CHECK(identical(results[i], run_one(table, i, Greedy{})));
    CHECK(model.counts().most_waiting <= 12);
    CHECK(model.counts().broken == 0);
  }
}

TEST_CASE("results come as sentences end, where that is asked for", "[decode_each]") {
  TableModel<everything> model(table);
  std::vector<std::uint64_t> order;
  decode_each(
      model, Numbers(40), Greedy{}, [&](Result&& result) { order.push_back(result.id); },
      Streaming{.size = 8, .refill_below = 1}, {}, {}, ResultOrder::ended);
  CHECK_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  REQUIRE(order.size() == 40);
  for (std::uint64_t i = 0; i < 40; ++i) CHECK(order[i] == i);
}

TEST_CASE("inputs that break off lose nothing that came before", "[decode_each]") {
  TableModel<everything> model(table);
  std::vector<Result> results;
  CHECK_THROWS_WITH(decode_each(
                        model, Numbers(40, 23), Greedy{},
                        [&](Result&& result) { results.push_back(std::move(result)); }, Batched{.size = 4}),
                    "line 23 is broken");
  REQUIRE(results.size() == 23);
  for (std::size_t i = 0; i < 23; ++i) CHECK(identical(results[i], run_one(table, i, Greedy{})));
}

TEST_CASE("a sink that throws ends the decoding", "[decode_each]") {
  CheckedTable<everything> model{TableModel<everything>(table)};
  auto given = 0;
  CHECK_THROWS_WITH(decode_each(
                        model, Numbers(40), Greedy{},
                        [&](Result&&) {
                          if (++given == 5) throw std::runtime_error("disk full");
                        },
                        Batched{.size = 4}),
                    "disk full");
  CHECK(given == 5);
  CHECK(model.report() == "");  // all slots came back
}

// SPDX-License-Identifier: Apache-2.0
// The caches of a device under decoders: what searches do with slots, and when they release them.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/model/detail/slot_tokens.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/speculative/blockwise.hpp>

#include <support/catch.hpp>
#include <support/emulated_caches.hpp>
#include <support/table_model.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr Abilities everything{.ragged = true, .blocks = true, .roll_back = true};

/// A table that keeps its tokens in both caches, too, and guesses some of them wrong.
class CachedTable : public TableModel<everything> {
 public:
  static constexpr std::int32_t most = 30;

  CachedTable(std::int32_t slots, std::int32_t width)
      : TableModel<everything>({.size = 12, .scale = 3}, {.limits = {.slot_count = slots, .length = most}}),
        indirection_({slots, most, width}),
        pages_({.elements_per_position = 4,
                .positions_per_page = 4,
                .max_pages = 8 * slots,
                .max_rows = slots,
                .max_length = most}) {}

  void release(std::span<Slot const> slots) {
    for (auto const slot : slots) pages_.books.release(slot), tokens_.clear(slot);
    released_.insert(released_.end(), slots.begin(), slots.end());
  }
  Scores<float> step(std::span<Row const> rows) {
    ++steps;
    tokens_.apply(rows);
    indirection_.step(device_, released_, rows, static_cast<std::uint64_t>(steps));
    released_.clear();
    pages_.step(rows, static_cast<std::uint64_t>(steps));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      forks += rows[i].from != rows[i].to;
      wrong += !indirection_.holds(rows[i].to, tokens_[rows[i].to]);
      wrong += !pages_.holds(static_cast<std::int32_t>(i), tokens_[rows[i].to]);
    }
    return TableModel<everything>::step(rows);
  }
  void propose(std::span<Draft const> drafts) {
    for (auto const& draft : drafts)
      for (std::int32_t i = 0; i < draft.count; ++i) draft.tokens->push_back(3 + static_cast<Token>(random_() % 3));
  }
  std::int32_t pages() const { return pages_.books.table().use().pages; }
  /// Whether the caches of the device never did anything that no answer shows.
  bool sane() const { return device_.failure() == "" && pages_.device.failure() == ""; }

  int steps = 0, forks = 0, wrong = 0;

 private:
  EmulatedDevice<EmulatedCache::threads> device_;
  EmulatedCache indirection_;
  EmulatedPages<float> pages_;
  detail::SlotTokens tokens_;
  std::vector<Slot> released_;
  std::mt19937 random_;
};

template <class S>
void check(CachedTable& model, S const& search) {
  std::vector<std::uint64_t> sources(15);
  std::iota(sources.begin(), sources.end(), std::uint64_t{1});
  auto const results = decode(model, sources, search, Streaming{.size = 3});
  for (auto const& result : results) CHECK(!result.hypotheses.empty());
  CHECK(model.steps > 20);
  CHECK(model.wrong == 0);
  CHECK(model.pages() == 0);
  CHECK(model.sane());
}

}  // namespace

TEST_CASE("the caches of a device follow a beam search", "[cuda]") {
  CachedTable model(12, 4);
  check(model, BeamSearch{.width = 4, .length = {.max = 20}});
  CHECK(model.forks > 50);
}

TEST_CASE("the caches of a device follow blocks and roll-backs", "[cuda]") {
  CachedTable model(3, 1);
  check(model, Blockwise<>{.block = 5, .length = {.max = 20}});
  CHECK(model.forks == 0);
}

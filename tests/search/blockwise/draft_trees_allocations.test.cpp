// SPDX-License-Identifier: Apache-2.0
#include <sluice/model/with_draft.hpp>
#include <sluice/search/blockwise/rejection.hpp>

#include <support/allocations.hpp>
#include <support/catch.hpp>
#include <support/table_model.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

using namespace sluice;
using namespace sluice::test;

TEST_CASE("a warm draft guesses trees without allocating", "[blockwise]") {
  using Model = TableModel<Abilities{.ragged = true, .blocks = true, .roll_back = true}>;
  Table const table{.size = 9, .scale = 4, .has_eos = false};
  for (auto const draws : {false, true}) {
    Model model(table), small(table);
    WithDraft<Model, Model, LogSoftmaxTopK, Rejection> drafted(model, small);
    std::uint64_t const source = 3;
    auto const* const pointer = &source;
    Slot const slot = 0;
    std::array const pending{bos};
    std::vector<Token> tokens;
    DraftTree tree{.nodes = 20, .leaves = 5, .draws = draws};
    std::size_t counted = 1;
    for (int round = 0; round < 3; ++round) {
      drafted.start(std::span(&pointer, 1), std::span(&slot, 1));
      tokens.clear(), tree.clear();
      Draft const draft{.pending = pending, .count = 4, .tokens = &tokens, .seed = 5, .tree = &tree};
      auto const before = allocations();
      drafted.propose(std::span(&draft, 1));
      counted = allocations() - before;
    }
    INFO((draws ? "drawn" : "a beam"));
    CHECK(tokens.size() >= 12);
    CHECK(counted == 0);
  }
}

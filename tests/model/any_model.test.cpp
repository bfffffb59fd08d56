// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/model/any_model.hpp>
#include <sluice/search/beam/beam_search.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Plain = AnyModel<std::uint64_t>;
using Able = AnyModel<std::uint64_t, Scores<float>, everything>;
static_assert(Model<Plain> && ReleasingModel<Plain>);
static_assert(sluice::abilities<Plain>() == Abilities{});
static_assert(sluice::abilities<Able>() == everything);
static_assert(!std::is_constructible_v<Plain, int>);
static_assert(!std::is_constructible_v<AnyModel<int>, TableModel<>>);                           // another source
static_assert(!std::is_constructible_v<AnyModel<std::uint64_t, Hidden<float>>, TableModel<>>);  // another answer
static_assert(!std::is_convertible_v<TableModel<>, Plain>);

}  // namespace

TEST_CASE("any_model decodes as the model that it holds", "[any_model]") {
  Table const table{.size = 15, .scale = 6, .eos_bias = -2};
  BeamSearch const search{.width = 4, .n_best = 2, .length = {.max_factor = 3}};
  TableOptions const options{.limits = {.slots = 8, .length = 9}, .length_modulus = 5};
  std::vector<TableRequest<BeamSearch>> requests;
  for (std::uint64_t i = 0; i < 20; ++i) requests.push_back({.source = i});
  requests[3].prompt = {bos, 4, 5};
  auto const expected = run(table, requests, search, Batched{}, options);

  auto const check_all = [&](auto& model) {
    auto const results = decode(model, requests, search);
    for (std::size_t i = 0; i < requests.size(); ++i) CHECK(identical(results[i], expected[i]));
  };
  SECTION("owned") {
    Plain model(TableModel<everything>(table, options));
    CHECK(model.limits().slots == 8);
    CHECK(model.source_length(3) == 4);
    CHECK(model.vocabulary().size == 15);
    check_all(model);
    auto moved = std::move(model);
    check_all(moved);
  }
  SECTION("borrowed") {
    CheckedTable<everything> checked(TableModel<everything>(table, options));
    Able model(&checked);
    check_all(model);
    CHECK(checked.report() == "");  // releases arrive
    CHECK(checked.counters().most_slots == 8);
  }
  SECTION("with fewer abilities than the model has") {
    CheckedTable<plain> checked(TableModel<everything>(table, options));
    Plain model(&checked);
    check_all(model);
    CHECK(checked.report() == "");
  }
}

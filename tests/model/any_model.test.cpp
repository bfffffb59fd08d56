// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/model/any_model.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/prompt_lookup.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/encoding_table.hpp>

#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Any = AnyModel<std::uint64_t>;
static_assert(Model<Any> && ReleasingModel<Any> && EncodingModel<Any> && ProposingModel<Any> &&
              !detail::KnownAbilities<Any>);
static_assert(!std::is_constructible_v<Any, int>);
static_assert(!std::is_constructible_v<AnyModel<int>, TableModel<>>);                           // another source
static_assert(!std::is_constructible_v<AnyModel<std::uint64_t, Hidden<float>>, TableModel<>>);  // another answer
static_assert(!std::is_convertible_v<TableModel<>, Any>);

}  // namespace

TEST_CASE("any_model decodes as the model that it holds", "[any_model]") {
  Table const table{.size = 15, .scale = 6, .eos_bias = -2};
  BeamSearch const search{.width = 4, .n_best = 2, .length = {.max_factor = 3}};
  TableOptions const options{.limits = {.slot_count = 8, .length = 9}, .length_modulus = 5};
  std::vector<TableRequest<BeamSearch>> requests;
  for (std::uint64_t i = 0; i < 20; ++i) requests.push_back({.source = i});
  requests[3].prompt = {bos, 4, 5};
  auto const expected = run(table, requests, search, Batched{}, options);

  auto const check_all = [&](auto& model) {
    auto const results = decode(model, requests, search);
    for (std::size_t i = 0; i < requests.size(); ++i) CHECK(identical(results[i], expected[i]));
  };
  SECTION("owned") {
    Any model(TableModel<everything>(table, options));
    CHECK(model.abilities() == everything);
    CHECK_FALSE((model.encodes() || model.proposes()));
    CHECK(model.limits().slot_count == 8);
    CHECK(model.source_length(3) == 4);
    CHECK(model.vocabulary().size == 15);
    check_all(model);
    auto moved = std::move(model);
    check_all(moved);
  }
  SECTION("borrowed") {
    CheckedTable<everything> checked(TableModel<everything>(table, options));
    Any model(&checked);
    check_all(model);
    CHECK(checked.report() == "");  // releases arrive
    CHECK(checked.counters().most_slots == 8);
  }
  SECTION("with fewer abilities than the model has") {
    CheckedTable<everything> checked(TableModel<everything>(table, options));
    Any model(&checked, plain);
    CHECK(model.abilities() == plain);
    check_all(model);
    CHECK(checked.report() == "");
    CHECK(checked.counters().tokens == checked.counters().rows);  // the prompt, too, came token by token
  }
  SECTION("not with more") { CHECK_THROWS_AS(Any(TableModel<plain>(table), everything), std::invalid_argument); }
}

TEST_CASE("what a search needs and a held model cannot do is refused when the decoder is made", "[any_model]") {
  Any model(TableModel<Abilities{.ragged = true, .blocks = true}>(Table{}));
  CHECK_THROWS_WITH(Decoder(model, Blockwise<>{}), Catch::Contains("this search rolls the model back"));
  Any least(TableModel<Abilities{.roll_back = true}>(Table{}));
  CHECK_THROWS_WITH(Decoder(least, Blockwise<>{}), Catch::Contains("feeds several tokens of a sentence at once"));
}

TEST_CASE("any_model passes guesses and encoding on", "[any_model]") {
  Table const table{.size = 12, .scale = 15, .eos_bias = -4, .order = 1};
  Blockwise<> const search{.block = 4, .length = {.max = 40}};
  std::vector<TableRequest<Blockwise<>>> requests;
  for (std::uint64_t i = 0; i < 10; ++i) requests.push_back({.source = i});
  TableModel<everything> first(table), second(table);
  Speculated plainly(first, PromptLookup()), held(second, PromptLookup());
  Any any(&held);
  CHECK(any.proposes());
  Decoder direct(plainly, search);
  Decoder erased(any, search);
  for (auto const& request : requests) direct.submit(request), erased.submit(request);
  Result a, b;
  while (direct.step()) {
  }
  while (erased.step()) {
  }
  while (direct.poll(a)) {
    REQUIRE(erased.poll(b));
    CHECK(identical(a, b));
  }
  CHECK(erased.statistics().steps == direct.statistics().steps);
  CHECK(erased.statistics().fed > erased.statistics().rows);  // it did guess

  EncodingTable<> encoding(table);
  AnyModel<HeapSource> encoded(&encoding);
  CHECK(encoded.encodes());
  std::vector<HeapSource> sources;
  for (std::uint64_t i = 0; i < 10; ++i) sources.emplace_back(i);
  auto const results = decode(encoded, sources, Greedy{}, Batched{.size = 3}, {}, Intake{.encode_ahead = 4});
  CHECK(encoding.counts().from_encoded == 10);
  for (std::size_t i = 0; i < 10; ++i) CHECK(identical(results[i], run_one(table, i, Greedy{})));

  TableModel<everything> plain_table(table);
  Any none(&plain_table);
  CHECK_THROWS_WITH(Decoder(none, Greedy{}, Batched{}, Intake{.encode_ahead = 4}), Catch::Contains("encode_ahead"));
}

// SPDX-License-Identifier: Apache-2.0
// OneOf beside each of its searches alone.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/best_first_beam.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/speculative/blockwise.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/table_model.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr LengthLimits length{.max = 9};
Greedy const greedy{.length = length};
BeamSearch const beam{.width = 3, .n_best = 2, .length = length};
Sample const sample{.samples = 2, .length = length};

using Any = OneOf<Greedy, BeamSearch, Sample, Blockwise<>>;
static_assert(DraftingSearch<Any> && SettlingSearch<Any> && !goes_back<Any>() && !detail::assumes_falling<Any>());
static_assert(!DraftingSearch<OneOf<Greedy, BeamSearch>>);
static_assert(goes_back<OneOf<Greedy, BestFirstBeam>>() && detail::assumes_falling<OneOf<Greedy, BestFirstBeam>>());

template <class S, class Chosen>
std::vector<Request<std::uint64_t, S>> requests(Chosen const& chosen) {
  std::vector<Request<std::uint64_t, S>> made;
  for (std::uint64_t i = 0; i < 12; ++i) {
    made.push_back({.source = i, .seed = i});
    if (i % 3 == 1) made.back().prefix = {4, 3};
    chosen(made.back(), i);
  }
  return made;
}

}  // namespace

TEST_CASE("each request has the result of the search that it chose", "[one_of]") {
  TableModel<everything> model;
  auto const mixed = requests<Any>([](auto& request, std::uint64_t i) {
    if (i % 5 == 0) request.search = greedy;
    if (i % 5 == 1) request.search = beam;
    if (i % 5 == 2) request.search = sample;
    if (i % 5 == 3) request.search = Blockwise<>{.length = length};
  });  // else the decoder's
  auto const alone = [&]<class S>(S const& search) {
    return decode(model, requests<S>([](auto&, std::uint64_t) {}), search);
  };
  std::vector const expected{alone(greedy), alone(beam), alone(sample), alone(Blockwise<>{.length = length}),
                             alone(beam)};
  for (std::size_t const size : {1, 4, 12}) {
    auto const results = decode(model, mixed, Any(beam), Batched{.size = size});
    for (std::size_t i = 0; i < results.size(); ++i) {
      CAPTURE(size, i);
      REQUIRE(results[i].ok());
      CHECK(identical(results[i], expected[i % 5][i]));
    }
  }
  CHECK(decode(model, std::vector<std::uint64_t>{3}, Any())[0].hypotheses.at(0).tokens ==
        decode(model, std::vector<std::uint64_t>{3}, Greedy())[0].hypotheses.at(0).tokens);
}

TEST_CASE("what wraps it asks the search that was chosen", "[one_of]") {
  using Two = OneOf<Greedy, BeamSearch>;
  auto proof = beam, unasked = beam;
  proof.early_stopping.rule = EarlyStopping::Rule::exact, unasked.at_maximum = AtMaximum::force_eos_free;
  Sentence const sentence{};
  CHECK(detail::stops_by_proof(Two(proof)));
  CHECK(detail::stops_by_proof(Processed<Two>(Two(proof))));
  CHECK_FALSE(detail::stops_by_proof(Two(beam)));
  CHECK(detail::ends_unasked(Two(unasked)));
  CHECK_FALSE(detail::ends_unasked(Two(greedy)));
  CHECK(detail::most_tokens(Two(beam), sentence) == 9);
  CHECK(Two(beam).slot_count() == beam.slot_count());
  CHECK_THROWS_AS(Two(BeamSearch{.width = 0}).check(), std::invalid_argument);
  // A bias: paid at the end of outputs of the maximum length, too, which nobody is asked about.
  std::vector<BiasedPhrase> const phrases{{.spellings = {{3, 4}}, .whole = 2}, {.spellings = {{5}}, .whole = 1}};
  Bias const bias(phrases);
  TableModel<everything> model;
  std::vector<std::uint64_t> const sources{1, 2, 3, 4, 5, 6};
  auto const results = decode(model, sources, Processed<Two>(Two(unasked), bias));
  auto const expected = decode(model, sources, Processed<BeamSearch>(unasked, bias));
  for (std::size_t i = 0; i < sources.size(); ++i) CHECK(identical(results[i], expected[i]));
}

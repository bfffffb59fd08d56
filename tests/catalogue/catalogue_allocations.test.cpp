// SPDX-License-Identifier: Apache-2.0
#include <sluice/catalogue/catalogue_beam.hpp>
#include <sluice/catalogue/in_catalogue.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>

#include <support/allocations.hpp>
#include <support/catch.hpp>
#include <support/table_model.hpp>

#include <catalogue/random_catalogue.hpp>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

using namespace sluice;
using namespace sluice::test;

TEST_CASE("a warm beam in a catalogue allocates nothing in a step", "[catalogue_allocations]") {
  std::mt19937_64 random(8);
  Table const table{.size = 40, .scale = 6, .eos_bias = -3};
  auto const catalogue = catalogue_of(random_sequences(random, 2000, 8, 3, 39, 6));
  std::vector<Item> some, more;
  for (Item item = 0; item < catalogue.size(); ++item) (item % 3 == 0 ? some : more).push_back(item);
  more.resize(20);
  SwitchedOff const off(catalogue, more, SwitchedOff(catalogue, some));
  for (auto const among : {Among::all_tokens, Among::children}) {
    TableModel<> model(table);
    model.reserve(200, 300, 200);
    CatalogueBeam const search{
        .beam = {.width = 20, .n_best = 20}, .items = InCatalogue(catalogue, off), .among = among};
    Decoder decoder(model, search, Batched{.size = 4});
    Result result;
    std::size_t inside = 0, counted = 0;
    for (int round = 0; round < 4; ++round) {
      for (std::uint64_t i = 0; i < 4; ++i) decoder.submit({.source = 5});
      inside = counted = 0;
      for (auto going = true; going;) {
        auto const waiting = decoder.waiting(), running = decoder.running();
        auto const before = allocations();
        going = decoder.step();
        auto const after = allocations();
        if (decoder.waiting() == waiting && decoder.running() == running && going) inside += after - before, ++counted;
        while (decoder.poll(result)) CHECK(result.ok());
      }
    }
    CHECK(inside == 0);
    CHECK(counted > 3);
  }
}

// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/particle_sample.hpp>

#include <support/allocations.hpp>
#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/table_model.hpp>

#include <cstddef>
#include <cstdint>

using namespace sluice;
using namespace sluice::test;

namespace {

/// Prefers even numbers, so that particles are resampled.
struct Even {
  using State = std::int32_t;  // how many there were
  static State initial(Sentence const&) { return 0; }
  static State next(State count, Token token) { return count + (token % 2 == 0 ? 1 : 0); }
  static double log_prefix(State count) { return 1.5 * count; }
  static double log_final(State count, bool) { return 1.5 * count; }
};

}  // namespace

TEST_CASE("particle sample: no allocation per step, once warm") {
  Table const table{.size = 40, .scale = 6, .has_eos = false};
  for (auto const proposal : {Proposal::model, Proposal::rejection, Proposal::product}) {
    INFO(name(proposal));
    TableModel<> model(table);
    model.reserve(256, 300, 256);
    Decoder decoder(
        model,
        ParticleSample<Even>{
            .particles = 6, .proposal = proposal, .resample_below = 0.9f, .distinct = false, .length{.max = 30}},
        Batched{.size = 8});
    Result result;
    std::size_t inside = 0, counted = 0;
    for (int round = 0; round < 4; ++round) {
      for (std::uint64_t i = 0; i < 8; ++i) decoder.submit({.source = 5});
      inside = counted = 0;
      for (auto more = true; more;) {
        auto const waiting = decoder.waiting(), running = decoder.running();
        auto const before = allocations();
        more = decoder.step();
        auto const after = allocations();
        if (decoder.waiting() == waiting && decoder.running() == running && more) inside += after - before, ++counted;
        while (decoder.poll(result)) {
          CHECK(result.ok());
          CHECK(result.log_z > 1);
        }
      }
    }
    CHECK(counted > 20);
    CHECK(inside == 0);
  }
}

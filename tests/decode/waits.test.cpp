// SPDX-License-Identifier: Apache-2.0
// Who has to wait for room, and who has not: to the token.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/greedy.hpp>

#include <support/catch.hpp>
#include <support/cell_model.hpp>
#include <support/decoding.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

using namespace sluice;
using namespace sluice::test;

TEST_CASE("a sentence goes back only where the model has no token left for the oldest", "[cache budget]") {
  Table const endless{.size = 12, .has_eos = false};
  struct Case {
    std::size_t count;  // of sentences that hold ten tokens each in the end
    std::int64_t cells;
    std::uint64_t restarted;
  };
  for (auto const& [count, cells, restarted] :
       {Case{2, 20, 0}, Case{2, 19, 0}, Case{2, 18, 1}, Case{2, 15, 1}, Case{2, 11, 1}, Case{3, 20, 1}}) {
    CellModel<everything> model(endless, cells, true);
    std::vector<Result> results;
    auto const statistics = decode_each(
        model, std::vector<EmptySource>(count), Greedy{.length = {.max = 10}},
        [&](Result&& result) { results.push_back(std::move(result)); }, Batched{});
    INFO(count << " sentences, " << cells << " cells");
    CHECK(statistics.restarted == restarted);
    CHECK(model.refusals == 0);
    for (auto const& result : results) CHECK(result.ok());
  }
}

TEST_CASE("a newcomer is let in where there is room for all that others have still to feed", "[cache budget]") {
  Table const endless{.size = 12, .has_eos = false};
  for (std::int32_t const shared : {0, 50})
    for (std::int64_t cells = 14; cells < 26; ++cells) {
      CellModel<everything> model(endless, cells, true);
      Decoder decoder(model, Greedy{.length = {.max = 3}}, Streaming{.size = 8, .refill_below = 1},
                      Intake{.prompt_chunk = 3, .shared_tokens = shared});
      decoder.submit({.prompt = std::vector<Token>(10, 4)});
      REQUIRE(decoder.step());  // three of ten
      decoder.submit({.prompt = std::vector<Token>(6, 5)});
      REQUIRE(decoder.step());  // six of ten
      // Six and a first token for the newcomer, seven for the other, beside the three that were held.
      INFO(cells << " cells, shared " << shared);
      CHECK(decoder.running() == (6 + 1 + 7 <= cells - 3 ? 2 : 1));
      while (decoder.step()) {
      }
      for (Result result; decoder.poll(result);) CHECK(result.ok());
    }
}

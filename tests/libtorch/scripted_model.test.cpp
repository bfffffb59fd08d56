// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>

#include <libtorch/scores.hpp>
#include <libtorch/scripted_model.hpp>
#include <support/catch.hpp>
#include <support/slot_checker.hpp>

#include <torch/script.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::example;
using namespace sluice::test;

namespace {

using Tokens = std::vector<Token>;
using Scripted = HostScores<ScriptedModel>;

static_assert(Model<Scripted> && !ReleasingModel<Scripted>);

constexpr Token size = 20;

/// A recurrent network with two states: the mean of the source's embeddings, which stays, and what was read since.
torch::jit::Module network() {
  torch::jit::Module module("network");
  auto const random = at::detail::createCPUGenerator(7);
  module.register_parameter("embedding", at::randn({size, 16}, random), false);
  module.register_parameter("recurrent", at::randn({16, 16}, random) * 0.2, false);
  module.register_parameter("output", at::randn({16, size}, random), false);
  // [module]
  module.define(R"(
    def start(self, sources: Tensor, lengths: Tensor) -> List[Tensor]:
        there = torch.arange(sources.size(1)).unsqueeze(0) < lengths.unsqueeze(1)
        vectors = torch.embedding(self.embedding, sources) * there.unsqueeze(2)
        mean = vectors.sum(1) / lengths.unsqueeze(1)
        return [mean, torch.zeros_like(mean)]

    def step(self, tokens: Tensor, positions: Tensor, states: List[Tensor]) -> Tuple[Tensor, List[Tensor]]:
        read = torch.tanh(torch.matmul(states[1], self.recurrent) + torch.embedding(self.embedding, tokens) + states[0])
        scores = torch.matmul(read, self.output) + 0.01 * positions.unsqueeze(1)
        return scores, [states[0], read]
  )");
  // [/module]
  return module;
}

Vocabulary const vocabulary{.size = size, .bos = 1, .eos = {2}, .never = {0, 1}};

/// The log-probability of an output, by the module alone, one token after another.
double log_prob(torch::jit::Module& module, Tokens const& source, Tokens const& output) {
  std::vector<std::int64_t> tokens(source.begin(), source.end());
  auto const length = static_cast<std::int64_t>(tokens.size());
  auto const numbers = [](std::vector<std::int64_t> const& n) { return at::tensor(n, at::kLong); };
  auto states = module.get_method("start")({numbers(tokens).unsqueeze(0), numbers({length})}).toTensorVector();
  double sum = 0;
  Token last = vocabulary.bos;
  for (std::size_t i = 0; i < output.size(); ++i) {
    auto const answer =
        module.get_method("step")({numbers({last}), numbers({static_cast<std::int64_t>(i)}), states}).toTuple();
    states = answer->elements().at(1).toTensorVector();
    sum += answer->elements().at(0).toTensor().log_softmax(-1)[0][output[i]].item<double>();
    last = output[i];
  }
  return sum;
}

std::vector<Tokens> const sources{{5}, {7, 3, 9, 9}, {4, 4}, {11, 12, 13, 14, 15, 16}, {19, 3}, {6, 8, 10}, {17}};

}  // namespace

TEST_CASE("a scripted module decodes as it would alone, in every batch", "[libtorch]") {
  auto module = network();
  BeamSearch const search{.width = 4, .length = {.max = 15}};
  auto const run = [&](auto schedule) {
    SlotChecker<Scripted> model(Scripted{module, vocabulary});
    auto results = decode(model, sources, search, schedule);
    CHECK(model.report().empty());
    return results;
  };
  auto const together = run(Batched{.size = 7}), alone = run(Batched{.size = 1}),
             streamed = run(Streaming{.size = 3, .refill_below = 1});
  REQUIRE(together.size() == sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    REQUIRE(together[i].hypotheses.size() == 1);
    auto const& best = together[i].hypotheses[0];
    CHECK(best.tokens == alone[i].hypotheses.at(0).tokens);
    CHECK(best.tokens == streamed[i].hypotheses.at(0).tokens);
    CHECK_THAT(best.log_prob, WithinAbs(log_prob(module, sources[i], best.tokens), 1e-4));
  }
}

TEST_CASE("what a scripted module cannot do is refused", "[libtorch]") {
  Scripted model(network(), vocabulary);
  Tokens const one{1}, two{1, 3};
  Row const unstarted[] = {{0, 0, 0, one}}, block[] = {{0, 0, 0, two}};
  CHECK_THROWS_AS(model.step(unstarted), std::invalid_argument);
  Tokens const* const source[] = {&sources[1]};
  Slot const slot[] = {0};
  model.start(source, slot);
  CHECK(model.step(unstarted).columns == size);
  CHECK_THROWS_AS(model.step(block), std::invalid_argument);
  Row const back[] = {{0, 0, 0, one}};
  CHECK_THROWS_AS(model.step(back), std::invalid_argument);
}

TEST_CASE("states that change their shape are refused, and so are none", "[libtorch]") {
  auto const refusal = [](std::string const& states) -> std::string {
    torch::jit::Module module("network");
    module.define("def start(self, sources: Tensor, lengths: Tensor) -> List[Tensor]:\n    return " + states +
                  "\ndef step(self, tokens: Tensor, positions: Tensor, states: List[Tensor]) -> Tuple[Tensor, "
                  "List[Tensor]]:\n    return torch.zeros([tokens.size(0), 20]), states\n");
    Scripted model(module, vocabulary);
    try {
      for (std::size_t i : {0, 3}) {
        Tokens const* const source[] = {&sources[i]};
        Slot const slot[] = {static_cast<Slot>(i)};
        model.start(source, slot);
      }
    } catch (std::invalid_argument const& error) {
      return error.what();
    }
    return {};
  };
  CHECK(refusal("[torch.zeros_like(lengths)]").empty());
  CHECK(refusal("[sources]") == "sluice: ScriptedModel: state = 0: has other dimensions than at first");
  CHECK(refusal("[sources][1:]") == "sluice: ScriptedModel: states = 0: must be at least 1");
  CHECK(refusal("[torch.zeros([2, 3])]") == "sluice: ScriptedModel: state.size(0) = 2: must be the number of rows");
}

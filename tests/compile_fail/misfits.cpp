// SPDX-License-Identifier: Apache-2.0
// Inputs and requests that are not for this model, or not for this search: each is refused in a sentence.
#include <sluice/decode/server.hpp>
#include <sluice/sluice.hpp>

#include <span>
#include <string>
#include <vector>

namespace misfits {

struct Model {
  using Source = std::vector<int>;
  sluice::Vocabulary vocabulary() const { return {.size = 1}; }
  void start(std::span<Source const* const>, std::span<sluice::Slot const>) {}
  sluice::Scores<float> step(std::span<sluice::Row const>) { return {}; }
};

#ifdef MUST_FAIL
using Input = std::string;
using Wrong = sluice::Request<std::string, sluice::Greedy>;
using Other = sluice::Request<Model::Source, sluice::BeamSearch>;
#else
using Input = Model::Source;
using Wrong = sluice::Request<Model::Source, sluice::Greedy>;
using Other = Wrong;
#endif

void use(sluice::Decoder<Model, sluice::Greedy>& decoder, sluice::Server<Model, sluice::Greedy>& server);
void use(sluice::Decoder<Model, sluice::Greedy>& decoder, sluice::Server<Model, sluice::Greedy>& server) {
  Model model;
  sluice::decode(model, std::vector<Input>(), sluice::Greedy{});
  sluice::decode(model, std::vector<Wrong>(), sluice::Greedy{});
  sluice::decode(model, std::vector<Other>(), sluice::Greedy{});
  decoder.submit({.source = Input()});
  decoder.submit(Other());
  server.submit({.source = Input()});
  server.submit(Wrong());
#ifdef MUST_FAIL
  decoder.submit(Model::Source());
  sluice::Decoder(model, sluice::Greedy{}, sluice::Batched{}, sluice::LogSoftmaxTopK{}, sluice::Intake{});
#endif
}

}  // namespace misfits

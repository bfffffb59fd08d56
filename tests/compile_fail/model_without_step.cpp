// SPDX-License-Identifier: Apache-2.0
// A class that lacks a member of a Model, or has it with another signature, is none: the compiler names the member and its signature.
#include <sluice/decode/server.hpp>
#include <sluice/sluice.hpp>

#include <span>
#include <vector>

namespace no_model {

struct Fine {
  using Source = int;
  sluice::Vocabulary vocabulary() const { return {.size = 1}; }
  void start(std::span<Source const* const>, std::span<sluice::Slot const>) {}
  sluice::Scores<float> step(std::span<sluice::Row const>) { return {}; }
};

#ifdef MUST_FAIL
struct WithoutSource {
  sluice::Vocabulary vocabulary() const { return {.size = 1}; }
  void start(std::span<int const* const>, std::span<sluice::Slot const>) {}
  sluice::Scores<float> step(std::span<sluice::Row const>) { return {}; }
};
struct WithoutVocabulary {
  using Source = int;
  int vocabulary() const { return 1; }
  void start(std::span<Source const* const>, std::span<sluice::Slot const>) {}
  sluice::Scores<float> step(std::span<sluice::Row const>) { return {}; }
};
struct WithoutStart : Fine {
  void start(std::vector<Source> const&, std::vector<sluice::Slot> const&) {}
};
struct WithoutStep : Fine {
 private:
  using Fine::step;
};
struct AnswersNothing : Fine {
  void step(std::span<sluice::Row const>) {}
};
using Const = Fine const;
#else
using WithoutSource = Fine;
using WithoutVocabulary = Fine;
using WithoutStart = Fine;
using WithoutStep = Fine;
using AnswersNothing = Fine;
using Const = Fine;
#endif

template <sluice::Model M>
void needs_a_model(M&) {}

template <class M>
void use(M& model) {
  auto const results = sluice::decode(model, std::vector<int>(1), sluice::Greedy{}, sluice::Batched{});
  if (!results.empty() && results[0].ok())
    sluice::decode_each(model, std::vector<int>(1), sluice::Greedy{}, [](sluice::Result&&) {});
}

void use(WithoutSource& a, WithoutVocabulary& b, WithoutStart& c, WithoutStep& d, AnswersNothing& e, Const& f);
void use(WithoutSource& a, WithoutVocabulary& b, WithoutStart& c, WithoutStep& d, AnswersNothing& e, Const& f) {
  use(a), use(b), use(c), use(d), use(e), use(f);
#ifdef MUST_FAIL
  struct Decoded : WithoutStep {
  } decoded;
  struct Served : WithoutStart {
  } served;
  sluice::Decoder decoder(decoded, sluice::Greedy{});
  sluice::Server server(served, sluice::Greedy{});
#endif
  needs_a_model(d);
}

}  // namespace no_model

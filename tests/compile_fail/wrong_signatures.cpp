// SPDX-License-Identifier: Apache-2.0
// What has a name that the library looks for, and another signature, would never be called: it is refused.
#include <sluice/decode/decode.hpp>
#include <sluice/search/greedy.hpp>

#include <vector>

#ifdef MUST_FAIL
#define WRONG(right, wrong) wrong
#else
#define WRONG(right, wrong) right
#endif

using namespace sluice;

struct Fine {
  using Source = int;
  Vocabulary vocabulary() const { return {.size = 1}; }
  void start(std::span<int const* const>, std::span<Slot const>) {}
  Scores<float> step(std::span<Row const>) { return {}; }
};
struct Releasing : Fine {
  void release(WRONG(std::span<Slot const>, std::vector<Slot> const&)) {}
};
struct Proposing : Fine {
  void propose(WRONG(std::span<Draft const>, std::vector<Draft>&)) {}
};
struct Remembering : Fine {
  void remember(WRONG(Decoded const&, Decoded&)) {}
};
struct Encoding : Fine {
  using Encoded = int;
  using Fine::start;
  Encoded encode(std::span<int const* const>) WRONG(const, ) { return 0; }
  void start(Encoded&, std::span<std::int32_t const>, std::span<Slot const>) {}
};
struct Limited : Fine {
  Limits limits() WRONG(const, ) { return {}; }
};
struct Measuring : Fine {
  std::int32_t source_length(WRONG(int, int*)) const { return 1; }
};
struct Able : Fine {
  WRONG(static constexpr, static) inline Abilities abilities{};
};
struct Drafting : Greedy {
  bool draft(State&, Draft&) WRONG(const, ) { return false; }
};
struct Settling : Greedy {
  void settled(State&, std::vector<Token> WRONG(&, )) const {}
};
struct Inserting : Greedy {
  void insert_into(WRONG(TokenSet&, std::vector<Token>&)) const {}
};
struct Finishing : Greedy {
  void finish(State const&, Result WRONG(&, )) const {}
};
struct Needing : Greedy {
  Abilities needs(WRONG(, int)) const { return {}; }
};
struct Checking : Greedy {
  void check(WRONG(, int)) const {}
};
struct Adapting : Batched {
  void adapt(WRONG(Abilities const&, int)) {}
};
struct Tracing {
  void ended(WRONG(Result const&, std::vector<int>)) {}
};

template <class M, class S = Greedy, class P = Batched, class T = NoTrace>
void use() {
  M model;
  Decoder<M, S, P, LogSoftmaxTopK, T> decoder(model);
}

int main() {
  use<Releasing>(), use<Proposing>(), use<Remembering>(), use<Encoding>(), use<Limited>(), use<Measuring>(),
      use<Able>();
  use<Fine, Drafting>(), use<Fine, Settling>(), use<Fine, Inserting>(), use<Fine, Finishing>(), use<Fine, Needing>(),
      use<Fine, Checking>();
  use<Fine, Greedy, Adapting>(), use<Fine, Greedy, Batched, Tracing>();
}

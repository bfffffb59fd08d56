// SPDX-License-Identifier: Apache-2.0
// The acceptance rules without a search: their queries and their decisions.
#include <sluice/speculative/acceptance.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;

using acceptance::Distance;
using acceptance::Rejection;
using acceptance::Sampling;
using acceptance::TopK;

namespace {

std::string complaint(auto const& rule) {
  try {
    rule.check();
  } catch (std::invalid_argument const& error) {
    return error.what();
  }
  return {};
}

Line line_of(std::span<Candidate const> best) {
  Line line;
  line.best = best;
  return line;
}

}  // namespace

TEST_CASE("what relaxed rules ask and keep", "[acceptance]") {
  std::vector<Candidate> const best{{7, -0.5f}, {3, -1.5f}, {5, -2.0f}};
  auto const line = line_of(best), empty = line_of({});
  std::vector<Candidate> scratch;
  for (std::int32_t n = 1; n <= 3; ++n) {
    TopK const rule{n};
    Query query{.best = 9};
    rule.ask(query, 1, 2, 10);
    CHECK((query.best == n && query.stage == Stage::after_softmax && !query.selects() && query.noise == 0));
    auto const cut = line_of(std::span(best).first(static_cast<std::size_t>(n)));
    CHECK(rule.own(cut, 1, 2, scratch) == Candidate{7, -0.5f});
    CHECK(rule.own(empty, 1, 2, scratch) == Candidate{-1, 0});
    for (Token token = 0; token < 9; ++token)
      CHECK(rule.accepts(cut, best[0], token) == ((token == 7) || (token == 3 && n > 1) || (token == 5 && n > 2)));
  }
  for (std::int32_t epsilon = 0; epsilon <= 3; ++epsilon) {
    Distance const rule{epsilon};
    Query query{.best = 9};
    rule.ask(query, 1, 2, 10);
    CHECK((query.best == 1 && query.stage == Stage::after_softmax && !query.selects() && query.noise == 0));
    CHECK(rule.own(line, 1, 2, scratch) == best[0]);
    CHECK(rule.own(empty, 1, 2, scratch) == Candidate{-1, 0});
    for (Token own = 0; own < 9; ++own)
      for (Token guess = 0; guess < 9; ++guess)
        CHECK(rule.accepts(line, {own, -1}, guess) == (std::max(own, guess) - std::min(own, guess) <= epsilon));
    CHECK_FALSE(rule.accepts(empty, {-1, 0}, 0));
  }
}

TEST_CASE("a rule that samples asks as Sample does, and draws with its noise", "[acceptance]") {
  std::vector<Candidate> const best{{7, -0.5f}, {3, -1.0f}, {5, -2.0f}};
  auto const line = line_of(best), empty = line_of({});
  std::vector<Candidate> scratch;
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    for (std::int32_t position = 0; position < 3; ++position) {
      Query plain{.best = 9}, cut{.best = 9};
      Sampling{{.temperature = 0.5f}}.ask(plain, seed, position, 10);
      CHECK((plain.best == 1 && plain.temperature == 0.5f && plain.noise == Sample::noise(seed, 0, position)));
      Sampling const three{{.temperature = 0.25f, .top_k = 3}};
      three.ask(cut, seed, position, 10);
      CHECK((cut.best == 3 && cut.temperature == 0.25f && cut.noise == 0));
      CHECK(three.own(line, seed, position, scratch) == draw(line.best, Sample::noise(seed, 0, position)));
      CHECK(three.own(empty, seed, position, scratch) == Candidate{-1, 0});
      Query own{.best = 9};
      Rejection{.temperature = 2}.ask(own, seed, position, 10);
      CHECK((own.best == 1 && own.temperature == 2 && own.noise != 0 && own.noise != plain.noise));
      CHECK(Rejection{}.own(line, seed, position, scratch) == best[0]);
      CHECK(Rejection{}.own(empty, seed, position, scratch) == Candidate{-1, 0});
    }
  CHECK((Sampling{}.accepts(line, best[1], 3) && !Sampling{}.accepts(line, best[1], 7)));
  CHECK((Rejection{}.accepts(line, best[1], 3) && !Rejection{}.accepts(line, best[1], 7)));
}

TEST_CASE("rules of acceptance refuse what makes no sense", "[acceptance]") {
  for (auto const bad : {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    CHECK(complaint(Sampling{{.temperature = bad}}).find("accept.sample.temperature") != std::string::npos);
    CHECK(complaint(Rejection{.temperature = bad}).find("accept.temperature") != std::string::npos);
  }
  CHECK(complaint(Sampling{{.top_p = 0}}).find("top_p") != std::string::npos);
  CHECK(complaint(Sampling{{.samples = 2}}).find("accept.sample.samples = 2: must be 1") != std::string::npos);
  CHECK(complaint(Sampling{{.mirostat = {.tau = 5}}}).find("accept.sample = a chain of samplers") != std::string::npos);
  CHECK(complaint(TopK{0}).find("accept.n") != std::string::npos);
  CHECK(complaint(Distance{-1}).find("accept.epsilon") != std::string::npos);
  CHECK((complaint(TopK{1}).empty() && complaint(Distance{0}).empty() && complaint(Sampling{}).empty()));
}

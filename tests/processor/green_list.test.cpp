// SPDX-License-Identifier: Apache-2.0
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/search/stochastic_beam.hpp>
#include <sluice/watermark/detail/marker.hpp>
#include <sluice/watermark/detect_watermark.hpp>

#include <support/decoding.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Scheme = WatermarkScheme;

Watermark green(std::uint64_t key, Scheme scheme = Scheme::red_green) {
  return {.scheme = scheme,
          .prf = scheme == Scheme::sbw ? WatermarkPrf::philox : WatermarkPrf::sluice,
          .key = WatermarkKey(key),
          .width = 2,
          .gamma = 0.5f,
          .delta = 3};
}

}  // namespace

TEST_CASE("greedy decoding under a green list takes the best after delta", "[watermark]") {
  std::mt19937_64 random(1);
  std::size_t repeated = 0;
  for (int round = 0; round < 40; ++round) {
    Table const table{.size = 8, .scale = 4, .eos_slope = 0.05, .order = 2};
    GreenList const rule{green(random(), round % 2 == 0 ? Scheme::red_green : Scheme::sbw)};
    Processed<Greedy> const search({.length = {.max = 30}}, rule);
    std::vector<Token> prefix;
    if (round % 3 == 0) prefix = {3, 4};
    using Request = TableRequest<Processed<Greedy>>;
    auto const text =
        run(table, std::vector<Request>{{.source = 9, .prefix = prefix}}, search)[0].hypotheses.at(0).tokens;
    detail::Marker const marker(rule.watermark);
    for (auto n = prefix.size(); n < text.size(); ++n) {
      auto const before = std::span(text).first(n);
      auto const mark = marker.mark_with(before, false);
      repeated += mark.marked ? 0 : 1;
      std::vector<double> line(8);
      table.log_probs(9, before, line);
      Token best = 3;
      for (Token v = 2; v < 8; ++v) {
        auto const value = [&](Token token) {
          return line[static_cast<std::size_t>(token)] + (mark.marked && marker.is_green(mark, token) ? 3 : 0);
        };
        if (value(v) > value(best)) best = v;
      }
      CHECK(text[n] == best);
    }
  }
  CHECK(repeated > 10);
}

TEST_CASE("green lists are found under every search", "[watermark]") {
  Table const table{.size = 60, .scale = 4, .has_eos = false};
  auto const check = [&](auto const& search) {
    for (auto const scheme : {Scheme::red_green, Scheme::sbw}) {
      Processed const ruled(search, GreenList{green(4, scheme)});
      using Request = TableRequest<std::remove_const_t<decltype(ruled)>>;
      auto const results = run(table, std::vector<Request>{{.source = 2}}, ruled);
      for (auto const& h : results[0].hypotheses) {
        CHECK(detect_watermark(h.tokens, green(4, scheme)).p_value < 1e-6);
        CHECK(detect_watermark(h.tokens, green(5, scheme)).p_value > 1e-4);
      }
    }
  };
  check(Greedy{.length = {.max = 120}});
  check(BeamSearch{.width = 3, .length = {.max = 120}});
  check(Sample{.top_p = 0.9f, .samples = 2, .length = {.max = 120}});
  check(StochasticBeam{.width = 2, .length = {.max = 120}});
}

TEST_CASE("a green list is off by default, and refuses schemes that draw", "[watermark]") {
  Table const table{.size = 8, .scale = 4};
  Processed<Greedy> const off{Greedy{}};
  using Request = TableRequest<Processed<Greedy>>;
  CHECK(run(table, std::vector<Request>{{.source = 1}}, off)[0].hypotheses.at(0).tokens ==
        run(table, std::vector<TableRequest<Greedy>>{{.source = 1}}, Greedy{})[0].hypotheses.at(0).tokens);
  GreenList const drawing{{.scheme = Scheme::gumbel, .key = WatermarkKey(3)}};
  CHECK_THROWS_MATCHES(
      drawing.check(), std::invalid_argument,
      Message("sluice: watermark.scheme = gumbel: draws tokens, which a rule cannot: give it to Sample"));
  Processed const by_proof(BeamSearch{.early_stopping = {.rule = EarlyStopping::Rule::exact}},
                           LogitsProcessorList(ForbidTokens{}, GreenList{green(3)}));
  using Proved = std::remove_const_t<decltype(by_proof)>;
  auto const refused = run(table, std::vector<TableRequest<Proved>>{{.source = 1}}, by_proof);
  CHECK(refused[0].failure != Failure::none);
  CHECK(refused[0].message == "sluice: early_stopping.rule = exact: proves its result by log-probabilities that only "
                              "fall, and processors[1], GreenList, adds "
                              "to them: stop by another rule");
}

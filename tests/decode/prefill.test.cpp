// SPDX-License-Identifier: Apache-2.0
// What is fed before a search is told anything: how many calls it takes, how a prefix is scored, who is told what.
#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/output/log_softmax_top_k.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>

#include <support/catch.hpp>
#include <support/cell_model.hpp>
#include <support/decoding.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

Table const opened{.size = 12, .scale = 6, .eos_bias = -3, .eos_slope = 0.2};

/// Greedy in slot 0 of several, which releases one of the others in its first plan.
struct Generous : Greedy {
  std::int32_t count = 1;
  std::int32_t slot_count() const { return count; }
  void plan(State& s, Plan& plan) const {
    if (count > 1 && s.tokens.empty()) plan.release(count - 1);
    Greedy::plan(s, plan);
  }
};

/// An expander that sees whether groups are those of the sentences, in the order of their slots.
struct Watching {
  LogSoftmaxTopK inner{};
  std::size_t groups_seen = 0;
  Expansion expand(Scores<float> const& scores, std::span<Query const> queries, std::span<Group const> groups) {
    std::int32_t lines = 0;
    for (auto const& group : groups) {
      CHECK(group.lines > 0);
      lines += group.lines;
      if (&group != &groups.front()) CHECK(group.direction > (&group - 1)->direction);
    }
    CHECK(lines == static_cast<std::int32_t>(queries.size()));
    groups_seen += groups.size();
    return inner.expand(scores, queries, groups);
  }
};

}  // namespace

TEST_CASE("a prompt takes as many calls as it has pieces", "[prefill]") {
  for (std::int32_t const chunk : {0, 1, 3, 8})
    for (std::size_t const prompt : {1u, 2u, 3u, 4u, 8u, 9u, 16u, 17u})
      for (std::size_t const prefix : {0u, 1u, 2u}) {
        INFO("pieces of " << chunk << ", prompt of " << prompt << ", prefix of " << prefix);
        CellModel<everything> model(opened, 1 << 20, false);
        Decoder decoder(model, Greedy{.length = {.max = static_cast<std::int32_t>(prefix) + 1}}, Batched{},
                        Intake{.prompt_chunk = chunk});
        decoder.submit({.prompt = std::vector<Token>(prompt, 4), .prefix = std::vector<Token>(prefix, 5)});
        while (decoder.step()) {
        }
        auto const all = prompt + prefix, piece = chunk == 0 ? all : static_cast<std::size_t>(chunk);
        CHECK(decoder.statistics().model_calls == (all + piece - 1) / piece);
        CHECK(model.fed == all);
        Result result;
        REQUIRE(decoder.poll(result));
        CHECK(result.ok());
      }
}

TEST_CASE("a prefix is scored as the search scores", "[prefill]") {
  for (int able = 0; able < 8; ++able)
    for (auto const temperature : {1.0f, 2.0f}) {
      Abilities const abilities{.ragged = (able & 1) != 0, .blocks = (able & 2) != 0, .roll_back = (able & 4) != 0};
      Sample const search{.temperature = temperature, .samples = 2, .length = {.max = 9}};
      std::vector<Token> const prompt{bos, 4, 6}, prefix{7, 5, 8};
      auto const result =
          run(abilities, opened,
              std::vector<TableRequest<Sample>>{{.source = 3}, {.source = 4, .prompt = prompt, .prefix = prefix}},
              search)
              .at(1);
      REQUIRE(result.ok());
      INFO("abilities " << able << ", temperature " << temperature);
      for (auto const& hypothesis : result.hypotheses) {
        std::vector<Token> context{4, 6};
        std::vector<double> line(static_cast<std::size_t>(opened.size));
        double total = 0;
        for (std::size_t i = 0; i < hypothesis.tokens.size(); ++i) {
          if (i < prefix.size()) CHECK(hypothesis.tokens[i] == prefix[i]);
          opened.logits(4, context, line);
          double sum = 0;
          for (auto& x : line) sum += std::exp(x /= static_cast<double>(temperature));
          auto const expected = line[static_cast<std::size_t>(hypothesis.tokens[i])] - std::log(sum);
          if (i < prefix.size()) CHECK_THAT(static_cast<double>(hypothesis.log_probs[i]), WithinAbs(expected, 2e-5));
          total += static_cast<double>(hypothesis.log_probs[i]);
          context.push_back(hypothesis.tokens[i]);
        }
        CHECK_THAT(hypothesis.log_prob, WithinAbs(total, 1e-9));
      }
    }
}

TEST_CASE("what a first plan releases is its own", "[prefill]") {
  for (auto const prompt : {1, 3}) {
    std::vector<TableRequest<Generous>> requests(6);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      requests[i].source = i, requests[i].prompt.assign(static_cast<std::size_t>(prompt), 4);
      requests[i].search = Generous{{.length = {.max = 8}}, static_cast<std::int32_t>(1 + 2 * i)};
    }
    auto const results = run(everything, opened, requests, Generous{});
    for (std::size_t i = 0; i < requests.size(); ++i) {
      auto one = std::vector<TableRequest<Greedy>>{{.source = i, .prompt = requests[i].prompt}};
      CHECK(identical(results[i], run(everything, opened, one, Greedy{.length = {.max = 8}}).at(0)));
    }
  }
}

TEST_CASE("groups are the sentences', those that share their prompts among them", "[prefill]") {
  CellModel<everything> model(opened, 1 << 20, false);
  Decoder decoder(model, Greedy{.length = {.max = 8}}, Batched{}, Watching{}, NoTrace{}, Intake{.shared_tokens = 1});
  std::vector<Token> const common(20, 4);
  for (std::size_t i = 0; i < 8; ++i) {
    Request<EmptySource, Greedy> request{.prompt = common};
    request.prompt.push_back(static_cast<Token>(3 + i)), request.direction = static_cast<std::int32_t>(i);
    if (i % 3 == 1) request.prompt.assign(30, static_cast<Token>(3 + i));
    decoder.submit(request);
  }
  while (decoder.step()) {
  }
  CHECK(decoder.statistics().shared >= 3 * 20);
  CHECK(decoder.expander().groups_seen > 12);
  for (Result result; decoder.poll(result);) CHECK(result.ok());
}

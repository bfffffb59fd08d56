// SPDX-License-Identifier: Apache-2.0
// Results of the searches that the library holds, over a random model, and of one that it does not hold: ANSWERS() tells them.
#include <sluice/decode/server.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/best_first_beam.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/constraints.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/exact_search.hpp>
#include <sluice/search/length.hpp>
#include <sluice/search/stochastic_beam.hpp>
#include <sluice/sluice.hpp>
#include <sluice/speculative/blockwise.hpp>

#include <cstdint>
#include <exception>
#include <future>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

// The next token's scores depend on the seed and on all tokens so far, which are in slots.
struct Random {
  using Source = std::uint32_t;
  static constexpr sluice::Abilities abilities{.ragged = true, .blocks = true, .roll_back = true};
  static constexpr int size = 37;
  std::vector<std::vector<std::uint32_t>> states{};  // of every slot, after each token
  std::vector<float> lines{};

  sluice::Vocabulary vocabulary() const { return {.size = size, .bos = 0, .eos = {1}, .never = {0}}; }
  void start(std::span<Source const* const> sources, std::span<sluice::Slot const> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) state(slots[i]) = {*sources[i]};
  }
  std::vector<std::uint32_t>& state(sluice::Slot slot) {
    auto const at = static_cast<std::size_t>(slot);
    if (states.size() <= at) states.resize(at + 1);
    return states[at];
  }
  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    lines.clear();
    std::vector<std::vector<std::uint32_t>> after;
    for (auto const& row : rows) {
      auto held = state(row.from);
      held.resize(static_cast<std::size_t>(row.length) + 1);
      for (std::size_t i = 0; i < row.tokens.size(); ++i) {
        held.push_back((held.back() * 2654435761u) ^ (static_cast<std::uint32_t>(row.tokens[i]) * 40503u + 77u));
        if (i + static_cast<std::size_t>(row.lines) < row.tokens.size()) continue;
        for (std::uint32_t v = 0; v < size; ++v)
          lines.push_back(static_cast<float>(((held.back() + v * 97u) * 2246822519u) >> 16) / 10000.0f);
      }
      after.push_back(std::move(held));
    }
    for (std::size_t i = 0; i < rows.size(); ++i) state(rows[i].to) = std::move(after[i]);
    return sluice::scores(lines.data(), std::ssize(lines) / size, size);
  }
};

// What is in both has scores apart: a library for a newer processor rounds them elsewhere.
struct Answers {
  std::ostringstream text{};
  std::vector<double> scores{};
};

void tell(Answers& answers, std::vector<sluice::Result> const& results) {
  auto& out = answers.text;
  for (auto const& result : results) {
    out << result.id << ' ' << sluice::name(result.failure) << ' ' << result.message;
    for (auto const& one : result.hypotheses) {
      out << " |";
      answers.scores.insert(answers.scores.end(), {one.log_prob, one.score});
      for (auto const token : one.tokens) out << ' ' << token;
    }
    out << '\n';
  }
}

template <class S>
void decode(Answers& out, S const& search) try {
  Random model;
  std::vector<sluice::Request<std::uint32_t, S>> requests;
  for (std::uint32_t source = 1; source < 8; ++source)
    requests.push_back({.source = source, .prefix = std::vector<sluice::Token>(source % 3, 5), .seed = source});
  tell(out, sluice::decode(model, requests, search));
  tell(out, sluice::decode(model, requests, search, sluice::Streaming{.size = 3}));

  sluice::Server server(model, search);
  std::vector<std::future<sluice::Result>> futures;
  std::vector<sluice::Result> results;
  for (auto const& request : requests) futures.push_back(server.submit(request));
  for (auto& one : futures) results.push_back(one.get());
  tell(out, results);
} catch (std::exception const& error) {
  out.text << error.what() << '\n';
}

}  // namespace

std::pair<std::string, std::vector<double>> ANSWERS() {
  Answers out;
  sluice::LengthLimits const length{.max = 12};
  decode(out, sluice::Greedy{.length = length});
  decode(out, sluice::BeamSearch{.width = 4, .n_best = 3, .length = length});
  decode(out, sluice::DiverseBeamSearch{.search = {.width = 2, .length = length}});
  decode(out, sluice::BestFirstBeam{.width = 4, .length = length});
  decode(out, sluice::Sample{.top_k = 5, .samples = 2, .length = length});
  decode(out, sluice::StochasticBeam{.width = 3, .length = length});
  decode(out, sluice::Blockwise<>{.length = length});
  decode(out, sluice::ExactSearch{.length = {.max = 3}});
  decode(out, sluice::ForcedScore{});
  decode(out, sluice::ConstrainedBeamSearch<>{
                  .beam = {.width = 4, .length = length},
                  .constraints = sluice::Constraints({.all = {{5, 6}, {7}}}),
              });
  decode(out, sluice::Processed{sluice::BeamSearch{.width = 3, .length = length}, sluice::Penalties{.repetition = 2}});
  decode(out, sluice::Greedy{.length = {.min = 5, .max = 2}});  // an error
  return {out.text.str(), std::move(out.scores)};
}

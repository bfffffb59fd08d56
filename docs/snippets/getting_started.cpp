// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/getting-started.md.
#include "typist.hpp"

#include <iomanip>
#include <iostream>
#include <thread>

namespace {

void hidden_vectors() {
  // [hidden]
  Typist model;
  auto const keyboard = Typist::keyboard();
  std::vector<std::string> const sources{"beam", "sluice"};

  auto const results = sluice::decode(model, sources, sluice::BeamSearch{.width = 3, .n_best = 3},
                                      sluice::Batched{.size = 64}, keyboard);
  for (auto const& result : results)
    for (auto const& hypothesis : result.hypotheses)
      std::cout << result.id << ' ' << Typist::text(hypothesis.tokens) << ' ' << hypothesis.log_prob << '\n';
  // [/hidden]
}

void requests() {
  Typist model;
  auto const keyboard = Typist::keyboard();
  // [requests]
  using sluice::BeamSearch, sluice::Request;
  std::vector<Request<std::string, BeamSearch>> requests(4, {.source = "sluice"});
  requests[1].prompt = Typist::tokens("^slu");         // fed, not part of the output
  requests[2].prefix = Typist::tokens("slo");          // the output begins with it
  requests[3].search = BeamSearch{.length{.max = 4}};  // its own options

  auto const results = sluice::decode(model, requests, BeamSearch{}, sluice::Batched{}, keyboard);
  for (auto const& result : results) {
    auto const& best = result.hypotheses.at(0);
    std::cout << Typist::text(best.tokens) << ' ' << best.log_prob << ' ' << best.log_probs.size() << '\n';
  }
  // [/requests]
}

void failures() {
  Typist model;
  // [failures]
  std::vector<sluice::Request<std::string, sluice::BeamSearch>> requests(2, {.source = "beam"});
  requests[0].prefix = {99};

  for (auto const& result : sluice::decode(model, requests, sluice::BeamSearch{}, {}, Typist::keyboard()))
    if (result.ok()) std::cout << Typist::text(result.hypotheses.at(0).tokens) << '\n';
    else std::cout << result.id << " failed: " << name(result.failure) << ": " << result.message << '\n';
  // [/failures]
}

void step_by_step() {
  // [decoder]
  Typist model;
  sluice::Decoder decoder(model, sluice::Greedy{}, sluice::Batched{.size = 3}, Typist::keyboard());
  decoder.submit({.source = "one"});
  decoder.submit({.source = "three"});
  auto const unwanted = decoder.submit({.source = "seventeen"});

  sluice::Result result;
  for (auto more = true; more;) {
    more = decoder.step();
    if (decoder.statistics().steps == 3) decoder.cancel(unwanted);
    while (decoder.poll(result))
      std::cout << result.id << ' ' << name(result.failure) << ' '
                << (result.hypotheses.empty() ? "" : Typist::text(result.hypotheses[0].tokens)) << '\n';
  }
  // [/decoder]
}

// [trace]
/// Prints the rows of each model call.
struct PrintRows {
  void planned(sluice::StepPlan const& step) const {
    for (auto const& row : step.rows)
      std::cout << "  " << row.from << " -> " << row.to << ", " << row.length << " + " << Typist::text(row.tokens);
    std::cout << '\n';
  }
  void ended(sluice::Result const& result) const { std::cout << "  ended: " << result.id << '\n'; }
};
// [/trace]

void statistics() {
  // [statistics]
  Typist model;
  auto const keyboard = Typist::keyboard();
  sluice::Decoder decoder(model, sluice::BeamSearch{.width = 2}, sluice::Batched{}, keyboard, PrintRows{});
  decoder.submit({.source = "go"});
  while (decoder.step()) {
  }

  auto const& s = decoder.statistics();
  std::cout << s.tokens << " tokens, " << s.model_calls << " model calls, " << s.rows << " rows, " << s.forks
            << " forks\n";
  // [/statistics]
}

void threads() {
  // [threads]
  std::vector<std::string> const sources{"greedy", "beam", "sample", "score"};
  auto const keyboard = Typist::keyboard();  // packed once; copies share the weights
  std::vector<sluice::Result> results[2];
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < 2; ++t)
      threads.emplace_back([&, t] {
        Typist model;  // one per thread: a model belongs to one decoder
        results[t] = sluice::decode(model, std::span(sources).subspan(2 * t, 2), sluice::BeamSearch{}, {}, keyboard);
      });
  }
  for (auto const& part : results)
    for (auto const& result : part) std::cout << Typist::text(result.hypotheses.at(0).tokens) << '\n';
  // [/threads]
}

}  // namespace

/// Runs the snippet that is named, or all of them.
int main(int argc, char** argv) {
  std::cout << std::fixed << std::setprecision(3);
  std::string const only = argc > 1 ? argv[1] : "";
  auto const run = [&](char const* name, void (*snippet)()) {
    if (only.empty() || only == name) snippet();
  };
  run("hidden", hidden_vectors);
  run("requests", requests);
  run("failures", failures);
  run("decoder", step_by_step);
  run("statistics", statistics);
  run("threads", threads);
  return 0;
}

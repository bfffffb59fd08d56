// SPDX-License-Identifier: Apache-2.0
// The cost of dealing shards from one counter, by the number of ranks and the size of shards. See
// docs/clusters-of-machines.md.

#include "simulation/dealing.hpp"

#include "simulation/svg.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

namespace {

using namespace simulation;

/// The share of what the ranks could have decoded, in per cent.
double lost(Dealt const& dealt, double seconds) { return 100 * seconds / dealt.total; }

void print(char const* how, double shard, Dealt const& dealt) {
  std::printf("%9s %10.0f %11.1f %9.3f %9.3f %9.3f %9.2f\n", how, shard, dealt.total, lost(dealt, dealt.asking),
              lost(dealt, dealt.overhead), lost(dealt, dealt.idle), lost(dealt, dealt.total - dealt.work));
}

/// Checks the model: seconds add up, a single rank never waits, small shards ask more often.
int check(Dealing d) {
  d.sentences = 1e5, d.ranks = 8;
  auto wrong = 0;
  auto const must = [&](bool good, char const* what) {
    if (!good) std::printf("wrong: %s\n", what), ++wrong;
  };
  for (auto const shard : {10.0, 1000.0}) {
    d.shard = shard;
    auto const all = deal(d);
    must(std::abs(all.work + all.asking + all.overhead + all.idle - all.total) < 1e-6 * all.total, "the sum");
    must(all.total >= d.sentences / d.rate / static_cast<double>(d.ranks) * 0.95, "faster than the ranks are");
  }
  d.shard = 10;
  auto const small = deal(d);
  d.shard = 5000;
  auto const large = deal(d);
  must(small.asking > large.asking && small.idle < large.idle, "small shards ask more and end together");
  d.ranks = 1;
  must(deal(d).idle == 0, "one rank waits for nobody");
  return wrong > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Dealing d;
  std::vector<std::size_t> ranks{1, 10, 100, 1000, 10000};
  std::vector<double> shards;
  std::string svg;
  bool checking = false;
  CLI::App app("What dealing shards of sentences to ranks costs, in virtual time.", "dealing");
  app.add_option("--ranks", ranks, "how many (1,10,100,1000,10000)")->delimiter(',');
  app.add_option("--shards", shards, "sentences in a shard (100, 200, 500, 1000, ... 100000)")->delimiter(',');
  app.add_option("--sentences", d.sentences, "of all ranks together (1e9)");
  app.add_option("--rate", d.rate, "sentences a second of a rank (100)");
  app.add_option("--variation", d.variation, "of a sentence's time: deviation / mean (0.57)");
  app.add_option("--spread", d.spread, "of the ranks' speeds: deviation / mean (0.05)");
  app.add_option("--latency", d.latency, "seconds of a request there and back (2e-6)");
  app.add_option("--service", d.service, "seconds of the counter for one request (2e-7)");
  app.add_option("--served-every", d.served_every, "seconds between looks at the counter; 0: by the network card (0)");
  app.add_option("--overhead", d.overhead, "seconds of a shard for its files (0.005)");
  app.add_option("--seed", d.seed, "of all that is drawn (1)");
  app.add_option("--svg", svg, "draw what is lost over the size of shards");
  app.add_flag("--check", checking, "look whether the numbers agree with each other, and nothing else");
  try {
    app.parse(argc, argv);
    if (checking) return check(d);
    if (shards.empty())
      for (auto decade = 100.0; decade <= 10000; decade *= 10)
        for (auto const step : {1.0, 2.0, 5.0}) shards.push_back(step * decade);
    Chart chart{.title = "what dealing costs",
                .x_label = "sentences in a shard",
                .y_label = "% lost",
                .x_least = *std::min_element(shards.begin(), shards.end()),
                .x_most = *std::max_element(shards.begin(), shards.end()),
                .y_least = 0.001,
                .y_most = 100,
                .logarithmic = true,
                .logarithmic_x = true};
    for (auto const count : ranks) {
      d.ranks = count;
      chart.lines.push_back({.name = std::to_string(count) + (count == 1 ? " rank" : " ranks"), .points = {}});
      std::printf("%zu ranks\n%9s %10s %11s %9s %9s %9s %9s\n", count, "", "sentences", "seconds", "asking %",
                  "files %", "idle %", "lost %");
      double best = 0, least = 1e300;
      for (auto const shard : shards) {
        d.shard = shard;
        auto const dealt = deal(d);
        print("dealt", shard, dealt);
        chart.lines.back().points.emplace_back(shard, lost(dealt, dealt.total - dealt.work));
        if (dealt.total < least) least = dealt.total, best = shard;
      }
      print("divided", d.sentences / static_cast<double>(count), divide(d));
      std::printf("best: shards of %.0f sentences\n\n", best);
      std::fflush(stdout);
    }
    if (svg.empty()) return 0;
    Svg drawing(1);
    drawing.add(chart);
    drawing.write(svg);
    return 0;
  } catch (CLI::Success const& help) {
    return app.exit(help);
  } catch (std::exception const& error) {
    std::cerr << "dealing: " << error.what() << '\n';
    return 2;
  }
}

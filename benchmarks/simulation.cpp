// SPDX-License-Identifier: Apache-2.0
// Which schedule suits my traffic? Runs the library's decoder and schedules over a model that only says how long it
// would have taken, on sentences drawn from the papers' distributions or read from a file. See
// docs/benchmarks/simulation.md.

#include "simulation/cost_model.hpp"
#include "simulation/distributions.hpp"
#include "simulation/figures.hpp"
#include "simulation/files.hpp"
#include "simulation/papers.hpp"
#include "simulation/report.hpp"
#include "simulation/schedules.hpp"
#include "simulation/simulate.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace simulation;

struct Options {
  std::string traffic = "europarl", schedules = "batched,var-stream,fifo,top-up,continuous", cost = "gpu-flat";
  std::string json, svg, figures;
  std::int64_t sentences = 0, seed = 1;
  Sizes sizes;
  Widths widths;
  std::optional<double> noise, ratio, endless;
  double arrivals = 0;
  bool check = false;
};

/// Refuses numbers that are not finite or out of range; CLI11's own range accepts NaN, and -1 for the largest number.
CLI::Validator range(double least, double most) {
  return CLI::Validator(
      [=](std::string const& value) {
        double x = 0;
        if (CLI::detail::lexical_cast(value, x) && x >= least && x <= most) return std::string();
        std::ostringstream text;
        text << "'" << value << "' is not a number from " << least << " to " << most;
        return text.str();
      },
      "");
}

Scripts make(Options const& o) {
  for (auto traffic : test_sets)
    if (traffic.name == o.traffic) {
      traffic.noise = o.noise.value_or(traffic.noise), traffic.ratio = o.ratio.value_or(traffic.ratio);
      traffic.endless = o.endless.value_or(traffic.endless);
      auto const count = o.sentences > 0 ? o.sentences : 100000;
      return draw(traffic, o.widths, static_cast<std::size_t>(count), static_cast<std::uint64_t>(o.seed));
    }
  auto scripts = read_scripts(o.traffic, static_cast<std::int32_t>(std::lround(o.widths.mean)));
  if (o.sentences > 0 && static_cast<std::size_t>(o.sentences) < scripts.size())
    scripts.all.erase(scripts.all.begin() + o.sentences, scripts.all.end());
  return scripts;
}

int check(std::int64_t seed) {
  auto comparisons = compare_occupancy(static_cast<std::uint64_t>(seed));
  auto const fit = fit_yang(test_sets[2]);
  comparisons.insert(comparisons.end(), fit.comparisons.begin(), fit.comparisons.end());
  auto const out = print(comparisons);
  std::printf("\nfitted: launch %.5f s, launch_length %.6f s, row %.4g s; --cost gpu has %.5f, %.6f, %.4g\n",
              fit.cost.launch, fit.cost.launch_length, fit.cost.row, gpu().launch, gpu().launch_length, gpu().row);
  if (out > 0) std::printf("%d out of tolerance\n", out);
  return out > 0 ? 1 : 0;
}

void run(Options const& o) {
  auto const plans = to_plans(o.schedules, o.sizes);
  auto const cost = to_cost(o.cost);
  auto const scripts = make(o);
  std::vector<Outcome> outcomes;
  for (auto const& plan : plans)
    outcomes.push_back(simulate(scripts, cost, plan, {.rate = o.arrivals, .seed = static_cast<std::uint64_t>(o.seed)}));
  std::printf("%s, %zu sentences, size %zu, window %zu, cost %s, %s\n\n", o.traffic.c_str(), scripts.size(),
              o.sizes.size, o.sizes.window, o.cost.c_str(),
              o.arrivals > 0 ? (std::to_string(o.arrivals) + " arrive in a second").c_str() : "all there at the start");
  print(outcomes, o.sizes.size);
  if (!o.svg.empty()) write_occupancy(outcomes, o.sizes.size, o.svg);
  if (o.json.empty()) return;
  std::ofstream file(o.json);
  file << to_json(outcomes).dump(1) << '\n';
  if (!file.flush()) throw InputError("--json: cannot write '" + o.json + "'");
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("Which schedule for my traffic: decodes drawn sentences in virtual time.", "simulation");
  auto const add = [&](char const* name, auto& value, char const* type, std::string const& what) {
    return app.add_option(name, value, what)->type_name(type);
  };
  add("--traffic", o.traffic, "NAME|FILE",
      "europarl, opensubtitles or wmt; or a file with a sentence a line: SOURCE OUTPUT [ROWS...] (europarl)");
  add("--sentences", o.sentences, "N", "sentences (100000; of a file: all)")->check(range(1, 1e9));
  add("--schedule", o.schedules, "NAME,...", std::string(schedule_names) + "; NAME/W sorts windows of W");
  add("--size", o.sizes.size, "N", "sentences alive at most (128)")->check(range(1, 1e6));
  add("--window", o.sizes.window, "N", "sort so many requests by source length; 0 = none (0)")->check(range(0, 1e9));
  add("--refill-below", o.sizes.refill_below, "F", "in place of what the schedules' names say")->check(range(0, 1));
  add("--max-rows", o.sizes.max_rows, "N", "rows in a step at most; 0 = no bound (0)")->check(range(0, 1e9));
  add("--width", o.widths.mean, "W", "rows of a sentence from its second step on (5)")->check(range(1, 1000));
  add("--width-spread", o.widths.spread, "S", "their standard deviation / mean between sentences (0)")
      ->check(range(0, 10));
  add("--noise", o.noise, "S", "standard deviation of log(output / source)")->check(range(0, 3));
  add("--ratio", o.ratio, "R", "output tokens for one of the source (1)")->check(range(0.01, 100));
  add("--endless", o.endless, "P", "part of the sentences that run to the maximum length")->check(range(0, 1));
  add("--cost", o.cost, "COST",
      "gpu (Yang et al. 2020, padded), gpu-flat (the same, no padding), LAUNCH,ROW,ROW_LENGTH,ENCODE_TOKEN in seconds, "
      "or a "
      "file "
      "(gpu-flat)");
  add("--arrivals", o.arrivals, "R", "requests in a virtual second, at random; 0 = all at the start (0)")
      ->check(range(0, 1e12));
  add("--seed", o.seed, "S", "of all that is drawn (1)")->check(range(0, 1e15));
  add("--svg", o.svg, "FILE", "draw the histograms of the sentences in a step");
  add("--json", o.json, "FILE", "write all numbers");
  auto* const figures = add("--figures", o.figures, "DIR", "draw the figures of the documentation, and nothing else");
  app.add_flag("--check", o.check, "compare with the papers' numbers, and nothing else; code 1 if one is off")
      ->excludes(figures);
  try {
    app.parse(argc, argv);
    if (o.check) return check(o.seed);
    if (!o.figures.empty()) write_figures(o.figures, static_cast<std::uint64_t>(o.seed));
    else run(o);
    return 0;
  } catch (CLI::Success const& help) {
    return app.exit(help);
  } catch (std::exception const& error) {
    std::cerr << "simulation: " << error.what() << '\n';
    return 2;
  }
}

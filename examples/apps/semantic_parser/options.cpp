// SPDX-License-Identifier: Apache-2.0

#include <text/command_line.hpp>
#include <text/lines.hpp>

#include <limits>
#include <map>
#include <semantic_parser/options.hpp>
#include <string>

namespace semantic_parser {

namespace {

std::map<std::string, SearchName> const searches{
    {"greedy", SearchName::greedy}, {"fixed", SearchName::fixed}, {"variable", SearchName::variable}};
std::map<std::string, ScheduleName> const schedules{
    {"batched", ScheduleName::batched}, {"streaming", ScheduleName::streaming}, {"fifo", ScheduleName::fifo}};

}  // namespace

std::optional<Options> parse(int argc, char const* const* argv) {
  constexpr auto many = std::numeric_limits<std::int32_t>::max();
  Options options;
  std::string model, output, stats, search = "variable", schedule = "streaming";

  text::CommandLine app("Parses the test sentences of a folder into logical forms.", "semantic_parser");
  app.add("--model", model, "DIR", "folder of manifest.json and weights.f32 (required)");
  app.add("--search", search, "NAME", "greedy, fixed or variable width (variable)")->check(text::one_of(searches));
  app.add("--schedule", schedule, "NAME", "batched, streaming or fifo (streaming)")->check(text::one_of(schedules));
  app.add("--width", options.width, "K", "hypotheses in the beam (10)")->check(text::whole(1, 10000));
  app.add("--absolute-threshold", options.absolute_threshold, "D",
          "variable: drop hypotheses D below the best log-probability (10)")
      ->check(text::number<double>([](double x) { return x > 0; }, " > 0"));  // inf: no threshold
  app.add("--max-per-parent", options.max_per_parent, "M",
          "variable: maximum number of children of one hypothesis in a step (3)")
      ->check(text::whole(1, many));
  auto* const size = app.add("--size", options.size, "N", "batched: sentences in a batch (10; greedy: 100)");
  size->check(text::whole(1, 1000000));
  app.add("--max-rows", options.max_rows, "R", "streaming, fifo: hypotheses in one step (100)")
      ->check(text::whole(1, many));
  app.add("--output", output, "FILE", "file to write the n-best lists to (standard output)");
  app.add("--stats", stats, "FILE", "write counts and accuracies as JSON");

  if (!app.read(argc, argv)) return std::nullopt;
  if (model.empty()) throw text::InputError("--model DIR is required");
  options.search = searches.at(search), options.schedule = schedules.at(schedule);
  if (options.search == SearchName::greedy && size->count() == 0) options.size = 100;
  options.model = model, options.output = output, options.stats = stats;
  return options;
}

}  // namespace semantic_parser

// SPDX-License-Identifier: Apache-2.0
#include <sluice/version.hpp>

#include <text/lines.hpp>

#include <CLI/CLI.hpp>

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

CLI::Validator range(std::int32_t lowest, std::int32_t highest) { return CLI::Range(lowest, highest).description(""); }

/// "inf" is one: no threshold.
CLI::Validator positive() {
  return CLI::Validator(
      [](std::string const& value) {
        double x = 0;
        return CLI::detail::lexical_cast(value, x) && x > 0 ? "" : "'" + value + "' is not a number > 0";
      },
      "");
}

template <class Name>
CLI::Validator one_of(std::map<std::string, Name> const& names) {
  std::string all;
  for (auto const& [name, value] : names) all += (all.empty() ? "" : ", ") + name;
  return CLI::Validator(
      [&names, all](std::string const& value) {
        return names.contains(value) ? "" : "'" + value + "' is not one of " + all;
      },
      "");
}

}  // namespace

std::optional<Options> parse(int argc, char const* const* argv) {
  constexpr auto many = std::numeric_limits<std::int32_t>::max();
  Options options;
  std::string model, output, stats, search = "variable", schedule = "streaming";

  CLI::App app("Parses the test sentences of a folder into logical forms.", "semantic_parser");
  app.set_version_flag("--version", "semantic_parser (sluice " + std::to_string(SLUICE_VERSION_MAJOR) + "." +
                                        std::to_string(SLUICE_VERSION_MINOR) + "." +
                                        std::to_string(SLUICE_VERSION_PATCH) + ")");
  app.get_formatter()->column_width(34);
  auto const add = [&](char const* name, auto& value, char const* type, std::string const& what) {
    return app.add_option(name, value, what)->type_name(type);
  };
  add("--model", model, "DIR", "folder of manifest.json and weights.f32 (required)");
  add("--search", search, "NAME", "greedy, fixed or variable width (variable)")->check(one_of(searches));
  add("--schedule", schedule, "NAME", "batched, streaming or fifo (streaming)")->check(one_of(schedules));
  add("--width", options.width, "K", "hypotheses in the beam (10)")->check(range(1, 10000));
  add("--absolute-threshold", options.absolute_threshold, "D",
      "variable: drop hypotheses D below the best log-probability (10)")
      ->check(positive());
  add("--max-per-parent", options.max_per_parent, "M",
      "variable: maximum number of children of one hypothesis in a step (3)")
      ->check(range(1, many));
  auto* const size = add("--size", options.size, "N", "batched: sentences in a batch (10; greedy: 100)");
  size->check(range(1, 1000000));
  add("--max-rows", options.max_rows, "R", "streaming, fifo: hypotheses in one step (100)")->check(range(1, many));
  add("--output", output, "FILE", "file to write the n-best lists to (standard output)");
  add("--stats", stats, "FILE", "write counts and accuracies as JSON");

  try {
    app.parse(argc, argv);
  } catch (CLI::Success const& asked) {
    app.exit(asked);
    return std::nullopt;
  } catch (CLI::ParseError const& error) {
    throw text::InputError(error.what());
  }
  if (model.empty()) throw text::InputError("--model DIR is required");
  options.search = searches.at(search), options.schedule = schedules.at(schedule);
  if (options.search == SearchName::greedy && size->count() == 0) options.size = 100;
  options.model = model, options.output = output, options.stats = stats;
  return options;
}

}  // namespace semantic_parser

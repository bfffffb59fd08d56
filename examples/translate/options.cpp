// SPDX-License-Identifier: Apache-2.0
#include <sluice/version.hpp>

#include <text/lines.hpp>
#include <translate/options.hpp>

#include <CLI/CLI.hpp>

#include <cmath>
#include <limits>
#include <map>
#include <string>

namespace translate {

namespace {

std::map<std::string, SearchName> const searches{{"greedy", SearchName::greedy}, {"beam", SearchName::beam}};
std::map<std::string, ScheduleName> const schedules{{"batched", ScheduleName::batched}};

/// Beside the executable, where it is installed, where it was built.
std::filesystem::path default_model(char const* program) {
  std::error_code ignored;
  auto executable = std::filesystem::read_symlink("/proc/self/exe", ignored);
  if (executable.empty()) executable = std::filesystem::absolute(program, ignored);
  auto const folder = executable.parent_path();
  for (auto const& candidate : {folder / "model", folder / "../share/sluice/model"})
    if (std::filesystem::exists(candidate / "model.safetensors", ignored)) return candidate;
#ifdef SLUICE_EXAMPLE_MODEL
  return SLUICE_EXAMPLE_MODEL;
#else
  return folder / "model";
#endif
}

CLI::Validator range(std::int32_t lowest, std::int32_t highest) { return CLI::Range(lowest, highest).description(""); }

template <class Name>
CLI::Validator one_of(std::map<std::string, Name> const& names) {
  std::string all;
  for (auto const& [name, value] : names) all += (all.empty() ? "" : ", ") + name;
  return CLI::Validator(
      [names, all](std::string const& value) {
        return names.contains(value) ? "" : "'" + value + "' is not one of " + all;
      },
      "");
}

std::string finite(std::string const& value) {
  double number = 0;
  return CLI::detail::lexical_cast(value, number) && std::isfinite(number) ? "" : "'" + value + "' is not a number";
}

}  // namespace

std::optional<Options> parse(int argc, char const* const* argv) {
  constexpr auto many = std::numeric_limits<std::int32_t>::max();
  Options options;
  std::string model, input, output, prefix, score, stats, search = "beam", schedule = "batched";
  std::int32_t n_best = 0;

  CLI::App app("Translates German to English, a sentence a line.", "translate");
  app.set_version_flag("--version", "translate (sluice " + std::to_string(SLUICE_VERSION_MAJOR) + "." +
                                        std::to_string(SLUICE_VERSION_MINOR) + "." +
                                        std::to_string(SLUICE_VERSION_PATCH) + ")");
  app.get_formatter()->column_width(34);
  app.add_option("--model", model, "folder of model.safetensors and spm.model, or the former")->type_name("DIR|FILE");
  app.add_option("--input", input, "text to translate (standard input)")->type_name("FILE");
  app.add_option("--output", output, "where the translations go (standard output)")->type_name("FILE");
  app.add_option("--search", search, "greedy or beam (beam)")->check(one_of(searches))->type_name("NAME");
  auto const* width =
      app.add_option("--width", options.width, "hypotheses in the beam (5)")->check(range(1, 10000))->type_name("K");
  auto const* nbest = app.add_option("--n-best", n_best, "print N hypotheses a line: index ||| text ||| score")
                          ->check(range(1, 10000))
                          ->type_name("N");
  auto const* penalty =
      app.add_option("--length-penalty", options.length_penalty, "score = log-probability / length^A (1)")
          ->check(CLI::Validator(finite, ""))
          ->type_name("A");
  auto const* longest = app.add_option("--max-length", options.max_length, "tokens generated at most (256)")
                            ->check(range(1, many))
                            ->type_name("N");
  auto const* begin =
      app.add_option("--prefix", prefix, "a beginning for each translation, a line for each line")->type_name("FILE");
  app.add_option("--score", score, "print scores of these translations, a line for each line")->type_name("FILE");
  app.add_option("--schedule", schedule, "batched (batched)")->check(one_of(schedules))->type_name("NAME");
  app.add_option("--batch", options.batch, "sentences decoded at a time (64)")
      ->check(range(1, 1000000))
      ->type_name("N");
  app.add_option("--threads", options.threads, "decoders at work (1)")->check(range(1, 1024))->type_name("N");
  app.add_option("--stats", stats, "write counts and times as JSON")->type_name("FILE");
  app.add_flag("--progress", options.progress, "show progress even where standard error is no terminal");

  try {
    app.parse(argc, argv);
  } catch (CLI::Success const& asked) {
    app.exit(asked);
    return std::nullopt;
  } catch (CLI::ParseError const& error) {
    throw text::InputError(error.what());
  }

  options.search = searches.at(search);
  options.schedule = schedules.at(schedule);
  auto const useless = [](CLI::Option const* option, std::string const& with) {
    if (option->count() > 0) throw text::InputError(option->get_name() + " has no effect with " + with);
  };
  if (!score.empty())
    for (auto const* option : {width, nbest, longest, begin}) useless(option, "--score");
  else if (options.search == SearchName::greedy)
    for (auto const* option : {width, nbest, penalty}) useless(option, "--search greedy");
  if (n_best > options.width)
    throw text::InputError("--n-best " + std::to_string(n_best) + " is more than --width " +
                           std::to_string(options.width));

  if (n_best > 0) options.n_best = n_best;
  options.model = model.empty() ? default_model(argv[0]) : std::filesystem::path(model);
  options.input = input, options.output = output, options.stats = stats;
  options.prefix = prefix, options.score = score;
  return options;
}

}  // namespace translate

// SPDX-License-Identifier: Apache-2.0
#include <sluice/version.hpp>

#include <text/lines.hpp>

#include <CLI/CLI.hpp>

#include <charconv>
#include <limits>
#include <string>
#include <system_error>
#include <train_clusters/k_means.hpp>
#include <train_clusters/options.hpp>

namespace train_clusters {

namespace {

/// CLI11 takes -1 for the largest number there is, and 2.5 for 2.
CLI::Validator whole(std::uint64_t lowest, std::uint64_t highest) {
  return {[=](std::string const& value) {
            std::uint64_t x = 0;
            auto const* const end = value.data() + value.size();
            auto const [rest, error] = std::from_chars(value.data(), end, x);
            if (rest == end && error == std::errc() && x >= lowest && x <= highest) return std::string();
            return "'" + value + "' is not a number from " + std::to_string(lowest) + " to " + std::to_string(highest);
          },
          ""};
}

CLI::Validator one_of(std::string const& a, std::string const& b) {
  return {[=](std::string const& value) {
            return value == a || value == b ? "" : "'" + value + "' is not one of " + a + ", " + b;
          },
          ""};
}

}  // namespace

std::optional<Options> parse(int argc, char const* const* argv) {
  constexpr std::uint64_t many = std::numeric_limits<std::int32_t>::max();
  Options options;
  std::string model, input, output, search = "greedy", k_means = "lloyd";
  std::int32_t width = 5;

  CLI::App app("Trains the clusters of a clustered vocabulary projection: translates text, one sentence per line, and "
               "groups the hidden vectors.",
               "train_clusters");
  app.set_version_flag("--version", "train_clusters (sluice " + std::to_string(SLUICE_VERSION_MAJOR) + "." +
                                        std::to_string(SLUICE_VERSION_MINOR) + "." +
                                        std::to_string(SLUICE_VERSION_PATCH) + ")");
  app.get_formatter()->column_width(34);
  auto const add = [&](char const* name, auto& value, char const* type, std::string const& what) {
    return app.add_option(name, value, what)->type_name(type);
  };
  add("--model", model, "DIR|FILE", "folder of model.safetensors and spm.model, or the former")->required();
  add("--input", input, "FILE", "text to translate (standard input)");
  add("--output", output, "FILE", "file to write the clusters to")->required();
  add("--direction", options.direction, "NAME", "name of the clusters in that file (de-en)");
  app.add_flag("--append", options.append, "keep the other directions that the output holds");
  add("--clusters", options.clusters, "N", "number of clusters (400)")->check(whole(1, many));
  add("--likely", options.likely, "K", "number of each vector's most probable tokens that its cluster gets (1)")
      ->check(whole(1, many));
  add("--search", search, "NAME", "greedy or beam (greedy)")->check(one_of("greedy", "beam"));
  auto* const wide = add("--width", width, "N", "hypotheses in the beam (5)")->check(whole(1, 10000));
  add("--samples", options.samples, "N", "vectors kept, drawn evenly (2000000)")->check(whole(1, many));
  add("--points", options.points, "N", "number of vectors per cluster given to k-means (256)")->check(whole(1, many));
  add("--iterations", options.iterations, "N", "iterations of k-means (20)")->check(whole(0, many));
  add("--seed", options.seed, "N", "seed of all random draws (1)")
      ->check(whole(0, std::numeric_limits<std::uint64_t>::max()));
  add("--k-means", k_means, "NAME", "lloyd or faiss (lloyd)")->check(one_of("lloyd", "faiss"));
  try {
    app.parse(argc, argv);
  } catch (CLI::Success const& asked) {
    app.exit(asked);
    return std::nullopt;
  } catch (CLI::ParseError const& error) {
    throw text::InputError(error.what());
  }

  if (search == "beam") options.width = width;
  else if (wide->count() > 0) throw text::InputError("--width has no effect with --search greedy");
  if (k_means == "faiss") options.k_means = KMeansName::faiss;
  if (options.k_means == KMeansName::faiss && !has_faiss())
    throw text::InputError("--k-means: this program was built without Faiss (Debian: libfaiss-dev)");
  options.model = model, options.input = input, options.output = output;
  return options;
}

}  // namespace train_clusters

// SPDX-License-Identifier: Apache-2.0

#include <text/command_line.hpp>
#include <text/lines.hpp>

#include <limits>
#include <string>
#include <train_clusters/k_means.hpp>
#include <train_clusters/options.hpp>

namespace train_clusters {

std::optional<Options> parse(int argc, char const* const* argv) {
  constexpr std::uint64_t many = std::numeric_limits<std::int32_t>::max();
  Options options;
  std::string model, input, output, search = "greedy", k_means = "lloyd";
  std::int32_t width = 5;

  text::CommandLine app(
      "Trains the clusters of a clustered vocabulary projection: translates text, one sentence per line, and "
      "groups the hidden vectors.",
      "train_clusters");
  app.add("--model", model, "DIR|FILE", "folder of model.safetensors and spm.model, or the former")->required();
  app.add("--input", input, "FILE", "text to translate (standard input)");
  app.add("--output", output, "FILE", "file to write the clusters to")->required();
  app.add("--direction", options.direction, "NAME", "name of the clusters in that file (de-en)");
  app.add_flag("--append", options.append, "keep the other directions that the output holds");
  app.add("--clusters", options.clusters, "N", "number of clusters (400)")->check(text::whole(1, many));
  app.add("--likely", options.likely, "K", "number of each vector's most probable tokens that its cluster gets (1)")
      ->check(text::whole(1, many));
  app.add("--search", search, "NAME", "greedy or beam (greedy)")->check(text::one_of({"greedy", "beam"}));
  auto* const wide = app.add("--width", width, "N", "hypotheses in the beam (5)")->check(text::whole(1, 10000));
  app.add("--samples", options.samples, "N", "vectors kept, drawn evenly (2000000)")->check(text::whole(1, many));
  app.add("--points", options.points, "N", "number of vectors per cluster given to k-means (256)")
      ->check(text::whole(1, many));
  app.add("--iterations", options.iterations, "N", "iterations of k-means (20)")->check(text::whole(0, many));
  app.add("--seed", options.seed, "N", "seed of all random draws (1)")->check(text::whole(0));
  app.add("--k-means", k_means, "NAME", "lloyd or faiss (lloyd)")->check(text::one_of({"lloyd", "faiss"}));
  if (!app.read(argc, argv)) return std::nullopt;

  if (search == "beam") options.width = width;
  else if (wide->count() > 0) throw text::InputError("--width has no effect with --search greedy");
  if (k_means == "faiss") options.k_means = KMeansName::faiss;
  if (options.k_means == KMeansName::faiss && !has_faiss())
    throw text::InputError("--k-means: this program was built without Faiss (Debian: libfaiss-dev)");
  options.model = model, options.input = input, options.output = output;
  return options;
}

}  // namespace train_clusters

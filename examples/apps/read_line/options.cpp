// SPDX-License-Identifier: Apache-2.0

#include <text/command_line.hpp>
#include <text/lines.hpp>

#include <cmath>
#include <map>
#include <read_line/options.hpp>
#include <string>

namespace read_line {

std::optional<Options> parse(int argc, char const* const* argv) {
  using Search = Options::Search;
  static std::map<std::string, Search> const searches{
      {"best-path", Search::best_path}, {"beam", Search::beam}, {"exact", Search::exact}};
  Options options;
  std::string model = SLUICE_EXAMPLE_MODEL, search = "beam", lexicon, ngram, bias, regex, trace;
  text::CommandLine app("Reads pictures of lines of text: prints the text of each PNG file.", "read_line");
  app.add("picture", options.pictures, "FILE...", "PNG files, a line of dark text on light paper each")->required();
  app.add("--model", model, "DIR", "folder of model.safetensors (the one that ships)");
  app.add("--search", search, "NAME",
          "best-path, beam, or exact: proves the most probable text; for short lines (beam)")
      ->check(text::one_of(searches));
  auto* const beam = app.add("--beam", options.beam, "N", "prefixes in the beam (32)")->check(text::whole(1, 10000));
  app.add("--n-best", options.n_best, "N", "print N texts, each behind its score and a tab")
      ->check(text::whole(1, 10000));
  app.add("--lexicon", lexicon, "FILE", "words consist of these alone, one a line; digits and signs are free");
  app.add("--ngram", ngram, "FILE", "n-grams of characters, of which _ is the space: ARPA, or a table of build_ngram");
  auto const finite =
      text::number<double>([](double x) { return std::isfinite(x) && std::abs(x) <= 1000; }, " from -1000 to 1000");
  auto* const weight =
      app.add("--ngram-weight", options.ngram_weight, "X", "weight of their log-probability (0.6)")
          ->check(text::number<double>([](double x) { return x >= 0 && x <= 1000; }, " from 0 to 1000"));
  auto* const bonus =
      app.add("--ngram-bonus", options.ngram_bonus, "X", "bonus for each character with them (0.8)")->check(finite);
  app.add("--bias", bias, "FILE", "phrases that are more probable: phrase, tab, boost in nats");
  auto* const pattern = app.add("--regex", regex, "RE", "what the whole text matches");
  app.add("--trace", trace, "FILE", "write what the search does: a page (.html), or lines of JSON");
  if (!app.read(argc, argv)) return std::nullopt;

  options.search = searches.at(search);
  auto const guided = !lexicon.empty() || !ngram.empty() || !bias.empty() || pattern->count() > 0;
  if (options.search != Search::beam && guided)
    throw text::InputError("--lexicon, --ngram, --bias and --regex need --search beam, not " + search);
  if (options.search != Search::beam && (beam->count() > 0 || !trace.empty()))
    throw text::InputError("--beam and --trace have no effect with --search " + search);
  if (options.search == Search::best_path && options.n_best > 1)
    throw text::InputError("--n-best: " + std::to_string(options.n_best) + ": --search best-path finds one text");
  if (options.search == Search::beam && options.n_best > options.beam)
    throw text::InputError("--n-best: " + std::to_string(options.n_best) + ": the beam has " +
                           std::to_string(options.beam));
  if (ngram.empty() && weight->count() + bonus->count() > 0)
    throw text::InputError("--ngram-weight and --ngram-bonus have no effect without --ngram");
  options.model = model, options.lexicon = lexicon, options.ngram = ngram, options.bias = bias, options.trace = trace;
  if (pattern->count() > 0) options.regex = regex;
  return options;
}

}  // namespace read_line

// SPDX-License-Identifier: Apache-2.0

#include <text/command_line.hpp>
#include <text/lines.hpp>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <read_line/options.hpp>
#include <string>

namespace read_line {

std::optional<Options> parse(int argc, char const* const* argv) {
  using Search = Options::Search;
  static std::map<std::string, Search> const searches{{"best-path", Search::best_path},
                                                      {"beam", Search::beam},
                                                      {"exact", Search::exact},
                                                      {"rnnt-greedy", Search::rnnt_greedy},
                                                      {"rnnt-beam", Search::rnnt_beam}};
  Options options;
  std::string model = SLUICE_EXAMPLE_MODEL, search = "beam", lexicon, ngram, bias, regex, trace, frames;
  text::CommandLine app("Reads pictures of lines of text: prints the text of each PNG file.", "read_line");
  app.add("picture", options.pictures, "FILE...", "PNG files, a line of dark text on light paper each")->required();
  app.add("--model", model, "DIR", "folder of model.safetensors and rnnt.safetensors (the one that ships)");
  app.add("--search", search, "NAME",
          "best-path, beam, or exact, which proves the most probable text; rnnt-greedy, rnnt-beam (beam)")
      ->check(text::one_of(searches));
  auto* const beam =
      app.add("--beam", options.beam, "N", "texts in the beam (32; rnnt-beam: 10)")->check(text::whole(1, 10000));
  auto* const steps = app.add("--steps", options.steps, "N", "of --search exact: ends a proof after N steps (never)")
                          ->check(text::whole(1, 1000000000));
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
  app.add("--frames", frames, "DIR", "keep what the network makes of pictures there, and take it from there next time");
  if (!app.read(argc, argv)) return std::nullopt;

  options.search = searches.at(search);
  if (options.search == Search::rnnt_beam && beam->count() == 0) options.beam = 10;
  auto const any = [&](std::initializer_list<Search> all) {
    return std::find(all.begin(), all.end(), options.search) != all.end();
  };
  auto const guided = !lexicon.empty() || !ngram.empty() || !bias.empty() || pattern->count() > 0;
  if (guided && !any({Search::beam, Search::rnnt_beam}))
    throw text::InputError("--lexicon, --ngram, --bias and --regex need --search beam or rnnt-beam, not " + search);
  if (beam->count() > 0 && !any({Search::beam, Search::exact, Search::rnnt_beam}))
    throw text::InputError("--beam has no effect with --search " + search);
  if (!trace.empty() && any({Search::best_path, Search::exact}))
    throw text::InputError("--trace has no effect with --search " + search);
  if (steps->count() > 0 && options.search != Search::exact)
    throw text::InputError("--steps has no effect with --search " + search);
  if (any({Search::best_path, Search::rnnt_greedy}) && options.n_best > 1)
    throw text::InputError("--n-best: " + std::to_string(options.n_best) + ": --search " + search + " finds one text");
  if (options.n_best > options.beam && any({Search::beam, Search::rnnt_beam}))
    throw text::InputError("--n-best: " + std::to_string(options.n_best) + ": the beam has " +
                           std::to_string(options.beam));
  if (ngram.empty() && weight->count() + bonus->count() > 0)
    throw text::InputError("--ngram-weight and --ngram-bonus have no effect without --ngram");
  options.model = model, options.lexicon = lexicon, options.ngram = ngram, options.bias = bias, options.trace = trace;
  options.frames = frames;
  if (pattern->count() > 0) options.regex = regex;
  return options;
}

}  // namespace read_line

// SPDX-License-Identifier: Apache-2.0
#include <text/command_line.hpp>
#include <text/lines.hpp>

#include <build_ngram/options.hpp>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>

namespace build_ngram {

std::optional<Options> parse(int argc, char const* const* argv) {
  Options options;
  std::string text, tokenizer, arpa, out, out_arpa, check, in, score;
  double unknown = 0;
  text::CommandLine app("Trains n-grams from text, or reads them from ARPA files; .gz and .zst are read too.",
                        "build_ngram");
  app.add("--text", text, "FILE", "sentences to train from, one per line, words with spaces between them");
  auto* const order =
      app.add("--order", options.order, "N", "words of the longest n-grams (3)")->check(text::whole(1, 16));
  auto* const fallback =
      app.add_flag("--fallback", options.fallback, "discounts of 0.5, 1 and 1.5 where counts give none");
  app.add("--tokenizer", tokenizer, "FILE", "a model of SentencePiece: its pieces are the words of --text or --score");
  app.add("--arpa", arpa, "FILE", "instead of --text: n-grams in ARPA format");
  auto* const missing = app.add("--unknown", unknown, "X", "log10 of the probability of <unk>, if --arpa has none")
                            ->check(text::number<double>([](double x) { return x <= 0 && std::isfinite(x); }, " <= 0"));
  app.add("--out", out, "FILE", "file to write the table to");
  app.add("--out-arpa", out_arpa, "FILE", "file to write it to in ARPA format");
  app.add_flag("--quantise", options.quantise, "codes of 8 bits for probabilities of several words");
  app.add("--check", check, "FILE", "instead: check every byte of a table");
  app.add("--in", in, "FILE", "instead, with --score: a table");
  app.add("--score", score, "FILE", "show the perplexity of the sentences of a file");
  if (!app.read(argc, argv)) return std::nullopt;

  auto const need = [](bool holds, char const* rule) {
    if (!holds) throw text::InputError(rule);
  };
  auto const building = !text.empty() || !arpa.empty() || !out.empty() || !out_arpa.empty();
  need(building + !check.empty() + !in.empty() == 1,
       "one of --text or --arpa, --check, and --in with --score is required");
  need(in.empty() == score.empty(), "--in and --score go together");
  if (building) {
    need(text.empty() != arpa.empty(), "one of --text and --arpa is required");
    need(!out.empty() || !out_arpa.empty(), "--out or --out-arpa is required");
    need(arpa.empty() || tokenizer.empty(), "--tokenizer has no effect with --arpa");
    need(arpa.empty() || (order->count() == 0 && fallback->count() == 0),
         "--order and --fallback have no effect with --arpa");
    need(text.empty() || missing->count() == 0, "--unknown has no effect with --text");
  } else {
    need(order->count() == 0 && fallback->count() == 0 && missing->count() == 0 && !options.quantise,
         "--order, --fallback, --unknown and --quantise have no effect without --text or --arpa");
    need(check.empty() || tokenizer.empty(), "--tokenizer has no effect with --check");
  }
  using Task = Options::Task;
  options.task = !text.empty() ? Task::train : building ? Task::convert : check.empty() ? Task::score : Task::check;
  options.text = score.empty() ? text : score;
  options.tokenizer = tokenizer, options.arpa = arpa, options.out = out, options.out_arpa = out_arpa;
  options.in = check.empty() ? in : check;
  if (missing->count() > 0) options.unknown = unknown;
  return options;
}

}  // namespace build_ngram

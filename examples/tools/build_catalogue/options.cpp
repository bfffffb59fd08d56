// SPDX-License-Identifier: Apache-2.0
#include <sluice/catalogue/catalogue_builder.hpp>

#include <text/command_line.hpp>
#include <text/lines.hpp>

#include <build_catalogue/options.hpp>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

namespace build_catalogue {

std::optional<Options> parse(int argc, char const* const* argv) {
  Options options;
  std::string tokens, text, tokenizer, out, numbers, check, in, duplicates = "refuse";
  text::CommandLine app("Builds a catalogue of the items that a search may generate, one per line.", "build_catalogue");
  app.add("--tokens", tokens, "FILE", "items as token numbers, with spaces between them");
  app.add("--text", text, "FILE", "items as text, which --tokenizer splits into tokens");
  app.add("--tokenizer", tokenizer, "FILE", "a model of SentencePiece");
  app.add("--out", out, "FILE", "file to write the catalogue to");
  app.add("--numbers", numbers, "FILE", "file to write each line's item number to, one per line");
  app.add("--duplicates", duplicates, "WAY", "refuse or count duplicate items (refuse)")
      ->check(text::one_of({"refuse", "count"}));
  app.add("--check", check, "FILE", "instead: check every byte of a catalogue");
  app.add("--in", in, "FILE", "instead, with --look: a catalogue");
  auto* const look = app.add("--look", options.prefix, "PREFIX",
                             "show items with this prefix: tokens, or text with --tokenizer; \"\" for all");
  auto* const most = app.add("--most", options.most, "N", "maximum number of items shown (10)")->check(text::whole(1));
  if (!app.read(argc, argv)) return std::nullopt;

  auto const need = [](bool holds, char const* rule) {
    if (!holds) throw text::InputError(rule);
  };
  auto const building = !tokens.empty() || !text.empty() || !out.empty();
  need(building + !check.empty() + !in.empty() == 1,
       "one of --tokens or --text, --check, and --in with --look is required");
  need(in.empty() == (look->count() == 0), "--in and --look go together");
  need(most->count() == 0 || !in.empty(), "--most has no effect without --look");
  if (building) {
    need(tokens.empty() != text.empty(), "one of --tokens and --text is required");
    need(!out.empty(), "--out is required");
    need(text.empty() || !tokenizer.empty(), "--text needs --tokenizer");
    need(tokens.empty() || tokenizer.empty(), "--tokenizer has no effect with --tokens");
  } else {
    need(numbers.empty(), "--numbers has no effect without --tokens or --text");
    need(check.empty() || tokenizer.empty(), "--tokenizer has no effect with --check");
  }
  using Task = Options::Task;
  options.task = building ? Task::build : check.empty() ? Task::look : Task::check;
  options.tokens = tokens, options.text = text, options.tokenizer = tokenizer, options.out = out;
  options.numbers = numbers, options.in = check.empty() ? in : check;
  if (duplicates == "count") options.duplicates = sluice::Duplicates::count;
  return options;
}

}  // namespace build_catalogue

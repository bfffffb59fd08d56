// SPDX-License-Identifier: Apache-2.0
#include <sluice/catalogue/catalogue_builder.hpp>
#include <sluice/version.hpp>

#include <text/lines.hpp>

#include <CLI/CLI.hpp>

#include <build_catalogue/options.hpp>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

namespace build_catalogue {

namespace {

CLI::Validator positive() {
  return {[](std::string const& value) {
            std::size_t x = 0;
            auto const* const end = value.data() + value.size();
            auto const [rest, error] = std::from_chars(value.data(), end, x);
            if (rest == end && error == std::errc() && x >= 1) return std::string();
            return "'" + value + "' is not a number from 1 on";
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
  Options options;
  std::string tokens, text, tokenizer, out, numbers, check, in, duplicates = "refuse";
  CLI::App app("Builds a catalogue of the items that a search may generate, one per line.", "build_catalogue");
  app.set_version_flag("--version", "build_catalogue (sluice " + std::to_string(SLUICE_VERSION_MAJOR) + "." +
                                        std::to_string(SLUICE_VERSION_MINOR) + "." +
                                        std::to_string(SLUICE_VERSION_PATCH) + ")");
  app.get_formatter()->column_width(34);
  auto const add = [&](char const* name, auto& value, char const* type, char const* what) {
    return app.add_option(name, value, what)->type_name(type);
  };
  add("--tokens", tokens, "FILE", "items as token numbers, with spaces between them");
  add("--text", text, "FILE", "items as text, which --tokenizer splits into tokens");
  add("--tokenizer", tokenizer, "FILE", "a model of SentencePiece");
  add("--out", out, "FILE", "file to write the catalogue to");
  add("--numbers", numbers, "FILE", "file to write each line's item number to, one per line");
  add("--duplicates", duplicates, "WAY", "refuse or count duplicate items (refuse)")->check(one_of("refuse", "count"));
  add("--check", check, "FILE", "instead: check every byte of a catalogue");
  add("--in", in, "FILE", "instead, with --look: a catalogue");
  auto* const look = add("--look", options.prefix, "PREFIX",
                         "show items with this prefix: tokens, or text with --tokenizer; \"\" for all");
  auto* const most = add("--most", options.most, "N", "maximum number of items shown (10)")->check(positive());
  try {
    app.parse(argc, argv);
  } catch (CLI::Success const& asked) {
    app.exit(asked);
    return std::nullopt;
  } catch (CLI::ParseError const& error) {
    throw text::InputError(error.what());
  }

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

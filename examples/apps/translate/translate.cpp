// SPDX-License-Identifier: Apache-2.0
// translate: text in, text out, with every search and schedule of the library.

#include <text/lines.hpp>
#include <translate/decoders.hpp>
#include <translate/fingerprint.hpp>
#include <translate/options.hpp>
#include <translate/progress.hpp>
#include <translate/results.hpp>
#include <translate/shares.hpp>
#include <translate/translation.hpp>

#include <cstdint>
#include <iostream>
#include <memory>
#include <utility>

namespace {

/// The lines that were asked for, and their file.
translate::Share make_share(translate::Options const& options, translate::Resources& resources,
                            translate::Progress& progress) {
  auto& input = resources.input;
  translate::refuse_input(options.output, options.input);
  auto part = input.whole();
  if (options.shard) {
    auto const [index, count] = *options.shard;
    auto const cut = [&](std::uint64_t i) {  // size * i / count, which may be too large to multiply
      return part.end / count * i + part.end % count * i / count;
    };
    part = input.part(cut(index), cut(index + 1));
  }
  translate::Destination where{
      .file = options.output, .format = translate::format_of_name(options.output), .at_once = !input.count()};
  if (options.resume) where.journal = translate::fingerprint(options, input);
  auto say = [&progress](std::string const& message) { progress.say(message); };
  return {part, std::make_unique<translate::Results>(std::move(where), part.before, say)};
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  return text::run_program("translate", [&]() -> int {
    auto options = translate::parse(argc, argv);
    if (!options) return translate::fine;
    translate::check_files(*options);
    translate::Resources resources(*options);
    if (!options->window) options->window = resources.input.window(options->batch);
    auto const decoders = translate::make_decoders(*options, resources.models, resources.restrictions);
    translate::Progress progress(options->progress);
    translate::OneShare share(make_share(*options, resources, progress));
    auto const code = translate::Translation(*options, resources, *decoders, share, progress).run();
    resources.models.save();
    return code;
  });
}

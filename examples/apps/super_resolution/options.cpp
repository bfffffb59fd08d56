// SPDX-License-Identifier: Apache-2.0
#include <sluice/version.hpp>

#include <text/lines.hpp>

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdint>
#include <string>
#include <super_resolution/options.hpp>
#include <system_error>

namespace super_resolution {

namespace {

/// CLI11 takes -1 for the largest number there is, and 2.5 for 2.
CLI::Validator whole(std::int32_t lowest, std::int32_t highest) {
  return {[=](std::string const& value) {
            std::int32_t x = 0;
            auto const* const end = value.data() + value.size();
            auto const [rest, error] = std::from_chars(value.data(), end, x);
            if (rest == end && error == std::errc() && x >= lowest && x <= highest) return std::string();
            return "'" + value + "' is not a number from " + std::to_string(lowest) + " to " + std::to_string(highest);
          },
          ""};
}

}  // namespace

std::optional<Options> parse(int argc, char const* const* argv) {
  Options options;
  std::string model = SLUICE_EXAMPLE_MODEL, input, output;

  CLI::App app("Enlarges grey images of 4 x 4 pixels to 16 x 16, greedily and block by block, and compares.",
               "super_resolution");
  app.set_version_flag("--version", "super_resolution (sluice " + std::to_string(SLUICE_VERSION_MAJOR) + "." +
                                        std::to_string(SLUICE_VERSION_MINOR) + "." +
                                        std::to_string(SLUICE_VERSION_PATCH) + ")");
  app.get_formatter()->column_width(34);
  auto const add = [&](char const* name, auto& value, char const* type, std::string const& what) {
    return app.add_option(name, value, what)->type_name(type);
  };
  add("--model", model, "DIR", "folder of model.safetensors and heads.safetensors (the one that ships)");
  add("--input", input, "FILE",
      "binary PGM of images one below the other, 16 pixels wide or 4 (samples.pgm of the model)");
  add("--images", options.images, "N", "only the first N images (all)")->check(whole(1, 1 << 20));
  add("--block", options.blocks, "K,...", "largest blocks to try (1,2,4,6,8)")->delimiter(',')->check(whole(1, 256));
  add("--epsilon", options.epsilon, "E", "maximum difference of a kept guess, in levels (2)")->check(whole(0, 255));
  add("--batch", options.batch, "N", "images in a call of the model (64)")->check(whole(1, 1 << 20));
  add("--output", output, "DIR", "folder for sheet.png and the enlarged images as PGM files");
  try {
    app.parse(argc, argv);
  } catch (CLI::Success const& asked) {
    app.exit(asked);
    return std::nullopt;
  } catch (CLI::ParseError const& error) {
    throw text::InputError(error.what());
  }
  options.model = model, options.output = output;
  options.input = input.empty() ? options.model / "samples.pgm" : std::filesystem::path(input);
  return options;
}

}  // namespace super_resolution

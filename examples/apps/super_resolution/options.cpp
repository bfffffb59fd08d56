// SPDX-License-Identifier: Apache-2.0

#include <text/command_line.hpp>
#include <text/lines.hpp>

#include <cstdint>
#include <string>
#include <super_resolution/options.hpp>

namespace super_resolution {

std::optional<Options> parse(int argc, char const* const* argv) {
  Options options;
  std::string model = SLUICE_EXAMPLE_MODEL, input, output;

  text::CommandLine app("Enlarges grey images of 4 x 4 pixels to 16 x 16, greedily and block by block, and compares.",
                        "super_resolution");
  app.add("--model", model, "DIR", "folder of model.safetensors and heads.safetensors (the one that ships)");
  app.add("--input", input, "FILE",
          "binary PGM of images one below the other, 16 pixels wide or 4 (samples.pgm of the model)");
  app.add("--images", options.images, "N", "only the first N images (all)")->check(text::whole(1, 1 << 20));
  app.add("--block", options.blocks, "K,...", "largest blocks to try (1,2,4,6,8)")
      ->delimiter(',')
      ->check(text::whole(1, 256));
  app.add("--epsilon", options.epsilon, "E", "maximum difference of a kept guess, in levels (2)")
      ->check(text::whole(0, 255));
  app.add("--batch", options.batch, "N", "images in a call of the model (64)")->check(text::whole(1, 1 << 20));
  app.add("--output", output, "DIR", "folder for sheet.png and the enlarged images as PGM files");
  if (!app.read(argc, argv)) return std::nullopt;
  options.model = model, options.output = output;
  options.input = input.empty() ? options.model / "samples.pgm" : std::filesystem::path(input);
  return options;
}

}  // namespace super_resolution

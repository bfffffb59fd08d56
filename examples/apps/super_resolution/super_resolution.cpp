// SPDX-License-Identifier: Apache-2.0
// super_resolution: small images in, large ones out: greedily, by exact blocks, by blocks that may be off by epsilon.

#include <sluice/search/greedy.hpp>
#include <sluice/speculative/acceptance.hpp>
#include <sluice/speculative/blockwise.hpp>

#include <text/lines.hpp>

#include <Eigen/Core>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <super_resolution/images.hpp>
#include <super_resolution/options.hpp>
#include <super_resolution/sheet.hpp>
#include <super_resolution/upscaler.hpp>
#include <system_error>
#include <utility>
#include <vector>

namespace super_resolution {

namespace {

enum Code : int { fine = 0, image_failed = 1, bad_input = 2 };

constexpr std::size_t sheet_rows = 32;

std::string psnr(std::vector<Image> const& images, std::vector<Image> const& originals) {
  if (originals.empty()) return "-";
  char text[16];
  std::snprintf(text, sizeof text, "%.2f", compare(images, originals).psnr);
  return text;
}

void make_folder(std::filesystem::path const& folder) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem || !std::filesystem::is_directory(folder))
    throw text::InputError(folder.string() + ": cannot be made a folder");
}

std::vector<std::int32_t> choose_blocks(Options const& options, std::int32_t longest) {
  for (auto const block : options.blocks)
    if (block > longest)
      throw text::InputError("--block: " + std::to_string(block) +
                             ": the heads of this model allow blocks of at most " + std::to_string(longest));
  if (!options.blocks.empty() || longest == 1) return options.blocks;
  std::vector<std::int32_t> blocks{1, 2, 4, 6, 8};
  std::erase_if(blocks, [&](auto block) { return block > longest; });
  return blocks;
}

Code run(Options const& options) {
  Eigen::setNbThreads(1);
  Upscaler upscaler(options.model);
  auto const blocks = choose_blocks(options, upscaler.longest_block());
  auto images = read_images(options.input);
  if (options.images > images.size())
    throw text::InputError("--images: " + std::to_string(options.images) + ": " + options.input.string() + " holds " +
                           std::to_string(images.size()));
  if (options.images > 0) images.resize(options.images);
  if (!options.output.empty()) make_folder(options.output);
  auto const keep = [&](std::string const& name, std::vector<Image> const& some) {
    if (!options.output.empty()) write_images(options.output / (name + ".pgm"), some);
  };
  std::vector<Image> originals;
  if (side(images[0]) == large_size) originals = std::exchange(images, {});
  for (auto const& original : originals) images.push_back(shrink(original));
  std::vector<Image> interpolated;
  for (auto const& image : images) interpolated.push_back(interpolate(image));

  sluice::LengthLimits const all{.max = length};
  auto const greedy = upscaler.enlarge(upscaler.model(), images, sluice::Greedy{.length = all}, options.batch);
  keep("greedy", greedy.images);
  std::printf("images: %zu, in batches of %zu; PSNR to the originals, in dB\n", images.size(), options.batch);
  std::printf("interpolated: PSNR %s\n", psnr(interpolated, originals).c_str());
  std::printf("greedy: %ju calls, %.2f s, PSNR %s\n", static_cast<std::uintmax_t>(greedy.statistics.model_calls),
              greedy.seconds, psnr(greedy.images, originals).c_str());
  if (!blocks.empty())
    std::printf("\n%5s  %-10s  %8s  %6s  %6s  %6s  %10s  %6s\n", "block", "accept", "accepted", "calls", "s", "equal",
                "difference", "PSNR");
  std::vector<Image> relaxed_most;
  auto const report = [&](std::int32_t block, std::string const& rule, Outcome const& outcome) {
    auto const [difference, unused, equal] = compare(outcome.images, greedy.images);
    std::printf("%5d  %-10s  %8.2f  %6ju  %6.2f  %6lld  %10.3f  %6s\n", block, rule.c_str(), outcome.block,
                static_cast<std::uintmax_t>(outcome.statistics.model_calls), outcome.seconds,
                static_cast<long long>(equal), difference, psnr(outcome.images, originals).c_str());
    auto name = rule + "-" + std::to_string(block);
    std::ranges::replace(name, ' ', '-');
    keep(name, outcome.images);
  };
  for (auto const block : blocks) {
    using sluice::Blockwise;
    namespace acceptance = sluice::acceptance;
    auto const exact = upscaler.enlarge(upscaler.guessing(), images,
                                        Blockwise<acceptance::Exact>{.block = block, .length = all}, options.batch);
    report(block, "exact", exact);
    if (exact.images != greedy.images) throw std::runtime_error("blocks that should be exact differ from greedy");
    auto const relaxed = upscaler.enlarge(
        upscaler.guessing(), images,
        Blockwise<acceptance::Distance>{.block = block, .accept = {.epsilon = options.epsilon}, .length = all},
        options.batch);
    report(block, "distance " + std::to_string(options.epsilon), relaxed);
    relaxed_most = relaxed.images;
  }

  if (options.output.empty()) return fine;
  std::vector<std::vector<Image>> rows;
  for (std::size_t i = 0; i < std::min(images.size(), sheet_rows); ++i) {
    rows.push_back({images[i], greedy.images[i]});
    if (!blocks.empty()) rows.back().push_back(relaxed_most[i]);
    if (!originals.empty()) rows.back().push_back(originals[i]);
  }
  write_sheet(options.output / "sheet.png", rows);
  return fine;
}

}  // namespace

}  // namespace super_resolution

int main(int argc, char** argv) {
  return text::run_program("super_resolution", [&]() -> int {
    auto const options = super_resolution::parse(argc, argv);
    return options ? super_resolution::run(*options) : super_resolution::fine;
  });
}

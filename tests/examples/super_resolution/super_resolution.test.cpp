// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/query.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/speculative/acceptance.hpp>
#include <sluice/speculative/blockwise.hpp>

#include <support/catch.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <super_resolution/images.hpp>
#include <super_resolution/upscaler.hpp>
#include <vector>

using namespace sluice;
using namespace super_resolution;

namespace {

std::filesystem::path const folder = std::filesystem::path(SLUICE_SOURCE_DIR) / "examples/apps/super_resolution/model";
LengthLimits const all{.max = super_resolution::length};

std::vector<Image> small_images(std::size_t count) {
  std::vector<Image> small;
  for (auto const& large : read_images(folder / "samples.pgm")) small.push_back(shrink(large));
  small.resize(count);
  return small;
}

/// What the model itself would put in each place of an image, given the pixels before it.
std::vector<Token> choices(Upscaler& upscaler, Image const& small, Image const& large) {
  auto const enlarged = interpolate(small);
  std::vector<Token> const source(enlarged.begin(), enlarged.end());
  std::vector<Token> tokens{256};
  tokens.insert(tokens.end(), large.begin(), large.end() - 1);
  auto const* const one = &source;
  Slot const slot = 0;
  auto& model = upscaler.model();
  model.start({&one, 1}, {&slot, 1});
  Row const row{0, 0, 0, tokens, super_resolution::length};
  auto const hidden = model.step({&row, 1});
  std::vector<Edit> const never{{256, -std::numeric_limits<float>::infinity(), 1}};
  std::vector<Query> const queries(tokens.size(), Query{.best = 1, .edits = never, .stage = Stage::after_softmax});
  std::vector<Group> const groups(tokens.size(), Group{.lines = 1});
  auto projection = upscaler.projection();
  auto const answer = projection.expand(hidden, queries, groups);
  std::vector<Token> result;
  for (std::size_t i = 0; i < tokens.size(); ++i) result.push_back(answer[i].best[0].token);
  return result;
}

}  // namespace

TEST_CASE("images are shrunk, interpolated and compared", "[super_resolution]") {
  Image large(256);
  for (std::size_t i = 0; i < 256; ++i) large[i] = static_cast<std::uint8_t>(i % 16 * 10);
  auto const small = shrink(large);
  CHECK(small == Image{15, 55, 95, 135, 15, 55, 95, 135, 15, 55, 95, 135, 15, 55, 95, 135});
  auto const interpolated = interpolate(small);
  REQUIRE(interpolated.size() == 256);
  CHECK(Image(interpolated.begin(), interpolated.begin() + 16) ==
        Image{15, 15, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 135, 135});
  CHECK(interpolate(Image(16, 77)) == Image(256, 77));
  CHECK(shrink(Image(256, 255)) == Image(16, 255));

  auto const same = compare({large}, {large});
  CHECK(same.difference == 0);
  CHECK(std::isinf(same.psnr));
  CHECK(same.equal == 1);
  auto const differs = compare({Image(256, 10), Image(256, 10)}, {Image(256, 20), Image(256, 10)});
  CHECK(differs.difference == 5);
  CHECK(std::abs(differs.psnr - 10 * std::log10(255 * 255 / 50.0)) < 1e-9);
  CHECK(differs.equal == 1);
}

TEST_CASE("exact blocks give the pixels of greedy, relaxed ones stay near the model's own choice",
          "[super_resolution]") {
  Upscaler upscaler(folder);
  auto const small = small_images(2);
  auto const greedy = upscaler.enlarge(upscaler.model(), small, Greedy{.length = all}, 2).images;
  for (std::size_t i = 0; i < small.size(); ++i)
    CHECK(choices(upscaler, small[i], greedy[i]) == std::vector<Token>(greedy[i].begin(), greedy[i].end()));

  CHECK(upscaler.longest_block() >= 8);
  auto const blocks = [&](std::int32_t block, auto rule) {
    return upscaler.enlarge(upscaler.guessing(), small,
                            Blockwise<decltype(rule)>{.block = block, .accept = rule, .length = all}, 2);
  };
  for (auto const block : {3, upscaler.longest_block()}) {
    auto const exact = blocks(block, acceptance::Exact{});
    CHECK(exact.images == greedy);
    CHECK(exact.block >= 1);
    CHECK(exact.block <= block);
    CHECK(blocks(block, acceptance::Distance{0}).images == greedy);
    for (auto const epsilon : {2, 6}) {
      auto const relaxed = blocks(block, acceptance::Distance{epsilon});
      CHECK(relaxed.block <= block);
      auto off = 0;
      for (std::size_t i = 0; i < small.size(); ++i) {
        auto const own = choices(upscaler, small[i], relaxed.images[i]);
        for (std::size_t p = 0; p < own.size(); ++p) {
          auto const distance = std::abs(own[p] - relaxed.images[i][p]);
          CHECK(distance <= epsilon);
          off += distance > 0;
        }
      }
      CHECK(off > 0);
    }
  }
}

TEST_CASE("an enlarged image does not depend on those beside it", "[super_resolution]") {
  Upscaler upscaler(folder);
  auto const small = small_images(3);
  Blockwise<acceptance::Distance> const search{.block = 6, .accept = acceptance::Distance{2}, .length = all};
  auto const together = upscaler.enlarge(upscaler.guessing(), small, search, 3);
  for (std::size_t const batch : {1u, 2u}) {
    auto const apart = upscaler.enlarge(upscaler.guessing(), small, search, batch);
    CHECK(apart.images == together.images);
    CHECK(apart.block == together.block);
    CHECK(apart.statistics.model_calls > together.statistics.model_calls);
  }
}

// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/catalogues.md.
#include <sluice/catalogue/catalogue.hpp>
#include <sluice/catalogue/catalogue_beam.hpp>
#include <sluice/catalogue/catalogue_builder.hpp>
#include <sluice/catalogue/in_catalogue.hpp>
#include <sluice/output/shortlist_projection.hpp>
#include <sluice/sluice.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <ios>
#include <iostream>
#include <random>
#include <span>
#include <string>
#include <unistd.h>
#include <variant>
#include <vector>

namespace {

using sluice::Token;

constexpr std::int32_t size = 3 + 3 * 8;  // padding, bos, eos; eight codes for each of three positions
constexpr std::ptrdiff_t d = 4;

/// Hidden vectors that depend on the number of tokens and the last one.
class Recommender {
 public:
  using Source = std::monostate;

  static sluice::Vocabulary vocabulary() { return {.size = size, .bos = 1, .eos = {2}, .never = {0, 1}}; }
  static void start(std::span<Source const* const>, std::span<sluice::Slot const>) {}
  sluice::Hidden<float> step(std::span<sluice::Row const> rows) {
    answer_.clear();
    for (auto const& row : rows)
      for (std::ptrdiff_t k = 0; k < d; ++k)
        answer_.push_back(0.1f * static_cast<float>((row.tokens.back() * 7 + row.length * 5 + k * 11) % 13) - 0.6f);
    return sluice::hidden(answer_.data(), std::ssize(rows), d);
  }

 private:
  std::vector<float> answer_;
};

/// Weights [size, d].
std::vector<float> draw_weights() {
  std::mt19937 random(1);
  std::vector<float> weights(static_cast<std::size_t>(size * d));
  for (auto& x : weights) x = static_cast<float>(random() % 200) * 0.01f - 1;
  return weights;
}

/// Some items of three codes.
std::vector<std::vector<Token>> draw_items() {
  std::vector<std::vector<Token>> items;
  for (int i = 0; i < 100; ++i) items.push_back({3 + i * i % 8, 11 + i % 7, 19 + i * 5 % 8});
  return items;
}

void print(sluice::Result const& result, sluice::Catalogue const& catalogue) {
  for (auto const& h : result.hypotheses)
    std::cout << "item " << *catalogue.item_of(h.tokens) << ' ' << h.score << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  // Prints the part that is named, or all.
  auto const part = [&](std::string const& name) {
    std::cout.clear();
    if (argc > 1 && argv[1] != name) std::cout.setstate(std::ios::failbit);
  };
  std::cout << std::fixed << std::setprecision(2);
  auto const name = "sluice-snippet-items." + std::to_string(::getpid()) + ".cat";  // others run at the same time
  auto const file = (std::filesystem::temp_directory_path() / name).string();
  auto const sequences = draw_items();
  // [build]
  sluice::CatalogueBuilder builder(sluice::Duplicates::count);
  for (auto const& tokens : sequences) builder.add(tokens);
  {
    std::ofstream stream(file, std::ios::binary);
    builder.build().write(stream);
  }
  auto const numbers = builder.items();  // the item number of each sequence, in the order added

  auto const catalogue = sluice::Catalogue::open(file);  // mapped, read-only
  // [/build]
  auto const weights = draw_weights();
  sluice::MatrixView<float const> const layer{weights.data(), size, d, d};
  Recommender model;
  part("search");
  // [search]
  sluice::CatalogueBeam search{
      .beam = {.width = 8, .n_best = 3}, .items = sluice::InCatalogue(catalogue), .among = sluice::Among::children};
  sluice::ProbeProjection const output(layer);  // computes the logits of the children only

  std::vector<std::monostate> const sources(1);
  auto const results = sluice::decode(model, sources, search, sluice::Batched{}, output);
  for (auto const& h : results[0].hypotheses)
    std::cout << "item " << *catalogue.item_of(h.tokens) << ' ' << h.score << '\n';
  // [/search]
  auto const best = *catalogue.item_of(results[0].hypotheses[0].tokens);
  part("off");
  // [off]
  std::vector<sluice::Item> const gone{numbers[3], numbers[7]}, seen{best};
  sluice::SwitchedOff const sold_out(catalogue, gone);  // shared by all requests
  search.items = sluice::InCatalogue(catalogue, sluice::SwitchedOff(catalogue, seen, sold_out));
  // [/off]
  print(sluice::decode(model, sources, search, sluice::Batched{}, output)[0], catalogue);
  part("rule");
  // [rule]
  sluice::Sample const sample{.samples = 3};
  auto const sampled =
      sluice::decode(model, sources, sample, sluice::InCatalogue(catalogue), sluice::Batched{}, output);
  // [/rule]
  print(sampled[0], catalogue);
  part("refused");
  // [refused]
  search.beam.length.max = 3;
  std::cout << sluice::decode(model, sources, search, sluice::Batched{}, output)[0].message << '\n';
  // [/refused]
  std::filesystem::remove(file);
  return 0;
}

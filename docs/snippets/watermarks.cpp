// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/watermarks.md.
#include <sluice/processor/penalties.hpp>
#include <sluice/watermark/detect_watermark.hpp>

#include "typist.hpp"

#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

namespace {

using sluice::decode;

void mark(Typist& model, sluice::DenseProjection const& keyboard) {
  // [mark]
  sluice::Watermark const watermark{.scheme = sluice::WatermarkScheme::gumbel, .key = sluice::WatermarkKey(2026)};
  std::vector<std::string> const sources{"thequickbrownfoxjumpsoverthelazydogandrunsawayfromthewateringplace"};
  sluice::Sample const search{.temperature = 2, .watermark = watermark};
  auto const text = decode(model, sources, search, {}, keyboard)[0].hypotheses[0].tokens;

  auto const found = sluice::detect_watermark(text, watermark);
  auto other = watermark;
  other.key = sluice::WatermarkKey(2027);
  std::cout << Typist::text(text) << "\nscore " << found.score << " of " << found.scored << " tokens, p "
            << found.p_value << "; with another key " << detect_watermark(text, other).p_value << '\n';
  // [/mark]
}

void green(Typist& model, sluice::DenseProjection const& keyboard) {
  std::vector<std::string> const sources{"thequickbrownfoxjumpsoverthelazydogandrunsawayfromthewateringplace"};
  // [green]
  sluice::Watermark const watermark{
      .scheme = sluice::WatermarkScheme::red_green, .key = sluice::WatermarkKey(2026), .gamma = 0.5f, .delta = 3};
  sluice::BeamSearch const search{.width = 4};
  sluice::GreenList const green{watermark};
  auto const text = decode(model, sources, search, green, sluice::Batched{}, keyboard)[0].hypotheses[0].tokens;
  auto const found = sluice::detect_watermark(text, watermark);
  std::cout << found.score << " of " << found.scored << " tokens are green, p " << found.p_value << '\n';
  // [/green]
}

}  // namespace

/// Runs both; prints the one that is named, or both.
int main(int argc, char** argv) {
  std::cout << std::setprecision(3);
  std::string const only = argc > 1 ? argv[1] : "";
  Typist model;
  auto const keyboard = Typist::keyboard();
  if (only.empty() || only == "mark") mark(model, keyboard);
  if (only.empty() || only == "green") green(model, keyboard);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// A model of two lines, decoded.
#include <sluice/sluice.hpp>

#include <cstdio>
#include <variant>

namespace {

// After token t comes t + 1; token 3 ends.
struct Counter {
  using Source = std::monostate;
  std::vector<float> lines{};

  sluice::Vocabulary vocabulary() const { return {.size = 4, .bos = 0, .eos = {3}}; }
  void start(std::span<Source const* const>, std::span<sluice::Slot const>) {}
  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    lines.assign(rows.size() * 4, 0.0f);
    for (std::size_t i = 0; i < rows.size(); ++i) lines[i * 4 + static_cast<std::size_t>(rows[i].tokens[0]) + 1] = 9.0f;
    return sluice::scores(lines.data(), std::ssize(rows), 4);
  }
};

}  // namespace

int main() {
  std::printf("sluice %d.%d.%d\n", sluice::version.major, sluice::version.minor, sluice::version.patch);
  Counter model;
  auto const results = sluice::decode(model, std::vector<std::monostate>(2), sluice::BeamSearch{.width = 2});
  for (auto const& result : results)
    if (!result.ok() || result.hypotheses.at(0).tokens != std::vector<sluice::Token>{1, 2, 3}) return 1;
  return 0;
}

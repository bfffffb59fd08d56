// SPDX-License-Identifier: Apache-2.0
// The snippet of docs/model.md about checking a model.
#include <sluice/model/checked.hpp>
#include <sluice/sluice.hpp>

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <span>
#include <vector>

namespace {

/// The next token depends on the sum of those before. With `hasty`, each row forks and appends before the next one does.
class Adder {
 public:
  using Source = sluice::Token;
  static constexpr sluice::Abilities abilities{.ragged = true};

  explicit Adder(bool hasty) : hasty_(hasty) {}
  sluice::Vocabulary vocabulary() const { return {.size = size, .bos = 0, .eos = {1}, .never = {0}}; }

  void start(std::span<Source const* const> sources, std::span<sluice::Slot const> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) sums_[slots[i]] = *sources[i];
  }
  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    scores_.clear();
    for (auto const& row : rows) {
      sums_[row.to] = sums_[row.from];
      if (hasty_) append(row);
    }
    for (auto const& row : rows)
      if (!hasty_) append(row);
    return sluice::scores(scores_.data(), std::ssize(rows), size);
  }

 private:
  static constexpr std::int32_t size = 20;

  void append(sluice::Row const& row) {
    auto const sum = sums_[row.to] += row.tokens[0] + 1;
    for (std::int32_t v = 0; v < size; ++v) scores_.push_back(static_cast<float>((sum * 7 + v * v) % 11));
  }

  bool hasty_;
  std::map<sluice::Slot, std::int32_t> sums_;
  std::vector<float> scores_;
};

// [check]
template <sluice::Model M>
void check(M& model, std::vector<typename M::Source> const& sources) {
  sluice::Checked checked(model, {.every = 4, .tolerance = 1e-3});
  sluice::decode(checked, sources, sluice::BeamSearch{.width = 4, .length = {.max = 20}});
  if (checked.violations().empty()) std::cout << "nothing is wrong with it\n";
  else std::cout << checked.violations().front() << '\n';
}
// [/check]

}  // namespace

int main() {
  std::vector<sluice::Token> const sources{3, 9, 4, 17};
  Adder good(false), hasty(true);
  check(good, sources);
  check(hasty, sources);
  return 0;
}

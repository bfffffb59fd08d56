// SPDX-License-Identifier: Apache-2.0
// The one translation unit of the code base that is C++20 and includes sluice.
// [adapter]
#include "translator.hpp"

#include <sluice/model/any_model.hpp>
#include <sluice/sluice.hpp>

namespace app {
namespace {

class Adapter {
 public:
  using Source = std::string;
  explicit Adapter(Model& model) : model_(&model) {}

  sluice::Vocabulary vocabulary() const { return {model_->vocabulary_size(), 0, {model_->end_token()}, {0}}; }
  void start(std::span<Source const* const> sources, std::span<sluice::Slot const> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) model_->begin(slots[i], *sources[i]);
  }
  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    logits_.clear();
    for (auto const& row : rows)
      if (row.from != row.to) model_->copy(row.from, row.to);
    for (auto const& row : rows) {
      auto const line = model_->next(row.to, row.tokens[0]);
      logits_.insert(logits_.end(), line.begin(), line.end());
    }
    return sluice::scores(logits_.data(), std::ssize(rows), model_->vocabulary_size());
  }

 private:
  Model* model_;
  std::vector<float> logits_;
};

}  // namespace

std::vector<Translation> translate(Model& model, std::vector<std::string> const& sources, int beam) {
  sluice::AnyModel<std::string> any{Adapter(model)};
  std::vector<Translation> out;
  for (auto const& result : sluice::decode(any, sources, sluice::BeamSearch{.width = beam, .length = {.max = 20}})) {
    auto const& best = result.hypotheses.at(0);
    out.push_back({{best.tokens.begin(), best.tokens.end()}, best.score});
  }
  return out;
}

}  // namespace app
// [/adapter]

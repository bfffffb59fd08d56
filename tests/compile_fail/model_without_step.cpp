// SPDX-License-Identifier: Apache-2.0
// A class without step() is no Model, and the compiler names what is missing.
#include <sluice/core/model.hpp>

#include <span>

namespace {

struct NoModel {
  struct Source {};
  sluice::Vocabulary vocabulary() const { return {.size = 1}; }
  void start(std::span<Source const* const>, std::span<sluice::Slot const>) {}
#ifndef MUST_FAIL
  int step(std::span<sluice::Row const>) { return 0; }
#endif
};

template <sluice::Model M>
void needs_a_model(M&) {}

}  // namespace

void use();
void use() {
  NoModel model;
  needs_a_model(model);
}

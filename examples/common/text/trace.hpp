// SPDX-License-Identifier: Apache-2.0
/// \file
/// A trace that a command line may ask for.
#pragma once

#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/trace_file.hpp>

#include <cstdint>

namespace text {

/// What every decoder has as its trace: nothing, or a file.
struct Trace {
  sluice::TraceFile* file = nullptr;

  bool wants_entropy() const { return file != nullptr && file->wants_entropy(); }
  void began(std::uint64_t id, sluice::Sentence const& sentence) {
    if (file != nullptr) file->began(id, sentence);
  }
  void admitted(std::uint64_t id, sluice::Slot base, std::int32_t slots) {
    if (file != nullptr) file->admitted(id, base, slots);
  }
  void planned(sluice::StepPlan const& step) {
    if (file != nullptr) file->planned(step);
  }
  void answered(sluice::StepPlan const& step, sluice::Expansion const& answer) {
    if (file != nullptr) file->answered(step, answer);
  }
  void ended(sluice::Result const& result) {
    if (file != nullptr) file->ended(result);
  }
};

}  // namespace text

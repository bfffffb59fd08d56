// SPDX-License-Identifier: Apache-2.0
// LogSoftmaxTopK of the compiled library, for the processor that this file is compiled for.
#include <sluice/output/detail/compiled_log_softmax_top_k.hpp>

#undef SLUICE_COMPILED  // the class itself
#include <sluice/output/log_softmax_top_k.hpp>

#include <memory>
#include <span>

namespace sluice::inline v0::detail {

namespace {

struct LinesOf final : AnyExpander {
  explicit LinesOf(std::span<float const> bias) : expander(bias) {}
  Expansion expand(Scores<float> const& scores, std::span<Query const> queries,
                   std::span<Group const> groups) override {
    return expander.expand(scores, queries, groups);
  }
  sluice::SLUICE_ISA::LogSoftmaxTopK expander;
};

}  // namespace

std::unique_ptr<AnyExpander> make_log_softmax_top_k(std::span<float const> bias) {
  return std::make_unique<LinesOf>(bias);
}

}  // namespace sluice::inline v0::detail

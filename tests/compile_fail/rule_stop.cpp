// SPDX-License-Identifier: Apache-2.0
// A rule's stop() that would never be asked is refused.
#include <sluice/core/logits_processor_list.hpp>
#include <sluice/core/search.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/sluice.hpp>

struct Rule {
  using State = int;
  State initial(sluice::Sentence const&) const { return 0; }
  State next(State state, sluice::Token) const { return state; }
  void edit(State, sluice::Output const&, std::vector<sluice::Edit>&) const {}
#ifndef MUST_FAIL
  std::int32_t stop(State state, sluice::Output const&) const { return state - 1; }
#else
  bool stop(State state, sluice::Output const&) const { return state > 0; }
#endif
};

int main() {
  sluice::LogitsProcessorList const processors(sluice::NoRepeatNgram{}, Rule{});
  processors.check();
}

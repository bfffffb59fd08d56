// SPDX-License-Identifier: Apache-2.0
// A rule's check() that could not be called is refused.
#include <sluice/core/logits_processor_list.hpp>
#include <sluice/core/search.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/sluice.hpp>

struct Rule {
  using State = int;
#ifndef MUST_FAIL
  void check() const {}
#else
  void check(int) const {}
#endif
  State initial(sluice::Sentence const&) const { return 0; }
  State next(State state, sluice::Token) const { return state; }
  void edit(State, sluice::Output const&, std::vector<sluice::Edit>&) const {}
};

int main() {
  sluice::LogitsProcessorList const processors(sluice::NoRepeatNgram{}, Rule{});
  processors.check();
}

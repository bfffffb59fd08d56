// SPDX-License-Identifier: Apache-2.0
/// \file
/// constraint_states.json: what the trackers of fairseq and Sockeye say after every prefix of an output.
#pragma once

#include <support/reference_trackers.hpp>

#include <algorithm>
#include <cstddef>
#include <oracle_check/common.hpp>
#include <string>
#include <vector>

namespace oracle_check {

/// [progress, completed or still to come, finished, tokens wanted] after every prefix, as the file has them.
template <class Tracker, class Second>
std::vector<std::string> compare_states(Json const& one, char const* name, Second const& second) {
  std::vector<std::string> problems;
  Tracker const tracker(one.at("constraints").get<std::vector<std::vector<Token>>>());
  auto const tokens = one.at("tokens").get<std::vector<Token>>();
  auto state = tracker.before();
  for (std::size_t i = 0; i <= tokens.size(); ++i) {
    if (i > 0) state = tracker.next(state, tokens[i - 1]);
    std::vector<Token> wanted;
    tracker.wanted(state, wanted);
    std::ranges::sort(wanted);
    auto expected = one.at(name).at(i);  // names a token twice where two rules want it
    auto& list = expected.at(3).get_ref<Json::array_t&>();
    list.erase(std::unique(list.begin(), list.end()), list.end());
    Json const found{tracker.progress(state), second(tracker, state), tracker.complete(state), wanted};
    if (found != expected)
      problems.push_back(std::string(name) + " after " + std::to_string(i) + " tokens: expected " + expected.dump() +
                         ", found " + found.dump());
  }
  return problems;
}

inline void constraint_states(Json const& file, Report& report) {
  auto const met = [](auto const& tracker, auto const& state) { return tracker.met(state); };
  auto const left = [](auto const& tracker, auto const& state) { return tracker.total() - tracker.progress(state); };
  std::size_t index = 0;
  for (auto const& one : file.at("cases")) {
    report.sentence(index, 0, compare_states<sluice::test::SockeyeTracker>(one, "sockeye", left));
    report.sentence(index, 1, compare_states<sluice::test::FairseqUnordered>(one, "unordered", met));
    report.sentence(index, 2, compare_states<sluice::test::FairseqOrdered>(one, "ordered", met));
    ++index;
  }
}

}  // namespace oracle_check

// SPDX-License-Identifier: Apache-2.0
/// \file
/// Counts what agreed with a reference and what did not.
#pragma once

#include <cstddef>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace oracle_check {

/// The outcome of one file: one line for everything that did not agree.
class Report {
 public:
  explicit Report(std::string stem) : stem_(std::move(stem)) {}

  /// What is said about sentence `sentence` of case `index`: `problems` is empty where it agrees.
  /// \param reason  () -> why it may differ, by a rule that was checked; "" if no rule allows it
  template <class F>
  void sentence(std::size_t index, std::size_t sentence, std::vector<std::string> const& problems, F const& reason) {
    if (problems.empty()) {
      ++passed;
      return;
    }
    std::string const why = reason();
    ++(why.empty() ? failed : differ);
    std::cout << (why.empty() ? "FAIL " : "DIFFERS ") << stem_ << " case " << index << " sentence " << sentence;
    if (!why.empty()) std::cout << " (" << why << ")";
    std::cout << "\n";
    for (auto const& problem : problems) std::cout << "    " << problem << "\n";
  }
  /// The same where nothing may differ.
  void sentence(std::size_t index, std::size_t number, std::vector<std::string> const& problems) {
    sentence(index, number, problems, [] { return std::string(); });
  }

  /// What is said about case `index` as a whole (its steps, its rows).
  void whole(std::size_t index, std::vector<std::string> const& problems) {
    if (problems.empty()) {
      ++passed;
      return;
    }
    ++failed;
    std::cout << "FAIL " << stem_ << " case " << index << "\n";
    for (auto const& problem : problems) std::cout << "    " << problem << "\n";
  }

  std::size_t passed = 0, differ = 0, failed = 0;

 private:
  std::string stem_;
};

}  // namespace oracle_check

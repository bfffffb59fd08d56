// SPDX-License-Identifier: Apache-2.0
/// \file
/// Counts what agreed with a reference and what did not.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace oracle_check {

/// The differences that are known and wanted, with the reason for each: see differences.json.
class Differences {
 public:
  explicit Differences(std::filesystem::path const& file) {
    std::ifstream stream(file);
    if (!stream) throw std::runtime_error("cannot read " + file.string());
    auto const json = nlohmann::json::parse(stream);
    for (auto const& entry : json.at("differences"))
      reasons_[{entry.at("file").get<std::string>(), entry.at("case").get<std::size_t>(),
                entry.at("sentence").get<std::size_t>()}] = entry.at("reason").get<std::string>();
  }
  std::string const* reason(std::string const& stem, std::size_t index, std::size_t sentence) const {
    auto const found = reasons_.find({stem, index, sentence});
    return found == reasons_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::tuple<std::string, std::size_t, std::size_t>, std::string> reasons_;
};

/// The outcome of one file: one line for everything that did not agree.
class Report {
 public:
  Report(std::string stem, Differences const& differences) : stem_(std::move(stem)), differences_(differences) {}

  /// What is said about sentence `sentence` of case `index`: `problems` is empty where it agrees.
  void sentence(std::size_t index, std::size_t sentence, std::vector<std::string> const& problems) {
    auto const* const reason = differences_.reason(stem_, index, sentence);
    auto const where = stem_ + " case " + std::to_string(index) + " sentence " + std::to_string(sentence);
    if (problems.empty() && reason == nullptr) {
      ++passed;
      return;
    }
    if (problems.empty()) {
      ++failed;
      std::cout << "FAIL " << where << ": agrees, but differences.json says that it does not\n";
      return;
    }
    ++(reason != nullptr ? differ : failed);
    std::cout << (reason != nullptr ? "DIFFERS " : "FAIL ") << where;
    if (reason != nullptr) std::cout << " (" << *reason << ")";
    std::cout << "\n";
    for (auto const& problem : problems) std::cout << "    " << problem << "\n";
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
  Differences const& differences_;
};

}  // namespace oracle_check

// SPDX-License-Identifier: Apache-2.0
/// \file
/// oracle_check FILE...: decodes the cases of reference files (outputs of other implementations on a hash table) and
/// compares. A file's stem says what it holds; some are checked in two ways. Prints what differs; exit status 0: nothing
/// failed, 1: something did, 2: the files could not be checked.

#include <nlohmann/json.hpp>

#include <cstddef>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <oracle_check/common.hpp>
#include <oracle_check/constraint_states.hpp>
#include <oracle_check/ctranslate2_beam.hpp>
#include <oracle_check/exact.hpp>
#include <oracle_check/fairseq_beam.hpp>
#include <oracle_check/fairseq_dba.hpp>
#include <oracle_check/report.hpp>
#include <oracle_check/sockeye_bank_sizes.hpp>
#include <oracle_check/sockeye_dba.hpp>
#include <oracle_check/var_stream.hpp>
#include <string>

int main(int argc, char** argv) {
  using namespace oracle_check;
  // By stem; "/own": with the library's automata in place of the original's.
  std::map<std::string, std::map<std::string, void (*)(Json const&, Report&)>> const checks{
      {"constraint_states", {{"", constraint_states}}},
      {"ctranslate2_beam", {{"", ctranslate2_beam}}},
      {"exact", {{"", exact}}},
      {"fairseq_beam", {{"", fairseq_beam}}},
      {"fairseq_dba_ordered", {{"", fairseq_dba_ordered}, {"/own", fairseq_dba_ordered_own}}},
      {"fairseq_dba_unordered", {{"", fairseq_dba_unordered}, {"/own", fairseq_dba_unordered_own}}},
      {"sockeye_bank_sizes", {{"", sockeye_bank_sizes}}},
      {"sockeye_dba", {{"", sockeye_dba}, {"/own", sockeye_dba_own}}},
      {"sockeye_edge", {{"", sockeye_dba}, {"/own", sockeye_dba_own}}},
      {"sockeye_gbs_sim", {{"", sockeye_gbs_sim}, {"/own", sockeye_gbs_sim_own}}},
      {"var_stream", {{"", var_stream}}},
  };
  if (argc < 2) {
    std::cerr << "usage: oracle_check FILE...   (files named";
    for (auto const& [stem, ways] : checks) std::cerr << " " << stem << ".json";
    std::cerr << ")\n";
    return 2;
  }
  try {
    std::size_t passed = 0, differ = 0, failed = 0;
    for (int i = 1; i < argc; ++i) {
      std::filesystem::path const path = argv[i];
      auto const known = checks.find(path.stem().string());
      if (known == checks.end()) {
        std::cerr << "oracle_check: no check for files named " << path.stem() << " (" << path.string() << ")\n";
        return 2;
      }
      std::ifstream stream(path);
      if (!stream) {
        std::cerr << "oracle_check: cannot read " << path.string() << "\n";
        return 2;
      }
      auto const file = Json::parse(stream);
      for (auto const& [way, check] : known->second) {
        Report report(known->first + way);
        check(file, report);
        passed += report.passed, differ += report.differ, failed += report.failed;
      }
    }
    std::cout << passed << " passed, " << differ << " differ as a rule allows, " << failed << " failed\n";
    return failed == 0 ? 0 : 1;
  } catch (std::exception const& error) {
    std::cerr << "oracle_check: " << error.what() << "\n";
    return 2;
  }
}

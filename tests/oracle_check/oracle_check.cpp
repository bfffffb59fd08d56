// SPDX-License-Identifier: Apache-2.0
/// \file
/// oracle_check FILE...: decodes the cases of reference files (outputs of other implementations on a hash table) and
/// compares. A file's stem says what it holds. Prints what differs; exit status 0: nothing failed, 1: something did,
/// 2: the files could not be checked.

#include <nlohmann/json.hpp>

#include <cstddef>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <oracle_check/common.hpp>
#include <oracle_check/ctranslate2_beam.hpp>
#include <oracle_check/exact.hpp>
#include <oracle_check/fairseq_beam.hpp>
#include <oracle_check/report.hpp>
#include <oracle_check/var_stream.hpp>
#include <string>

int main(int argc, char** argv) {
  using namespace oracle_check;
  std::map<std::string, void (*)(Json const&, Report&)> const checks{
      {"ctranslate2_beam", ctranslate2_beam},
      {"exact", exact},
      {"fairseq_beam", fairseq_beam},
      {"var_stream", var_stream},
  };
  if (argc < 2) {
    std::cerr << "usage: oracle_check FILE...   (files named";
    for (auto const& [stem, check] : checks) std::cerr << " " << stem << ".json";
    std::cerr << ")\n";
    return 2;
  }
  try {
    Differences const differences(std::filesystem::path(__FILE__).parent_path() / "differences.json");
    std::size_t passed = 0, differ = 0, failed = 0;
    for (int i = 1; i < argc; ++i) {
      std::filesystem::path const path = argv[i];
      auto const check = checks.find(path.stem().string());
      if (check == checks.end()) {
        std::cerr << "oracle_check: no check for files named " << path.stem() << " (" << path.string() << ")\n";
        return 2;
      }
      std::ifstream stream(path);
      if (!stream) {
        std::cerr << "oracle_check: cannot read " << path.string() << "\n";
        return 2;
      }
      Report report(check->first, differences);
      check->second(Json::parse(stream), report);
      passed += report.passed, differ += report.differ, failed += report.failed;
    }
    std::cout << passed << " passed, " << differ << " differ as documented, " << failed << " failed\n";
    return failed == 0 ? 0 : 1;
  } catch (std::exception const& error) {
    std::cerr << "oracle_check: " << error.what() << "\n";
    return 2;
  }
}

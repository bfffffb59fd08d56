// SPDX-License-Identifier: Apache-2.0
// Runs the JSON-Schema-Test-Suite that is installed: each schema is compiled or refused by name, and if it is compiled,
// every instance is judged correctly. SLUICE_JSON_SCHEMA_SUITE names a copy other than the package's, which may include
// draft 2020-12.
#include <sluice/grammar/grammar.hpp>

#include <support/catch.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace sluice;

namespace {

using Json = nlohmann::ordered_json;

/// JSON texts of a value without white space, the original first: members in every order, whole numbers with and
/// without a point; up to a few thousand texts. \param points  not in draft 4, where a number with a point is no integer
std::vector<std::string> writings(Json const& value, bool points) {
  constexpr std::size_t most = 5000;
  if (value.is_number() && !points) return {value.dump()};
  if (value.is_number_float()) {
    std::vector<std::string> out{value.dump()};
    if (auto const x = value.get<double>(); std::floor(x) == x) {
      char digits[400];
      std::snprintf(digits, sizeof digits, "%.0f", x);
      out.emplace_back(digits);
    }
    return out;
  }
  if (value.is_number()) return {value.dump(), value.dump() + ".0"};
  if (!value.is_structured()) return {value.dump()};
  std::vector<std::size_t> order(value.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<std::pair<std::string, std::vector<std::string>>> parts;  // the text before a part, and the part
  for (auto const& [name, part] : value.items())
    parts.emplace_back(value.is_object() ? Json(name).dump() + ":" : "", writings(part, points));
  std::vector<std::string> out;
  do {
    std::vector<std::string> begun{value.is_object() ? "{" : "["};
    for (auto const i : order) {
      std::vector<std::string> longer;
      for (auto const& one : begun)
        for (auto const& part : parts[i].second)
          if (longer.size() < most) longer.push_back(one + (one.size() > 1 ? "," : "") + parts[i].first + part);
      begun = std::move(longer);
    }
    for (auto const& one : begun) out.push_back(one + (value.is_object() ? "}" : "]"));
  } while (value.is_object() && out.size() < most && std::ranges::next_permutation(order).found);
  return out;
}

struct Counts {
  int schemas = 0, compiled = 0;
  int valid = 0, as_given = 0, otherwise = 0, refused = 0;  // valid instances, by which of their texts is accepted
  int invalid = 0, wrong = 0;                               // invalid instances, and how many are accepted
  std::map<std::string, int> reasons;                       // why schemas are refused
  std::vector<std::string> refusals;                        // valid instances that are refused
};

class Suite {
 public:
  Suite(std::filesystem::path folder, std::string dialect) : folder_(std::move(folder)), dialect_(std::move(dialect)) {}

  Counts run() {
    std::set<std::filesystem::path> files;
    for (auto const& entry : std::filesystem::recursive_directory_iterator(folder_))
      if (entry.path().extension() == ".json") files.insert(entry.path());
    for (auto const& file : files) {
      std::ifstream stream(file, std::ios::binary);
      auto const name = std::filesystem::relative(file, folder_).string();
      for (auto const& group : Json::parse(stream)) judge(name, group);
    }
    return counts_;
  }

 private:
  void judge(std::string const& file, Json const& group) {
    auto schema = group.at("schema");
    if (schema.is_object() && !schema.contains("$schema")) schema["$schema"] = dialect_;
    auto const name = file + ": " + group.at("description").get<std::string>();
    INFO(name << "\n" << schema.dump());
    ++counts_.schemas;
    Grammar grammar;
    auto possible = true;
    try {
      grammar = Grammar::from_json_schema(schema.dump());
    } catch (std::invalid_argument const& e) {
      std::string const why = e.what();
      possible = false;
      if (why.find("no text obeys") == std::string::npos) {
        CAPTURE(why);
        auto const at = why.find(": ", std::string_view("sluice: ").size());
        CHECK((why.starts_with("sluice: schema, line 1, column ") || why.starts_with("sluice: limits.size")));
        REQUIRE(at != std::string::npos);
        ++counts_.reasons[why.substr(at + 2)];
        return;
      }
    }
    ++counts_.compiled;
    for (auto const& test : group.at("tests")) {
      auto const texts = writings(test.at("data"), dialect_.find("draft-04") == std::string::npos);
      auto const fits = [&](std::string const& text) { return possible && grammar.matches(text); };
      INFO(texts.front().substr(0, 300));
      if (!test.at("valid").get<bool>()) {
        // Annotations here; and what needs tables of Unicode.
        if (file == "optional/content.json" || file == "optional/format/idn-hostname.json") continue;
        ++counts_.invalid;
        auto const accepted = std::ranges::any_of(texts, fits);
        CHECK_FALSE(accepted);
        counts_.wrong += accepted;
        continue;
      }
      ++counts_.valid;
      if (fits(texts.front())) ++counts_.as_given;
      else if (std::ranges::any_of(texts, fits)) ++counts_.otherwise;
      else {
        // What docs/structure.md says about them; and integers that the reader of this test takes for fractions.
        CHECK((file.find("format") != std::string::npos || file == "vocabulary.json" ||
               (file == "optional/bignum.json" && dialect_.find("draft-04") != std::string::npos)));
        ++counts_.refused;
        counts_.refusals.push_back(name + ": " + test.at("description").get<std::string>() + ": " +
                                   texts.front().substr(0, 100));
      }
    }
  }

  std::filesystem::path folder_;
  std::string dialect_;
  Counts counts_;
};

}  // namespace

TEST_CASE("no instance of the JSON-Schema-Test-Suite is judged wrongly", "[grammar]") {
  auto const* const own = std::getenv("SLUICE_JSON_SCHEMA_SUITE");
  std::filesystem::path const folder =
      own != nullptr ? std::string(own) : std::string("/usr/share/json-schema-test-suite/tests");
  auto const talk = std::getenv("SLUICE_JSON_SCHEMA_SUITE_REPORT") != nullptr;
  int found = 0;
  for (auto const& [draft, dialect] : {std::pair("draft4", "http://json-schema.org/draft-04/schema#"),
                                       std::pair("draft6", "http://json-schema.org/draft-06/schema#"),
                                       std::pair("draft7", "http://json-schema.org/draft-07/schema#"),
                                       std::pair("draft2019-09", "https://json-schema.org/draft/2019-09/schema"),
                                       std::pair("draft2020-12", "https://json-schema.org/draft/2020-12/schema")}) {
    if (!std::filesystem::is_directory(folder / draft)) continue;
    ++found;
    INFO(draft);
    auto const counts = Suite(folder / draft, dialect).run();
    std::cout << draft << ": " << counts.schemas << " schemas, " << counts.compiled << " compiled, "
              << counts.schemas - counts.compiled << " refused; " << counts.valid << " valid instances, "
              << counts.as_given << " accepted as given, " << counts.otherwise << " written otherwise, "
              << counts.refused << " refused; " << counts.invalid << " invalid ones, " << counts.wrong << " accepted\n";
    if (talk) {
      for (auto const& [why, count] : counts.reasons) std::cout << "  " << count << " schemas: " << why << '\n';
      for (auto const& one : counts.refusals) std::cout << "  valid, refused: " << one << '\n';
    }
    CHECK(counts.compiled > 80);
    CHECK(counts.wrong == 0);
  }
  if (found == 0)
    std::cout << "SKIPPED: " << folder.string() << " is missing: json-schema-test-suite of Debian, or "
              << "SLUICE_JSON_SCHEMA_SUITE=FOLDER\n";
}

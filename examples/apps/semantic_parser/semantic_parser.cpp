// SPDX-License-Identifier: Apache-2.0
// semantic_parser: the test set of a folder in, logical forms out, by the searches and schedules of VAR-STREAM's paper.

#include <text/lines.hpp>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <ostream>
#include <semantic_parser/accuracy.hpp>
#include <semantic_parser/data.hpp>
#include <semantic_parser/decoding.hpp>
#include <semantic_parser/options.hpp>
#include <semantic_parser/weights.hpp>
#include <stdexcept>
#include <string>

namespace semantic_parser {

/// What the program ends with.
enum Code : int { fine = 0, sentence_failed = 1, bad_input = 2 };

/// An object with an entry a line.
std::string to_json(Outcome const& outcome, Data const& data) {
  auto const right = accuracy(outcome.lists, data);
  auto const& s = outcome.statistics;
  nlohmann::ordered_json const all{
      {"sentences", s.sentences},
      {"steps", s.steps},
      {"expansions", s.rows},  // what was run, which is what the authors count here
      {"rows", s.expansions},  // and the ended hypotheses beside it, which --max-rows counts too
      {"expansions_per_step", static_cast<double>(s.rows) / static_cast<double>(s.steps)},
      {"accuracy", right.exact},
      {"oracle_accuracy", right.exact_oracle},
      {"tree_accuracy", right.tree},
      {"oracle_tree_accuracy", right.tree_oracle},
      {"seconds", outcome.seconds}};
  std::string text;
  for (auto const& [key, value] : all.items())
    text.append(text.empty() ? "{\n" : ",\n").append("  \"" + key + "\": " + value.dump());
  return text + "\n}\n";
}

/// \throws text::InputError  if it cannot be written
std::ofstream create(std::filesystem::path const& path) {
  std::ofstream file(path, std::ios::binary);
  if (!file) throw text::InputError(path.string() + ": cannot be written");
  return file;
}

void finish(std::ostream& stream, std::string const& name) {
  if (!stream.flush()) throw std::runtime_error(name + ": cannot be written");
}

void run(Options const& options) {
  Data const data(options.model);
  auto const weights = Weights::from(data);
  std::ofstream output, stats;
  if (!options.output.empty()) output = create(options.output);
  if (!options.stats.empty()) stats = create(options.stats);
  auto const outcome = options.search == SearchName::greedy ? decode_greedy(data, weights, options)
                                                            : decode_beam(data, weights, options);
  auto& lines = options.output.empty() ? std::cout : output;
  for (auto const& list : outcome.lists) lines << nlohmann::json(list).dump() << '\n';
  finish(lines, options.output.empty() ? "standard output" : options.output.string());
  if (options.stats.empty()) return;
  stats << to_json(outcome, data);
  finish(stats, options.stats.string());
}

}  // namespace semantic_parser

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  return text::run_program("semantic_parser", [&]() -> int {
    if (auto const options = semantic_parser::parse(argc, argv)) semantic_parser::run(*options);
    return semantic_parser::fine;
  });
}

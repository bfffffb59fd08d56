// SPDX-License-Identifier: Apache-2.0
/// \file
/// Options of n-grams beside frames, as the command lines have them that decode frames.
#pragma once

#include <text/command_line.hpp>

#include <cmath>
#include <filesystem>
#include <string>

namespace text {

/// A language model of n-grams, and how much it counts (sluice::FusionWeights).
struct LanguageOptions {
  std::filesystem::path ngrams;  ///< empty: none
  std::string of = "words";      ///< or the one of add_to()
  double weight = 0.3, bonus = 0, unknown = 0;

  bool given() const { return !ngrams.empty(); }

  /// \param parts  what the model may be of besides words: "labels"
  void add_to(CommandLine& app, std::string const& parts) {
    auto const finite = number<double>([](double x) { return std::isfinite(x); }, " that is finite");
    auto const positive = number<double>([](double x) { return x >= 0; }, " >= 0");
    app.add("--ngrams,--language-model", ngrams, "FILE", "n-grams: ARPA, or a file of build_ngram");
    app.add("--ngrams-of", of, "WHAT", "what it is of: words or " + parts + " (words)")
        ->check(one_of({"words", parts}));
    app.add("--weight", weight, "X", "of the language model's log-probability (0.3)")->check(finite)->check(positive);
    app.add("--bonus", bonus, "X", "added for each word, or each of the " + parts + " (0)")->check(finite);
    app.add("--unknown", unknown, "X", "added for each word that the language model has not (0)")->check(finite);
  }
};

}  // namespace text

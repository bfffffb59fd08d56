// SPDX-License-Identifier: Apache-2.0
/// \file
/// The command line of ctc_decode.
#pragma once

#include <text/command_line.hpp>
#include <text/language_options.hpp>
#include <text/lines.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ctc_decode {

struct Options {
  std::vector<std::filesystem::path> matrices;
  std::filesystem::path list, labels, lexicon, hotwords, references;
  std::optional<std::string> blank, separator, align;
  std::string kind = "logits";
  text::LanguageOptions language;
  double seconds = 0;
  std::optional<double> token_floor, threshold, skip_blank;
  std::int32_t beam = 32, n_best = 0, top_tokens = 0, threads = 0;
  std::vector<double> weights, bonuses{0};  ///< of a sweep
  bool json = false, progress = false, viterbi = false, sweep = false;
};

/// "0,0.2,0.4"
inline std::vector<double> numbers(std::string const& list, std::string const& name) {
  std::vector<double> all;
  for (std::size_t at = 0; at <= list.size();) {
    auto const end = (std::min)(list.find(',', at), list.size());
    auto const one = list.substr(at, end - at);
    char* rest = nullptr;
    auto const value = std::strtod(one.c_str(), &rest);
    if (one.empty() || *rest != '\0' || !std::isfinite(value))
      throw text::InputError(name + ": '" + one + "' is not a number");
    all.push_back(value), at = end + 1;
  }
  return all;
}

/// Nothing where help was asked for and given.
/// \throws text::InputError  for invalid options
inline std::optional<Options> parse(int argc, char const* const* argv) {
  Options o;
  std::string blank, separator, align, weights, bonuses;
  text::CommandLine app("Texts of matrices of frames, which a recogniser trained with CTC has computed.", "ctc_decode");
  auto const real = [&](char const* name, auto& value, char const* what) {
    return app.add(name, value, "X", what)
        ->check(text::number<double>([](double x) { return std::isfinite(x); }, " that is finite"));
  };
  app.add("MATRIX", o.matrices, "FILE", "[frames, labels]: .npy, or a line of numbers for each frame (CSV)");
  app.add("--list", o.list, "FILE", "further matrices, a file in each line");
  app.add("--labels", o.labels, "FILE", "what each column writes, one in a line")->required();
  auto* const blank_option = app.add("--blank", blank, "LABEL",
                                     "the label, or number, of the blank (the line that is empty, <blank>, <pad> ...)");
  auto* const separator_option =
      app.add("--separator", separator, "LABEL", "stands between words; '': none does (' ' or '|')");
  app.add("--kind", o.kind, "KIND", "what the numbers are: logits, log_probs or probs (logits)")
      ->check(text::one_of({"logits", "log_probs", "probs"}));
  app.add("--beam", o.beam, "N", "prefixes in the beam (32)")->check(text::whole(1, 100000));
  app.add("--n-best", o.n_best, "N", "texts of each matrix, with their scores")->check(text::whole(1, 100000));
  app.add_flag("--viterbi", o.viterbi, "a text counts as its best alignment alone");
  app.add("--top-tokens", o.top_tokens, "N", "labels that may stand on a frame, beside the blank (all)")
      ->check(text::whole(1, 1000000));
  real("--token-floor", o.token_floor, "no label below this log-probability, but for the best (none)");
  real("--threshold", o.threshold, "drop prefixes that score so much less than the best (none)");
  real("--skip-blank", o.skip_blank, "frames whose blank has this probability cost next to nothing (none)");
  app.add("--lexicon", o.lexicon, "FILE",
          "texts consist of these words: one in a line, and its labels if it is not spelt as it is written");
  o.language.add_to(app, "labels");
  app.add("--hotwords", o.hotwords, "FILE", "words and phrases to prefer, as whole words: phrase, tab, boost in nats");
  auto* const align_option =
      app.add("--align", align, "TEXT", "where each label of this text is, in place of decoding");
  app.add("--references", o.references, "FILE",
          "what the texts should be, one in a line: error rates on standard error");
  auto* const sweep =
      app.add("--sweep", weights, "X,X...", "error rates with each of these weights, in place of texts");
  auto* const bonus_sweep =
      app.add("--sweep-bonus", bonuses, "X,X...", "and with each of these bonuses (that of --bonus)");
  app.add_flag("--json", o.json, "a line of JSON for each matrix: texts, scores, words with their times");
  real("--frame", o.seconds, "seconds of a frame: times in seconds in place of frames")
      ->check(text::number<double>([](double x) { return x > 0; }, " > 0"));
  app.add("--threads", o.threads, "N", "matrices at once (as many as there are processors)")
      ->check(text::whole(1, 1024));
  app.add_flag("--progress", o.progress, "show progress even where standard error is no terminal");
  if (!app.read(argc, argv)) return std::nullopt;

  if (!blank_option->empty()) o.blank = blank;
  if (!separator_option->empty()) o.separator = separator;
  if (!align_option->empty()) o.align = align;
  o.sweep = !sweep->empty();
  o.bonuses = bonus_sweep->empty() ? std::vector<double>{o.language.bonus} : numbers(bonuses, "--sweep-bonus");
  if (o.sweep) o.weights = numbers(weights, "--sweep");
  for (auto const weight : o.weights)
    if (weight < 0) throw text::InputError("--sweep: '" + std::to_string(weight) + "' is not a number >= 0");
  if (o.matrices.empty() && o.list.empty()) throw text::InputError("MATRIX: is missing: give files, or --list");
  if (o.n_best > o.beam)
    throw text::InputError("--n-best: " + std::to_string(o.n_best) + ": the beam has " + std::to_string(o.beam));
  if (o.sweep && (o.references.empty() || !o.language.given()))
    throw text::InputError("--sweep: needs --references and --ngrams");
  if (!bonus_sweep->empty() && !o.sweep) throw text::InputError("--sweep-bonus: needs --sweep");
  if (o.align && (o.sweep || !o.references.empty()))
    throw text::InputError("--align: decodes nothing: not with --references");
  return o;
}

}  // namespace ctc_decode

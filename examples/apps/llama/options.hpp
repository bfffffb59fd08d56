// SPDX-License-Identifier: Apache-2.0
/// \file
/// The command line of llama_generate.
#pragma once

#include <sluice/core/types.hpp>

#include <text/bias.hpp>
#include <text/grammar.hpp>
#include <text/samplers.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace generate {

enum class SearchName : std::uint8_t { greedy, beam, diverse, sample };

struct Options {
  // The model and its context.
  std::filesystem::path model, draft, backends, language_model;
  std::int32_t gpu_layers = -1;  // -1: all
  std::int32_t context = 4096;   // cells for all sequences together
  std::int32_t batch = 2048;     // tokens in a call of llama_decode at most
  std::int32_t parallel = 4;     // prompts at a time
  std::int32_t threads = 0;      // 0: as many as processors
  bool split = false;            // a part of the cells for each sequence
  bool exact = false;            // outputs that do not depend on the batch
  std::int32_t swap_after = 4;   // steps; 0: never
  bool no_repack = false;        // weights as they are in the file
  std::vector<sluice::Token> ends;

  // What goes in.
  std::vector<std::string> prompts;
  std::string system;
  bool chat = false;                    // prompts are messages of a user, in the model's chat template
  std::filesystem::path chat_template;  // in place of the model's; empty: none
  bool special = false;                 // parse names of control tokens in prompts
  std::int32_t chunk = 0;
  std::int64_t share = -1;  // -1: half of the context with a system prompt, else none

  // How it is continued.
  SearchName search = SearchName::greedy;
  std::int32_t width = 4, groups = 2, n_best = 1, min_length = 0, max_length = 128;
  float alpha = 1, temperature = 1, top_p = 1, min_p = 0, typical = 1;
  std::int32_t top_k = 0;
  std::uint64_t seed = 0;
  double language_weight = 0.2, word_bonus = 0;  // beside language_model
  bool normalise = false;                        // the sum, whatever the search; that of samples always is
  std::vector<std::string> phrases, stops;
  std::vector<text::BiasTerm> biased;
  bool bias_once = false;
  text::GrammarSource structure{.json = text::json_of_language_models()};  // what outputs obey
  text::Samplers samplers;
  std::vector<std::string> breakers{"\n", ":", "\"", "*"};  // of DRY
  bool lookup = false;
  std::int32_t block = 8, branches = 1;
  bool adaptive = false;  // fewer guesses where they do not pay

  // What comes out.
  bool stream = false, json = false, statistics = false;

  bool blockwise() const { return lookup || !draft.empty(); }
  /// Slots of one prompt.
  std::int32_t slot_count() const {
    if (blockwise()) return branches;
    switch (search) {
      case SearchName::beam: return width;
      case SearchName::diverse: return width * groups;
      case SearchName::sample: return n_best;
      case SearchName::greedy: break;
    }
    return 1;
  }
  /// Sequences for the paths of guesses of all prompts.
  std::int32_t leaves() const { return blockwise() && !split ? parallel * (branches - 1) : 0; }
};

/// Nothing if the user only asked for help, which has been printed.
/// \throws text::InputError  for invalid options
std::optional<Options> parse(int argc, char const* const* argv);

}  // namespace generate

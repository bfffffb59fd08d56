// SPDX-License-Identifier: Apache-2.0
/// \file
/// The command line of translate.
#pragma once

#include <sluice/decode/schedule.hpp>

#include <text/grammar.hpp>
#include <text/samplers.hpp>
#include <text/watermark.hpp>
#include <translate/model.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace translate {

enum class SearchName { greedy, beam, best_first, sample, blockwise, score };
enum class PresetName { fairseq, ctranslate2, huggingface, sockeye, marian, varstream };
enum class UtilityName { chrf, bleu };
enum class ScheduleName { batched, streaming };

/// The part of the input that one of several programs translates.
struct Shard {
  std::uint64_t index = 0, count = 1;
};

/// Which part of an alignment is printed.
struct AlignmentFormat {
  bool soft = false;                 ///< all shares; else pairs of words
  std::optional<float> threshold{};  ///< the pairs of so large a share; nothing: the best of each word
};

struct Options {
  std::vector<std::filesystem::path> models;  ///< of the weights; several are averaged. The tokenizer is beside them
  std::filesystem::path input;                ///< empty: standard input
  std::filesystem::path output;               ///< empty: standard output
  std::filesystem::path targets;              ///< prefixes, or what SearchName::score scores; empty: none
  std::filesystem::path constraints;          ///< JSON, an object a line; empty: none
  std::filesystem::path glossary;             ///< terms; empty: none
  std::filesystem::path stats;                ///< JSON; empty: none
  std::filesystem::path trace;                ///< .html or .jsonl; empty: none

  SearchName search = SearchName::beam;
  std::int32_t candidates = 1;                  ///< hypotheses wanted of each sentence
  bool list = false;                            ///< print all of them, with index and score
  std::optional<UtilityName> mbr{};             ///< print the one of least Bayes risk
  std::optional<AlignmentFormat> alignments{};  ///< print them after translations
  bool confidence = false;                      ///< print the probability of each word after translations
  std::int32_t alternatives = 0;                ///< and so many of the best pieces in each place
  std::int32_t min_length = 1;                  ///< a sentence is not translated by nothing
  std::int32_t max_length = 256;

  // of SearchName::beam and SearchName::best_first
  std::optional<PresetName> preset{};
  std::int32_t width = 5;
  std::optional<double> length_penalty{};  ///< in place of the preset's; also of SearchName::score
  std::optional<double> absolute_threshold{}, relative_threshold{};
  std::optional<std::int32_t> max_per_parent{};

  // of constraints
  double prune_finished = 20;  ///< infinity: never
  std::optional<std::int32_t> grid_base{};

  // of SearchName::sample
  float temperature = 1;
  std::int32_t top_k = 0;
  float top_p = 1;
  std::uint64_t seed = 1;
  text::Samplers samplers{};

  // of SearchName::blockwise
  std::int32_t block = 4;
  bool adaptive = false;
  std::optional<std::int32_t> accept_top{};  ///< keep guesses among the best so many; nothing: the best one alone
  std::int32_t minimum = 1;
  std::int32_t branches = 1;    ///< paths of a tree of guesses
  std::int32_t tree_nodes = 0;  ///< guesses of a tree; 0: (block - 1) * branches
  bool explain = false;         ///< print the blocks

  // masks
  std::int32_t no_repeat_ngram = 0;
  float repetition_penalty = 1;
  std::filesystem::path forbid;  ///< phrases; empty: none
  std::filesystem::path bias;    ///< boosted phrases; empty: none
  bool bias_once = false;        ///< pay each only the first time

  text::GrammarSource structure;  ///< the grammar that all translations match

  text::WatermarkFlags watermark;  ///< how translations are marked

  ModelOptions model_options;

  ScheduleName schedule = ScheduleName::batched;
  std::size_t batch = 64;
  std::optional<std::size_t> window{};  ///< sentences sorted by length together; nothing: as suits the input
  std::size_t encode_ahead = 0;
  double refill_below = 1.0 / 6;  ///< this and the next three: of ScheduleName::streaming
  sluice::Streaming::Order order = sluice::Streaming::Order::automatic;
  std::int32_t max_rows = 0;
  std::int32_t drain_after = 500;
  std::size_t threads = 1;
  bool progress = false;

  // long inputs, in parts
  bool resume = false;                                ///< continue an earlier run, using its journal
  std::optional<Shard> shard{};                       ///< nothing: all of the input
  std::uint64_t shard_size = std::uint64_t{1} << 18;  ///< of translate_mpi: bytes of the input in a shard
  /// The options of the command line that determine the output, by flag; files by their names.
  std::map<std::string, std::string> said{};

  bool constrained() const { return !constraints.empty() || !glossary.empty(); }
};

/// Nothing if the command line asked for help or the version, which is then printed.
/// \param mpi  whether for translate_mpi, whose ranks deal the shards of the input among themselves
/// \throws text::InputError  for invalid flags, values or combinations, before any file is read
std::optional<Options> parse(int argc, char const* const* argv, bool mpi = false);

}  // namespace translate

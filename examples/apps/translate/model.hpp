// SPDX-License-Identifier: Apache-2.0
/// \file
/// One Transformer, or an ensemble of several, behind one type: searches are compiled once for both.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/any_model.hpp>
#include <sluice/output/packed_matrix.hpp>
#include <sluice/speculative/suffix_cache.hpp>

#include <translate/output.hpp>
#include <translate/tokenizer.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace translate {

/// The model that translates, and guesses if the model in it does. Sources are the tokenizer's pieces.
using Model = sluice::AnyModel<std::vector<sluice::Token>, Answer>;

/// The folder of the model that ships: beside the program, where it is installed, or where it was built.
std::filesystem::path default_model();

/// The caches of all models that were made.
struct CacheUse {
  std::int64_t pages = 0, peak_pages = 0;  ///< in use now, and at most
  std::size_t bytes = 0;
};

/// The sources of guesses for blockwise decoding. Several: `ngram` first, the other one if it has no guess.
struct Proposers {
  bool heads = false;  ///< over the model's hidden vectors
  bool draft = false;  ///< a smaller model
  bool ngram = false;  ///< what followed the same pieces before
};

/// Precision and output layer of the weights, and what is added to them.
struct ModelOptions {
  sluice::Precision layers = sluice::Precision::float32;  ///< of encoder and decoder
  sluice::Precision output = sluice::Precision::float32;  ///< of the output layer
  ProjectionName projection = ProjectionName::dense;
  std::filesystem::path clusters;  ///< of ProjectionName::clustered; empty: clusters.bin beside the weights
  std::string direction;           ///< in that file; empty: the only one
  std::int32_t nearest = 2;        ///< clusters of each line
  bool attention = false;          ///< attach that of the last layer to the source
  std::int32_t audit = 0;          ///< every Nth step is also projected in full, for the statistics
  Proposers proposers{};
  std::filesystem::path heads;           ///< of Proposers::heads; empty: heads.safetensors beside the weights
  std::filesystem::path draft;           ///< of Proposers::draft: as the models
  std::filesystem::path remember;        ///< earlier outputs, to guess from before all others; empty: no file
  std::int64_t remember_tokens = 0;      ///< how many of their tokens; 0: with a file as SuffixCache, else none
  std::filesystem::path language_model;  ///< n-grams of pieces (build_ngram --tokenizer); empty: none
  double language_weight = 0.2;          ///< of its log-probabilities
  double word_bonus = 0;                 ///< for each piece that begins a word, beside a language model
  /// bytes of a KV cache that are kept when nothing is decoded
  std::size_t kept_bytes = (std::numeric_limits<std::size_t>::max)();
};

/// Weights, and the models made from them.
class Models {
 public:
  /// \param files  folders, or files of weights in folders with an spm.model
  /// \throws text::InputError  if something is missing or broken, or the models' vocabularies (or the draft's) differ, or the
  ///     language model's words are others
  explicit Models(std::vector<std::filesystem::path> const& files, ModelOptions const& options = {});
  ~Models();

  Tokenizer const& tokenizer() const;
  sluice::Vocabulary const& vocabulary() const;
  /// Shares the weights; one for each thread. Refers to this object.
  Model make();
  /// The expander for such a model.
  Output output() const;
  CacheUse cache_use() const;
  /// Earlier outputs; nullptr: none are remembered.
  sluice::SuffixCache const* remembered() const;
  /// Writes what was decoded into ModelOptions::remember, if there is one.
  /// \throws text::InputError  if the file cannot be written
  void save();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace translate

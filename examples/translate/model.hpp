// SPDX-License-Identifier: Apache-2.0
/// \file
/// One Transformer, or several that decide together, behind one type: searches are compiled once for both.
#pragma once

#include <sluice/core/expansion.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/any_model.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/log_softmax_top_k.hpp>

#include <translate/tokenizer.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace translate {

/// Of one model: hidden vectors, so that the output layer and the selection are one pass. Of several: averaged scores.
using Answer = std::variant<sluice::Hidden<float>, sluice::Scores<float>>;

/// What translates. Sources are the tokenizer's pieces.
using Model = sluice::AnyModel<std::vector<sluice::Token>, Answer,
                               sluice::Abilities{.ragged = true, .blocks = true, .roll_back = true}, true>;

/// The expander for either answer.
class Output {
 public:
  explicit Output(std::variant<sluice::DenseProjection, sluice::LogSoftmaxTopK> expander)
      : expander_(std::move(expander)) {}
  sluice::Expansion expand(Answer const& answer, std::span<sluice::Query const> queries,
                           std::span<sluice::Group const> groups);

 private:
  std::variant<sluice::DenseProjection, sluice::LogSoftmaxTopK> expander_;
};

/// The folder of the model that ships: beside the program, where it is installed, or where it was built.
std::filesystem::path default_model();

/// The caches of all models that were made.
struct CacheUse {
  std::int64_t pages = 0, peak_pages = 0;  ///< in use now, and at most
  std::size_t bytes = 0;
};

/// Weights, and what is made of them.
class Models {
 public:
  /// \param files  folders, or files of weights in folders with an spm.model
  /// \throws text::InputError  if something is missing or broken, or the models' vocabularies differ
  explicit Models(std::vector<std::filesystem::path> const& files);
  ~Models();

  Tokenizer const& tokenizer() const;
  /// Shares the weights; one for each thread. Refers to this object.
  Model make();
  /// The expander for such a model.
  Output output() const;
  CacheUse cache_use() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace translate

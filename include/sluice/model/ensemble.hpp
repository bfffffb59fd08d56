// SPDX-License-Identifier: Apache-2.0
/// \file
/// Ensembles: several models that decide together.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/combine.hpp>
#include <sluice/model/log_mixture.hpp>
#include <sluice/output/simd.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// What is averaged.
enum class Average : std::uint8_t {
  probabilities,         ///< log sum_i w_i p_i (fairseq, Sockeye's linear)
  log_probs,             ///< sum_i w_i log p_i, not normalised again (Marian, but for the weights' scale)
  normalised_log_probs,  ///< its softmax (Sockeye's log_linear); the answer's Kind is logits
};

struct EnsembleOptions {
  Average average = Average::probabilities;
  std::vector<double> weights{};  ///< one per model, >= 0, divided by their sum; empty = all alike. A model of weight 0
                                  ///< is never run
};

namespace detail {

/// Models of different types.
template <ScoringModel M, ScoringModel... Ms>
class ModelTuple {
 public:
  using Source = typename M::Source;
  static constexpr Abilities abilities = [] {
    auto all = sluice::abilities<M>();
    ((all = common(all, sluice::abilities<Ms>())), ...);
    return all;
  }();

  explicit ModelTuple(M& model, Ms&... models) : models_(&model, &models...) {}
  static std::size_t size() { return 1 + sizeof...(Ms); }
  M& front() const { return *std::get<0>(models_); }
  template <class F>
  void for_each(F&& f) const {
    std::apply([&](auto*... model) { (f(*model), ...); }, models_);
  }

 private:
  std::tuple<M*, Ms*...> models_;
};

/// Any number of models of one type.
template <ScoringModel M>
class ModelList {
 public:
  using Source = typename M::Source;
  static constexpr Abilities abilities = sluice::abilities<M>();

  explicit ModelList(std::span<M* const> models) : models_(models.begin(), models.end()) {
    require(!models.empty(), "Ensemble: models.size()", models.size(), "must be at least 1");
    for (auto* const model : models) require(model != nullptr, "Ensemble: model", "nullptr", "must be given");
  }
  std::size_t size() const { return models_.size(); }
  M& front() const { return *models_.front(); }
  template <class F>
  void for_each(F&& f) const {
    for (auto* const model : models_) f(*model);
  }

 private:
  std::vector<M*> models_;
};

inline namespace SLUICE_ISA {

/// What Ensemble and EnsembleOf share. `Models` is a ModelTuple or a ModelList.
template <class Models>
class BasicEnsemble {
 public:
  using Source = typename Models::Source;
  static constexpr Abilities abilities = Models::abilities;  ///< what all of them can do

  Vocabulary const& vocabulary() const { return vocabulary_; }
  Limits limits() const { return limits_; }
  std::int32_t source_length(Source const& source) const {
    return sluice::source_length(std::as_const(models_.front()), source);
  }
  std::vector<double> const& weights() const { return weights_; }  ///< they add up to 1

  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    std::size_t started = 0;
    try {
      for_each([&](auto& model, std::size_t i) { model.start(sources, slots), started = i + 1; });
    } catch (...) {
      for_each([&](auto& model, std::size_t i) {
        if (i < started) detail::release(model, slots);
      });
      throw;
    }
  }

  void release(std::span<Slot const> slots) {
    for_each([&](auto& model, std::size_t) { detail::release(model, slots); });
  }

  /// Throws what a model throws, and std::logic_error if a model's answer has another shape than was asked for.
  Scores<float> step(std::span<Row const> rows) {
    mixture_.begin(lines(rows), vocabulary_.size);
    for_each([&](auto& model, std::size_t i) {
      if (average_ == Average::probabilities) mixture_.add_probabilities(model.step(rows), weights_[i]);
      else mixture_.add_log_probs(model.step(rows), weights_[i]);
    });
    return mixture_.scores(average_ == Average::normalised_log_probs ? Kind::logits : Kind::log_probs);
  }

 protected:
  BasicEnsemble(Models models, EnsembleOptions options)
      : models_(std::move(models)),
        average_(options.average),
        weights_(std::move(options.weights)),
        vocabulary_(models_.front().vocabulary()) {
    if (weights_.empty()) weights_.assign(models_.size(), 1);
    require(weights_.size() == models_.size(), "Ensemble: weights.size()", weights_.size(),
            "must be 0 or the number of models, " + std::to_string(models_.size()));
    double sum = 0;
    for (auto const weight : weights_) {
      require(weight >= 0 && std::isfinite(weight), "Ensemble: weight", weight, "must be a number >= 0");
      sum += weight;
    }
    require(sum > 0 && std::isfinite(sum), "Ensemble: sum of the weights", sum, "must be a number > 0");
    for (auto& weight : weights_) weight /= sum;

    std::size_t i = 0;
    models_.for_each([&](auto& model) {
      check_same(vocabulary_, model.vocabulary(), "Ensemble: model " + std::to_string(i++), "model 0");
      limits_ = common(limits_, sluice::limits(std::as_const(model)));
    });
  }

 private:
  /// Calls f(model, index) for the models that have a say.
  template <class F>
  void for_each(F&& f) {
    std::size_t i = 0;
    models_.for_each([&](auto& model) {
      if (weights_[i] > 0) f(model, i);
      ++i;
    });
  }

  Models models_;
  Average average_;
  std::vector<double> weights_;
  Vocabulary vocabulary_;
  Limits limits_;
  LogMixture mixture_;
};

}  // namespace SLUICE_ISA
}  // namespace detail

inline namespace SLUICE_ISA {

/// Models with one kind of source and one vocabulary, as one model: `Ensemble ensemble(a, b)`. Their scores may be of
/// different types and kinds; each line is normalised before it is averaged. All models hold the same slots.
///
/// Refers to the models, which must outlive it and be different objects. A line costs the models', and one softmax and
/// one pass over V for each. The same bits in every batch if the models' are. A NaN or +infinity in one model's line
/// makes the line NaN, which the decoder reports; impossible tokens (-infinity) have probability 0. If the models'
/// `start` or `step` throws, so does the ensemble's.
template <ScoringModel M, ScoringModel... Ms>
  requires(std::same_as<typename M::Source, typename Ms::Source>&&...)
class Ensemble : public detail::BasicEnsemble<detail::ModelTuple<M, Ms...>> {
 public:
  /// \throws std::invalid_argument  if the weights make no sense, or two vocabularies differ in size, bos, eos or never
  explicit Ensemble(EnsembleOptions options, M& model, Ms&... models)
      : Ensemble::BasicEnsemble(detail::ModelTuple<M, Ms...>(model, models...), std::move(options)) {}
  explicit Ensemble(M& model, Ms&... models) : Ensemble(EnsembleOptions{}, model, models...) {}
};

/// The same for models of one type whose number is known at run time only. With AnyModel, of any types.
template <ScoringModel M>
class EnsembleOf : public detail::BasicEnsemble<detail::ModelList<M>> {
 public:
  /// Copies the pointers.
  /// \throws std::invalid_argument  as Ensemble, or if there is no model, or a pointer is null
  explicit EnsembleOf(std::span<M* const> models, EnsembleOptions options = {})
      : EnsembleOf::BasicEnsemble(detail::ModelList<M>(models), std::move(options)) {}
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0

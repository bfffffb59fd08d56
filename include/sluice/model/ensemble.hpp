// SPDX-License-Identifier: Apache-2.0
/// \file
/// Ensembles: several models that choose tokens together.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/detail/combine.hpp>
#include <sluice/model/detail/log_mixture.hpp>
#include <sluice/output/detail/simd/simd.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// What is averaged.
enum class Average : std::uint8_t {
  probabilities,         ///< log sum_i w_i p_i (fairseq, Sockeye's linear)
  log_probs,             ///< sum_i w_i log p_i, not renormalised (Marian, except for the weights' scale)
  normalised_log_probs,  ///< the softmax of that (Sockeye's log_linear); the answer's Kind is logits
};

/// How Ensemble and EnsembleOf average.
struct EnsembleOptions {
  Average average = Average::probabilities;
  std::vector<double> weights{};  ///< one per model, >= 0, divided by their sum; empty = equal weights. A model with
                                  ///< weight 0 is never run
};

namespace detail {

/// What several models have encoded, if all of them can encode ahead. Holds nothing for a model with weight 0.
template <class... Ms>
struct EncodedByAll {};
template <EncodingModel... Ms>
struct EncodedByAll<Ms...> {
  using Encoded = std::tuple<std::optional<typename Ms::Encoded>...>;
};
template <class M>
struct EncodedByEach {};
template <EncodingModel M>
struct EncodedByEach<M> {
  using Encoded = std::vector<std::optional<typename M::Encoded>>;
};

/// Models of different types.
template <detail::ScoringModel M, detail::ScoringModel... Ms>
class ModelTuple : public EncodedByAll<M, Ms...> {
 public:
  using Source = typename M::Source;
  static constexpr bool known = (detail::KnownAbilities<M> && ... && detail::KnownAbilities<Ms>);
  static constexpr Abilities able = [] {
    auto all = known_abilities<M>();
    ((all = common(all, known_abilities<Ms>())), ...);
    return all;
  }();

  explicit ModelTuple(M& model, Ms&... models) : models_(&model, &models...) {}
  static std::size_t size() { return 1 + sizeof...(Ms); }
  M& front() const { return *std::get<0>(models_); }
  template <class F>
  void for_each(F&& f) const {
    std::apply([&](auto*... model) { (f(*model), ...); }, models_);
  }
  /// f(model, what it has encoded)
  template <class Encoded, class F>
  void for_each(Encoded& encoded, F&& f) const {
    [&]<std::size_t... I>(std::index_sequence<I...>) { (f(*std::get<I>(models_), std::get<I>(encoded)), ...); }
    (std::index_sequence_for<M, Ms...>());
  }

 private:
  std::tuple<M*, Ms*...> models_;
};

/// Any number of models of one type.
template <detail::ScoringModel M>
class ModelList : public EncodedByEach<M> {
 public:
  using Source = typename M::Source;
  static constexpr bool known = detail::KnownAbilities<M>;
  static constexpr Abilities able = known_abilities<M>();

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
  /// f(model, what it has encoded)
  template <class Encoded, class F>
  void for_each(Encoded& encoded, F&& f) const {
    encoded.resize(size());
    for (std::size_t i = 0; i < size(); ++i) f(*models_[i], encoded[i]);
  }

 private:
  std::vector<M*> models_;
};

template <class Models>
struct EncodedOfEnsemble {};
template <class Models>
  requires requires { typename Models::Encoded; }
struct EncodedOfEnsemble<Models> {
  using Encoded = typename Models::Encoded;
};

inline namespace SLUICE_ISA {

/// What Ensemble and EnsembleOf share. `Models` is a ModelTuple or a ModelList.
template <class Models>
class BasicEnsemble : public EncodedOfEnsemble<Models>, public Claim<Models::known, Models::able> {
 public:  // `abilities`: what all of them can do
  using Source = typename Models::Source;
  using Wrapped = Models;  ///< see core/named.hpp

  /// Whether all of them can encode ahead.
  bool encodes() const {
    auto all = true;
    models_.for_each([&](auto const& model) { all = all && sluice::encodes(model); });
    return all;
  }

  Vocabulary const& vocabulary() const { return vocabulary_; }
  Limits limits() const { return limits_; }
  std::int32_t source_length(Source const& source) const {
    return sluice::source_length(std::as_const(models_.front()), source);
  }
  std::vector<double> const& weights() const { return weights_; }  ///< they add up to 1

  void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) {
    std::size_t started = 0;
    undo_if_thrown(slot_numbers, started, [&] {
      for_each([&](auto& model, std::size_t i) { model.start(sources, slot_numbers), started = i + 1; });
    });
  }

  /// Encodes ahead with every model; available if all of them can.
  auto encode(std::span<Source const* const> sources) const requires requires { typename Models::Encoded; }
  {
    typename Models::Encoded encoded;
    auto weight = weights_.begin();
    models_.for_each(encoded, [&](auto const& model, auto& own) {
      if (*weight++ > 0) own.emplace(model.encode(sources));
    });
    return encoded;
  }
  template <class Encoded>
    requires requires { typename Models::Encoded; }
  void start(Encoded& encoded, std::span<std::int32_t const> items, std::span<Slot const> slot_numbers) {
    std::size_t started = 0, i = 0;
    undo_if_thrown(slot_numbers, started, [&] {
      models_.for_each(encoded, [&](auto& model, auto& own) {
        if (own) model.start(*own, items, slot_numbers);
        started = ++i;
      });
    });
  }

  void release(std::span<Slot const> slot_numbers) {
    for_each([&](auto& model, std::size_t) { detail::release(model, slot_numbers); });
  }

  /// Throws what a model throws, and std::logic_error if a model's answer has the wrong shape.
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
      : BasicEnsemble::Claim(abilities_of(models)),
        models_(std::move(models)),
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
  static Abilities abilities_of(Models const& models) {
    Abilities all{.ragged = true, .blocks = true, .roll_back = true};
    models.for_each([&](auto const& model) { all = common(all, sluice::abilities(model)); });
    return all;
  }

  /// If f throws, releases the slots in the first `started` models.
  template <class F>
  void undo_if_thrown(std::span<Slot const> slot_numbers, std::size_t const& started, F&& f) {
    try {
      f();
    } catch (...) {
      for_each([&](auto& model, std::size_t i) {
        if (i < started) detail::release(model, slot_numbers);
      });
      throw;
    }
  }

  /// Calls f(model, index) for the models whose weight is not 0.
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
  detail::LogMixture mixture_;
};

}  // namespace SLUICE_ISA
}  // namespace detail

inline namespace SLUICE_ISA {

/// Models with one type of source and one vocabulary, as one model: `Ensemble ensemble(a, b)`. Their scores may have
/// different types and kinds; each line is normalised before it is averaged. All models hold the same slots.
///
/// Refers to the models, which must outlive it and be different objects. A line costs every model's own line, and one
/// softmax and one pass over V for each. The result is the same bits in every batch if the models' lines are. A NaN or
/// +infinity in one model's line makes the line NaN, which the decoder reports; impossible tokens (-infinity) have
/// probability 0. If a model's `start` or `step` throws, so does the ensemble's.
template <detail::ScoringModel M, detail::ScoringModel... Ms>
  requires(std::same_as<typename M::Source, typename Ms::Source>&&...)
class Ensemble : public detail::BasicEnsemble<detail::ModelTuple<M, Ms...>> {
  static_assert(!GrowingModel<M>, "sluice: Ensemble: sources that grow are not passed on");

 public:
  /// \throws std::invalid_argument  if the weights make no sense, or two vocabularies differ in size, bos, eos or never
  explicit Ensemble(EnsembleOptions options, M& model, Ms&... models)
      : Ensemble::BasicEnsemble(detail::ModelTuple<M, Ms...>(model, models...), std::move(options)) {}
  explicit Ensemble(M& model, Ms&... models) : Ensemble(EnsembleOptions{}, model, models...) {}
};

/// The same for models of one type whose number is known only at run time. With AnyModel, the models may have any
/// types.
template <detail::ScoringModel M>
class EnsembleOf : public detail::BasicEnsemble<detail::ModelList<M>> {
  static_assert(!GrowingModel<M>, "sluice: EnsembleOf: sources that grow are not passed on");

 public:
  /// Copies the pointers.
  /// \throws std::invalid_argument  as Ensemble, or if there is no model, or a pointer is null
  explicit EnsembleOf(std::span<M* const> models, EnsembleOptions options = {})
      : EnsembleOf::BasicEnsemble(detail::ModelList<M>(models), std::move(options)) {}
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0

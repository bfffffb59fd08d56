// SPDX-License-Identifier: Apache-2.0
/// \file
/// AnyModel: a model whose type is chosen at run time.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace sluice::inline v0 {

/// Holds any model of one kind of source and answer, behind three virtual calls a step. With it, decoders are compiled
/// once, in one translation unit, for all models of a program; the rest of the program may be C++17 (see
/// docs/getting-started.md).
///
/// \tparam A        the abilities that it claims: the held model must have them all (and may have more)
/// \tparam Encodes  whether sentences can be encoded ahead: the held model must then be an EncodingModel
template <class SourceType, class AnswerType = Scores<float>, Abilities A = Abilities{}, bool Encodes = false>
class AnyModel {
 public:
  using Source = SourceType;
  using Encoded = std::shared_ptr<void>;  ///< the held model's
  static constexpr Abilities abilities = A;

  /// Takes the model over.
  template <Model M>
    requires(!std::same_as<M, AnyModel> && std::same_as<typename M::Source, Source> &&
             std::same_as<Answer<M>, AnswerType>)
  explicit AnyModel(M model) : held_(std::make_unique<Held<M, M>>(std::move(model))) {}

  /// Uses a model that somebody else owns and keeps alive.
  template <Model M>
    requires(std::same_as<typename M::Source, Source>&& std::same_as<Answer<M>, AnswerType>)
  explicit AnyModel(M* model) : held_(std::make_unique<Held<M, M&>>(*model)) {}

  Vocabulary vocabulary() const { return held_->vocabulary(); }
  Limits limits() const { return held_->limits(); }
  std::int32_t source_length(Source const& source) const { return held_->source_length(source); }
  void start(std::span<Source const* const> sources, std::span<Slot const> slots) { held_->start(sources, slots); }
  AnswerType step(std::span<Row const> rows) { return held_->step(rows); }
  void release(std::span<Slot const> slots) { held_->release(slots); }
  Encoded encode(std::span<Source const* const> sources) const requires Encodes { return held_->encode(sources); }
  void start(Encoded& encoded, std::span<std::int32_t const> items, std::span<Slot const> slots) requires Encodes {
    held_->start(encoded.get(), items, slots);
  }

 private:
  struct Interface {
    Interface() = default;
    Interface(Interface const&) = delete;
    Interface& operator=(Interface const&) = delete;
    virtual ~Interface() = default;
    virtual Vocabulary vocabulary() = 0;
    virtual Limits limits() const = 0;
    virtual std::int32_t source_length(Source const& source) const = 0;
    virtual void start(std::span<Source const* const> sources, std::span<Slot const> slots) = 0;
    virtual AnswerType step(std::span<Row const> rows) = 0;
    virtual void release(std::span<Slot const> slots) = 0;
    virtual Encoded encode(std::span<Source const* const> sources) const = 0;
    virtual void start(void* encoded, std::span<std::int32_t const> items, std::span<Slot const> slots) = 0;
  };

  template <Model M, class Storage>
  struct Held final : Interface {
    static_assert(sluice::abilities<M>().include(A),
                  "sluice: this AnyModel claims abilities that the model does not have");
    static_assert(EncodingModel<M> || !Encodes, "sluice: this AnyModel encodes ahead, and the model cannot");
    explicit Held(M&& m) requires(!std::is_reference_v<Storage>) : model(std::move(m)) {}
    explicit Held(M& m) requires(std::is_reference_v<Storage>) : model(m) {}

    Vocabulary vocabulary() override { return model.vocabulary(); }
    Limits limits() const override { return sluice::limits(std::as_const(model)); }
    std::int32_t source_length(Source const& source) const override {
      return sluice::source_length(std::as_const(model), source);
    }
    void start(std::span<Source const* const> sources, std::span<Slot const> slots) override {
      model.start(sources, slots);
    }
    AnswerType step(std::span<Row const> rows) override { return model.step(rows); }
    void release(std::span<Slot const> slots) override {
      if constexpr (ReleasingModel<M>) model.release(slots);
    }
    Encoded encode(std::span<Source const* const> sources) const override {
      if constexpr (Encodes) return std::make_shared<typename M::Encoded>(std::as_const(model).encode(sources));
      else return {};
    }
    void start(void* encoded, std::span<std::int32_t const> items, std::span<Slot const> slots) override {
      if constexpr (Encodes) model.start(*static_cast<typename M::Encoded*>(encoded), items, slots);
    }
    Storage model;
  };

  std::unique_ptr<Interface> held_;
};

}  // namespace sluice::inline v0

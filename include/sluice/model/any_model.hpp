// SPDX-License-Identifier: Apache-2.0
/// \file
/// AnyModel: a model whose type is chosen at run time.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace sluice::inline v0 {

/// Holds any model of one source type and answer type behind a few virtual calls per step. It passes on everything the
/// model offers: abilities, limits, encoding ahead, guesses, what it remembers and attachments. With it, decoders are compiled once, in
/// one translation unit, for all models of a program; the rest of the program may be C++17 (see
/// docs/getting-started.md). If a search needs something that the held model cannot do, making the decoder fails.
template <class SourceType, class AnswerType = Scores<float>>
class AnyModel {
 public:
  using Source = SourceType;
  using Encoded = std::shared_ptr<void>;  ///< the held model's

  /// Takes ownership of the model.
  /// \param claimed  which of its abilities to claim; nothing: all
  /// \throws std::invalid_argument  for claims that the model does not make
  template <Model M>
    requires(!std::same_as<M, AnyModel> && std::same_as<typename M::Source, Source> &&
             std::same_as<Answer<M>, AnswerType>)
  explicit AnyModel(M model, std::optional<Abilities> claimed = {})
      : held_(std::make_unique<Held<M, M>>(std::move(model))), abilities_(claim(claimed)) {}

  /// Refers to a model that the caller owns and keeps alive.
  template <Model M>
    requires(std::same_as<typename M::Source, Source>&& std::same_as<Answer<M>, AnswerType>)
  explicit AnyModel(M* model, std::optional<Abilities> claimed = {})
      : held_(std::make_unique<Held<M, M&>>(*model)), abilities_(claim(claimed)) {}

  Abilities abilities() const { return abilities_; }
  Vocabulary vocabulary() const { return held_->vocabulary(); }
  Limits limits() const { return held_->limits(); }
  std::int32_t source_length(Source const& source) const { return held_->source_length(source); }
  void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) {
    held_->start(sources, slot_numbers);
  }
  AnswerType step(std::span<Row const> rows) { return held_->step(rows); }
  void release(std::span<Slot const> slot_numbers) { held_->release(slot_numbers); }
  bool encodes() const { return held_->encodes(); }
  Encoded encode(std::span<Source const* const> sources) const { return held_->encode(sources); }
  void start(Encoded& encoded, std::span<std::int32_t const> items, std::span<Slot const> slot_numbers) {
    held_->start(encoded.get(), items, slot_numbers);
  }
  bool proposes() const { return held_->proposes(); }
  void propose(std::span<Draft const> drafts) { held_->propose(drafts); }
  void remember(Decoded const& decoded) { held_->remember(decoded); }
  Attachments attachments() { return held_->attachments(); }

 private:
  struct Interface {
    Interface() = default;
    Interface(Interface const&) = delete;
    Interface& operator=(Interface const&) = delete;
    virtual ~Interface() = default;
    virtual Abilities abilities() const = 0;
    virtual Vocabulary vocabulary() = 0;
    virtual Limits limits() const = 0;
    virtual std::int32_t source_length(Source const& source) const = 0;
    virtual void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) = 0;
    virtual AnswerType step(std::span<Row const> rows) = 0;
    virtual void release(std::span<Slot const> slot_numbers) = 0;
    virtual bool encodes() const = 0;
    virtual Encoded encode(std::span<Source const* const> sources) const = 0;
    virtual void start(void* encoded, std::span<std::int32_t const> items, std::span<Slot const> slot_numbers) = 0;
    virtual bool proposes() const = 0;
    virtual void propose(std::span<Draft const> drafts) = 0;
    virtual void remember(Decoded const& decoded) = 0;
    virtual Attachments attachments() = 0;
  };

  template <Model M, class Storage>
  struct Held final : Interface {
    static_assert(!GrowingModel<M>, "sluice: AnyModel: sources that grow are not passed on");
    static_assert(detail::model_names<M>());
    explicit Held(M&& m) requires(!std::is_reference_v<Storage>) : model(std::move(m)) {}
    explicit Held(M& m) requires(std::is_reference_v<Storage>) : model(m) {}

    Abilities abilities() const override { return sluice::abilities(std::as_const(model)); }
    Vocabulary vocabulary() override { return model.vocabulary(); }
    Limits limits() const override { return sluice::limits(std::as_const(model)); }
    std::int32_t source_length(Source const& source) const override {
      return sluice::source_length(std::as_const(model), source);
    }
    void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) override {
      model.start(sources, slot_numbers);
    }
    AnswerType step(std::span<Row const> rows) override { return model.step(rows); }
    void release([[maybe_unused]] std::span<Slot const> slot_numbers) override {
      if constexpr (ReleasingModel<M>) model.release(slot_numbers);
    }
    bool encodes() const override { return sluice::encodes(std::as_const(model)); }
    Encoded encode([[maybe_unused]] std::span<Source const* const> sources) const override {
      if constexpr (EncodingModel<M>)
        return std::make_shared<typename M::Encoded>(std::as_const(model).encode(sources));
      else return {};
    }
    void start([[maybe_unused]] void* encoded, [[maybe_unused]] std::span<std::int32_t const> items,
               [[maybe_unused]] std::span<Slot const> slot_numbers) override {
      if constexpr (EncodingModel<M>) model.start(*static_cast<typename M::Encoded*>(encoded), items, slot_numbers);
    }
    bool proposes() const override { return sluice::proposes(std::as_const(model)); }
    void propose([[maybe_unused]] std::span<Draft const> drafts) override {
      if constexpr (ProposingModel<M>) model.propose(drafts);
    }
    void remember([[maybe_unused]] Decoded const& decoded) override {
      if constexpr (RememberingModel<M>) model.remember(decoded);
    }
    Attachments attachments() override {
      if constexpr (AttachingModel<M>) return model.attachments();
      else return {};
    }
    Storage model;
  };

  Abilities claim(std::optional<Abilities> const& claimed) const {
    auto const all = held_->abilities();
    if (!claimed) return all;
    if (!all.include(*claimed))
      throw std::invalid_argument("sluice: AnyModel: claimed: the model does not have all of these abilities");
    return *claimed;
  }

  std::unique_ptr<Interface> held_;
  Abilities abilities_;
};

}  // namespace sluice::inline v0

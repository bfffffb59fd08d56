// SPDX-License-Identifier: Apache-2.0
/// \file
/// Implements the interfaces of the loop for types of request and search.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/request.hpp>
#include <sluice/core/search.hpp>
#include <sluice/decode/loop/check_needs.hpp>
#include <sluice/decode/loop/interfaces.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

template <class Source, Search S>
struct RequestOf final : AnyRequest {
  RequestOf(Request<Source, S>&& request, AnyModelSide const& side)
      : text(std::move(request.source)), search(std::move(request.search)), model(side) {
    prompt = std::move(request.prompt), prefix = std::move(request.prefix);
    seed = request.seed, shortlist = std::move(request.shortlist), direction = request.direction,
    confidence = request.confidence;
  }
  void const* source() const override { return &text; }
  void check() const override {
    if (search) check_search(*search, model);
  }
  Source text;
  std::optional<S> search;
  AnyModelSide const& model;
};

template <class Source, Search S>
struct SearchOf final : AnySearch {
  explicit SearchOf(S const& one) : usual(one) {}
  void take(AnyRequest const& request) override {
    auto const& own = static_cast<RequestOf<Source, S> const&>(request).search;
    search = own ? &*own : &usual;
  }
  std::int32_t slot_count() const override { return static_cast<std::int32_t>(search->slot_count()); }
  void begin(Sentence const& sentence) override { search->begin(state, sentence); }
  bool insert_into([[maybe_unused]] TokenSet& set) const override {
    if constexpr (InsertingSearch<S>) search->insert_into(set);
    return InsertingSearch<S>;
  }
  void plan(Plan& plan) override { search->plan(state, plan); }
  bool advance(Expansion const& answer) override { return search->advance(state, answer); }
  Progress progress() const override { return search->progress(state); }
  bool draft([[maybe_unused]] Draft& draft) override {
    if constexpr (DraftingSearch<S>) return search->draft(state, draft);
    else return false;
  }
  void settled([[maybe_unused]] std::vector<Token>& tokens) override {
    if constexpr (SettlingSearch<S>) search->settled(state, tokens);
  }
  void finish(Result& result) override { search->finish(state, result); }

  S const& usual;
  S const* search = nullptr;
  mutable typename S::State state{};
};

template <class Source, Search S>
struct SearchesOf final : AnySearches {
  explicit SearchesOf(S one) : search(std::move(one)) {
    takes_prefix = sluice::takes_prefix<S>(), drafts = DraftingSearch<S>;
  }
  std::unique_ptr<AnySearch> make() const override { return std::make_unique<SearchOf<Source, S>>(search); }
  S search;
};

}  // namespace sluice::inline v0::detail

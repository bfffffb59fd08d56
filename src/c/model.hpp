// SPDX-License-Identifier: Apache-2.0
/// \file
/// A table of C functions as a model.
#pragma once

#include <sluice/c/sluice.h>
#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/any_model.hpp>
#include <sluice/speculative/prompt_lookup.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace sluice::c {

/// Sources are pointers that only the model interprets. A non-zero return value is thrown as an exception.
class TableOfFunctions {
 public:
  using Source = void const*;

  /// \throws std::invalid_argument  for an invalid table
  explicit TableOfFunctions(sluice_model_functions const& functions) : functions_(functions) {
    constexpr auto all = SLUICE_RAGGED | SLUICE_BLOCKS | SLUICE_ROLL_BACK;
    require(functions.start != nullptr, "start", "null", "must be a function");
    require(functions.step != nullptr || functions.step_view != nullptr, "step", "null", "must be a function");
    require(functions.reserved == 0, "reserved", functions.reserved, "must be 0");
    require(functions.eos != nullptr || functions.eos_count == 0, "eos", "null", "must be eos_count tokens");
    require(functions.never != nullptr || functions.never_count == 0, "never", "null", "must be never_count tokens");
    require((functions.abilities & ~all) == 0, "abilities", functions.abilities, "has what is no ability");
    require(functions.max_slots >= 0, "max_slots", functions.max_slots, "must not be negative");
    require(functions.max_length >= 0, "max_length", functions.max_length, "must not be negative");
    require(functions.lookup >= 0, "lookup", functions.lookup, "must not be negative");
    vocabulary_ = {.size = functions.vocabulary,
                   .bos = functions.bos,
                   .eos = {functions.eos, functions.eos + functions.eos_count},
                   .never = {functions.never, functions.never + functions.never_count}};
    vocabulary_.check();
  }

  Abilities abilities() const {
    return {.ragged = (functions_.abilities & SLUICE_RAGGED) != 0,
            .blocks = (functions_.abilities & SLUICE_BLOCKS) != 0,
            .roll_back = (functions_.abilities & SLUICE_ROLL_BACK) != 0};
  }
  Vocabulary const& vocabulary() const { return vocabulary_; }
  Limits limits() const {
    Limits limits;
    if (functions_.max_slots > 0) limits.slot_count = functions_.max_slots;
    if (functions_.max_length > 0) limits.length = functions_.max_length;
    return limits;
  }
  std::int32_t source_length(Source const& source) const {
    return functions_.source_length == nullptr ? -1 : functions_.source_length(functions_.user, source);
  }
  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    sources_.clear();
    for (auto const* const source : sources) sources_.push_back(*source);
    demand(functions_.start(functions_.user, slots.size(), sources_.data(), slots.data()), "start");
  }
  Scores<float> step(std::span<Row const> rows) {
    rows_.clear(), tokens_.clear();
    std::size_t lines = 0;
    for (auto const& row : rows) {
      rows_.push_back({row.from, row.to, row.length, row.lines, nullptr, row.tokens.size()});
      tokens_.insert(tokens_.end(), row.tokens.begin(), row.tokens.end());
      lines += static_cast<std::size_t>(row.lines);
    }
    auto const* next = tokens_.data();
    for (auto& row : rows_) row.tokens = next, next += row.count;
    auto const kind = functions_.log_probs != 0 ? Kind::log_probs : Kind::logits;
    auto const count = static_cast<std::ptrdiff_t>(lines);
    if (functions_.step_view != nullptr) {
      float const* first = nullptr;
      std::size_t stride = 0;
      demand(functions_.step_view(functions_.user, rows_.size(), rows_.data(), &first, &stride), "step_view");
      if (first == nullptr || stride < static_cast<std::size_t>(vocabulary_.size))
        throw std::runtime_error("the model's step_view gave " +
                                 (first == nullptr ? "no scores" : "lines " + std::to_string(stride) + " apart") +
                                 ", of " + std::to_string(vocabulary_.size) + " tokens");
      return scores(first, count, vocabulary_.size, kind, static_cast<std::ptrdiff_t>(stride));
    }
    scores_.resize(lines * static_cast<std::size_t>(vocabulary_.size));
    demand(functions_.step(functions_.user, rows_.size(), rows_.data(), scores_.data()), "step");
    return scores(scores_.data(), count, vocabulary_.size, kind);
  }
  void release(std::span<Slot const> slots) {
    if (functions_.release != nullptr) functions_.release(functions_.user, slots.size(), slots.data());
  }
  bool proposes() const { return functions_.propose != nullptr; }
  void propose(std::span<Draft const> drafts) {
    drafts_.clear();
    std::size_t wanted = 0;
    for (auto const& draft : drafts) wanted += static_cast<std::size_t>(draft.count);
    guesses_.resize(wanted);
    auto* place = guesses_.data();
    for (auto const& draft : drafts) {
      auto const count = static_cast<std::size_t>(draft.count);
      drafts_.push_back({draft.slot, draft.length, draft.pending.data(), draft.pending.size(), place, count, 0});
      place += count;
    }
    demand(functions_.propose(functions_.user, drafts_.size(), drafts_.data()), "propose");
    place = guesses_.data();
    for (std::size_t i = 0; i < drafts_.size(); ++i) {
      auto const count = static_cast<std::size_t>(drafts[i].count);
      auto const made = drafts_[i].made;
      if (made > count)
        throw std::runtime_error("the model's propose made " + std::to_string(made) + " guesses of " +
                                 std::to_string(count));
      drafts[i].tokens->insert(drafts[i].tokens->end(), place, place + made);
      place += count;
    }
  }

 private:
  static void demand(int answer, std::string const& function) {
    if (answer != 0) throw std::runtime_error("the model's " + function + " returned " + std::to_string(answer));
  }

  sluice_model_functions functions_;
  Vocabulary vocabulary_;
  std::vector<void const*> sources_;
  std::vector<sluice_row> rows_;
  std::vector<Token> tokens_;  // of all rows
  std::vector<float> scores_;
  std::vector<sluice_draft> drafts_;
  std::vector<Token> guesses_;
};

/// The table, with a prompt lookup in front if the table asks for it.
class LookingModel {
 public:
  explicit LookingModel(sluice_model_functions const& functions)
      : table_(std::make_unique<TableOfFunctions>(functions)) {
    if (functions.lookup > 0)
      lookup_ = std::make_unique<Speculated<TableOfFunctions, PromptLookup>>(
          *table_, PromptLookup({.longest = functions.lookup}));
  }
  AnyModel<void const*> model() const {
    return lookup_ == nullptr ? AnyModel<void const*>(table_.get()) : AnyModel<void const*>(lookup_.get());
  }

 private:
  std::unique_ptr<TableOfFunctions> table_;
  std::unique_ptr<Speculated<TableOfFunctions, PromptLookup>> lookup_;
};

}  // namespace sluice::c

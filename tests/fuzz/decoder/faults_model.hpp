// SPDX-License-Identifier: Apache-2.0
/// \file
/// A table that encodes, guesses, and fails where a source, or the program, says so.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>

#include <fuzz/demand.hpp>
#include <support/table_model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace sluice::test {

/// What one sentence is made of, and what is wrong with it: the same whoever stands beside it.
struct Script {
  std::uint64_t id = 0;    ///< of its request
  std::uint64_t seed = 0;  ///< of its table
  bool no_encode = false, no_start = false;
  float wrong = 0;               ///< not 0: a score that its lines have from some length on
  std::int32_t wrong_from = 0;   ///< tokens that the slot holds
  bool wrong_everywhere = true;  ///< false: for token 3 alone
  std::uint64_t witness = 1;     ///< 0: gone
  std::int32_t length = -1;
};

/// On the heap, so that whoever reads it too late is seen.
class ScriptSource {
 public:
  ScriptSource() = default;
  explicit ScriptSource(Script const& script) : script_(std::make_unique<Script>(script)) {}
  Script const& script() const {
    demand(script_ != nullptr && script_->witness == 1, "a source is read that is gone");
    return *script_;
  }
  ScriptSource(ScriptSource const& other)
      : script_(other.script_ ? std::make_unique<Script>(*other.script_) : nullptr) {}
  ScriptSource(ScriptSource&&) noexcept = default;
  ScriptSource& operator=(ScriptSource other) noexcept {
    script_.swap(other.script_);
    return *this;
  }
  ~ScriptSource() {
    if (script_) script_->witness = 0;
  }

 private:
  std::unique_ptr<Script> script_;
};

/// What happens to the next call, once.
enum class Once : std::uint8_t { nothing, throws, throws_an_int, no_room };

class FaultsModel {
 public:
  using Source = ScriptSource;
  using Encoded = std::vector<Script>;
  static constexpr Abilities abilities{.ragged = true, .blocks = true, .roll_back = true};

  FaultsModel(Table const& table, Limits const& limits, std::int32_t wrong_guesses)
      : table_(table), limits_(limits), wrong_guesses_(wrong_guesses) {
    vocabulary_ = {.size = table.size, .bos = bos, .eos = {}, .never = {pad, bos}};
    for (Token v = 0; v < table.size; ++v)
      if (table.ends(v)) vocabulary_.eos.push_back(v);
    line_.resize(static_cast<std::size_t>(table.size));
  }

  Vocabulary const& vocabulary() const { return vocabulary_; }
  Limits limits() const { return limits_; }
  std::int32_t source_length(Source const& source) const { return source.script().length; }

  Encoded encode(std::span<Source const* const> sources) const {
    go_wrong(*next_encode, "encode is broken");
    Encoded all;
    for (auto const* source : sources) {
      if (source->script().no_encode) throw std::runtime_error("a source that cannot be encoded");
      all.push_back(source->script());
    }
    return all;
  }
  void start(Encoded& encoded, std::span<std::int32_t const> items, std::span<Slot const> slots) {
    if (next_start != Once::nothing && items.size() == 1)
      blamed.insert(encoded.at(static_cast<std::size_t>(items[0])).id);
    go_wrong(next_start, "start is broken");
    for (auto const item : items) refuse(encoded.at(static_cast<std::size_t>(item)));
    for (std::size_t i = 0; i < slots.size(); ++i)
      held_[slots[i]] = {encoded[static_cast<std::size_t>(items[i])], nullptr, {}};
  }
  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    if (next_start != Once::nothing && sources.size() == 1) blamed.insert(sources[0]->script().id);
    go_wrong(next_start, "start is broken");
    for (auto const* source : sources) refuse(source->script());
    for (std::size_t i = 0; i < slots.size(); ++i) held_[slots[i]] = {sources[i]->script(), sources[i], {}};
  }

  Scores<float> step(std::span<Row const> rows) {
    if (next_step == Once::throws || next_step == Once::throws_an_int)
      for (auto const& row : rows) hit.insert(held_.at(row.from).script.id);
    go_wrong(next_step, "step is broken");
    for (auto const& row : rows)
      if (row.from != row.to) held_[row.to] = held_.at(row.from);
    scores_.clear();
    std::ptrdiff_t lines = 0;
    for (auto const& row : rows) {
      auto& held = held_.at(row.to);
      if (held.source != nullptr) demand(held.source->script().id == held.script.id, "a source has changed");
      held.tokens.resize(static_cast<std::size_t>(row.length));
      for (std::size_t i = 0; i < row.tokens.size(); ++i) {
        held.tokens.push_back(row.tokens[i]);
        if (i + static_cast<std::size_t>(row.lines) >= row.tokens.size()) answer(held), ++lines;
      }
    }
    return scores(scores_.data(), lines, table_.size, Kind::logits);
  }

  void release(std::span<Slot const> slots) {
    for (auto const slot : slots) held_.erase(slot);
    go_wrong(next_release, "release is broken");
  }

  /// The most probable tokens, some of them changed: by what the slot holds, not by who else asks.
  void propose(std::span<Draft const> drafts) {
    if (next_propose == Once::throws || next_propose == Once::throws_an_int)
      for (auto const& draft : drafts) hit.insert(held_.at(draft.slot).script.id);
    go_wrong(next_propose, "propose is broken");
    for (auto const& draft : drafts) {
      auto const& held = held_.at(draft.slot);
      auto context = std::vector<Token>(held.tokens.begin(), held.tokens.begin() + draft.length);
      context.insert(context.end(), draft.pending.begin(), draft.pending.end());
      for (auto n = draft.count; n > 0; --n) {
        table_.logits(held.script.seed, without_bos(context), line_);
        auto token = static_cast<Token>(std::ranges::max_element(line_) - line_.begin());
        auto const hash = hash_mix(held.script.seed + context.size());
        if (hash % 8 < static_cast<std::uint64_t>(wrong_guesses_))
          token = static_cast<Token>(hash >> 8) % (table_.size + 2) - 1;  // some are no tokens
        draft.tokens->push_back(token);
        context.push_back(token);
      }
    }
  }

  std::unique_ptr<Once> next_encode = std::make_unique<Once>();  // of a const function
  Once next_start{}, next_step{}, next_propose{}, next_release{};
  std::set<std::uint64_t> hit;     ///< requests in steps that threw
  std::set<std::uint64_t> blamed;  ///< alone in a start that threw; the next try may go well

 private:
  struct Held {
    Script script;
    Source const* source = nullptr;
    std::vector<Token> tokens;
  };

  static void go_wrong(Once& once, char const* what) {
    switch (std::exchange(once, Once::nothing)) {
      case Once::nothing: return;
      case Once::throws: throw std::runtime_error(what);
      case Once::throws_an_int: throw 7;
      case Once::no_room: throw NoRoom(what);
    }
  }
  static void refuse(Script const& script) {
    if (script.no_start) throw std::runtime_error("a source that cannot be started");
  }
  static std::span<Token const> without_bos(std::vector<Token> const& tokens) {
    std::span<Token const> const all(tokens);
    return !all.empty() && all.front() == bos ? all.subspan(1) : all;
  }

  void answer(Held const& held) {
    table_.logits(held.script.seed, without_bos(held.tokens), line_);
    auto const first = scores_.size();
    for (auto const x : line_) scores_.push_back(static_cast<float>(x));
    auto const& script = held.script;
    if (script.wrong == 0 || std::ssize(held.tokens) < script.wrong_from) return;
    for (std::size_t i = first; i < scores_.size(); ++i)
      if (script.wrong_everywhere || i == first + 3) scores_[i] = script.wrong;
  }

  Table table_;
  Limits limits_;
  std::int32_t wrong_guesses_;
  Vocabulary vocabulary_;
  std::map<Slot, Held> held_;
  std::vector<double> line_;
  std::vector<float> scores_;
};

static_assert(EncodingModel<FaultsModel> && ReleasingModel<FaultsModel> && ProposingModel<FaultsModel>);

}  // namespace sluice::test

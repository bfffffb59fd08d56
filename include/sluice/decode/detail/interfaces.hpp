// SPDX-License-Identifier: Apache-2.0
/// \file
/// The interfaces through which the loop calls model, searches, schedule and trace: one virtual call per phase, for a sentence or
/// a step. typed.hpp and searches_of.hpp implement them for each type, so a program compiles the loop once, whatever it combines.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/any_search.hpp>
#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/logits_processor_list.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/request.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/statistics.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/schedule.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// A request. Its source and search are typed in RequestOf. Its address is constant until its sentence ends.
struct AnyRequest : Interface {
  virtual void const* source() const = 0;  ///< a Source const*
  virtual void* source() = 0;              ///< the same, to append to it
  virtual void const* search() const = 0;  ///< its own search, an S const*, or nullptr

  std::vector<Token> prompt{}, prefix{};
  LogitsProcessorList processors{};
  std::optional<std::uint64_t> seed{};
  std::optional<TokenSet> shortlist{};
  std::int32_t direction = 0;
  Confidence confidence{};
  std::int32_t source_length = -1;
  bool traced = false, remember = true;
  std::exception_ptr problem{};  ///< why it is refused, if that is known
};

/// Makes searches.
struct AnyModelSide;
struct AnySearches : Interface {
  virtual std::unique_ptr<AnySearch> make() const = 0;
  /// Throws std::invalid_argument if a request's own search (nullptr: the decoder's) is bad, or is none for this model.
  virtual void check(void const* own, AnyModelSide const& model) const = 0;
  bool takes_prefix = false, drafts = false, waits = false;
};

/// Queries of the loop itself about the lines of a step, for Request::confidence.
struct ExtraQueries {
  Buffer<Query> queries{};
  Buffer<Group> groups{};
  std::function<void(Expansion const&)> receive{};
};

/// Adds the time since its last call to one of several sums.
struct AnyStopwatch : Interface {
  virtual void book(double& account) = 0;
};

/// The model and the expander.
struct AnyModelSide : Interface {
  virtual std::int32_t source_length(void const* source) const = 0;
  virtual SourceGrowth growth(void const* source) const = 0;
  virtual void start(std::span<void const* const> sources, std::span<Slot const> slot_numbers) = 0;
  virtual void release(std::span<Slot const> slot_numbers) = 0;
  /// Runs the rows and expands the answer; books the seconds. `extra` (or nullptr) is expanded first.
  virtual Expansion step(StepPlan const& step, ExtraQueries const* extra, Statistics::Seconds& seconds,
                         AnyStopwatch& stopwatch) = 0;
  virtual void propose(std::span<Draft const> drafts) = 0;
  virtual void remember(Decoded const& decoded) = 0;
  /// The attachments of the step just run, whose plan had so many lines.
  virtual Attachments attachments(std::size_t lines) = 0;
  /// Encodes sources. start() takes what it returns.
  virtual std::shared_ptr<void> encode(std::span<void const* const> sources) const = 0;
  virtual void start(void* encoded, std::span<std::int32_t const> items, std::span<Slot const> slot_numbers) = 0;

  Vocabulary vocabulary{};
  Limits limits{};
  Abilities abilities{};
  bool encodes = false, proposes = false, remembers = false, grows = false;
  bool attaches = false, answers_entropy = true;
  bool processes_lines = false;  ///< the expander calls Query::process
  bool alike = false;            ///< sources are empty: the input is in the prompts
};

struct AnySchedule : Interface {
  virtual std::size_t admit(std::span<Live const> live, std::span<std::int32_t const> waiting) const = 0;
  virtual void select(std::span<Live const> live, std::vector<std::int32_t>& chosen) const = 0;
};

struct AnyTrace : Interface {
  virtual void began(std::uint64_t id, Sentence const& sentence) = 0;
  virtual void admitted(std::uint64_t id, Slot base, std::int32_t slot_count) = 0;
  virtual void planned(StepPlan const& step) = 0;
  virtual void answered(StepPlan const& step, Expansion const& answer) = 0;
  virtual void ended(Result const& result) = 0;
  virtual bool wants_entropy() const = 0;
};

/// A source of requests that are not yet submitted.
struct Supply : Interface {
  virtual bool submit_next() = 0;  ///< submits one; false: there are none left
};

}  // namespace sluice::inline v0::detail

// SPDX-License-Identifier: Apache-2.0
/// \file
/// The running sentences.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/at_end.hpp>
#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/detail/attachments.hpp>
#include <sluice/decode/detail/check_plan.hpp>
#include <sluice/decode/detail/interfaces.hpp>
#include <sluice/decode/detail/prefill.hpp>
#include <sluice/decode/detail/token_confidence.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace sluice::inline v0::detail {

/// A sentence that is being decoded.
struct Running {
  std::uint64_t id = 0;
  std::unique_ptr<AnyRequest> request{};
  std::unique_ptr<AnySearch> plain{};
  std::unique_ptr<AnyProcessed> processed{};  // that with the request's processors, if it ever had any
  AnySearch* search = nullptr;                // one of these
  Prefill prefill{};
  AttachmentTree attachments{};
  TokenConfidence confidence{};
  Slot base = 0;
  std::int32_t slot_count = 0, age = 0, idle = 0;
  std::int64_t turn = 0;  // see Live
  struct {
    PlanMark from{}, to{};
  } part{};                // its part of the step's plan
  std::int32_t chunk = 0;  // tokens of its prefill that the step may feed
  std::int32_t share = 0;  // tokens of its prompt that another slot is expected to hold
  SourceGrowth growth{};   // as of this step
  TokenSet shortlist{};    // that of the request, and what the search needs
  bool ended = false;

  std::size_t rows() const { return part.to.rows - part.from.rows; }
  std::size_t lines() const { return part.to.queries - part.from.queries; }
};

/// Sentences, oldest first. The address of each is constant. The memory of those that have ended is used again.
class Roster {
 public:
  explicit Roster(AnySearches const& searches) : searches_(searches) {}

  /// Memory for a sentence. Pass it to add() or give_back().
  SLUICE_LAZY std::unique_ptr<Running> take() {
    if (!spare_.empty()) {
      auto one = std::move(spare_.back());
      spare_.pop_back();
      return one;
    }
    auto one = std::make_unique<Running>();
    one->plain = searches_.make();
    return one;
  }
  SLUICE_LAZY void give_back(std::unique_ptr<Running> one) { spare_.push_back(std::move(one)); }
  SLUICE_LAZY void add(std::unique_ptr<Running> one) { alive_.push_back(std::move(one)); }

  /// Removes the sentences that have ended. During a Visit: does nothing, the end of the visit does it.
  SLUICE_LAZY void sweep() {
    if (visited_) return;
    std::size_t kept = 0;
    for (auto& one : alive_) {
      if (one->ended) {
        if (one->processed != nullptr) one->processed->clear();
        one->request.reset();  // frees what the caller gave
        spare_.push_back(std::move(one));
      } else std::swap(alive_[kept++], one);
    }
    alive_.erase(alive_.begin() + static_cast<std::ptrdiff_t>(kept), alive_.end());
  }

  /// While one of these lives, no sentence is removed. So a callback may end any sentence during an iteration.
  // NOLINTNEXTLINE(cppcoreguidelines-special-member-functions): AtEnd destroys
  class Visit {
   public:
    SLUICE_LAZY explicit Visit(Roster& roster) : roster_(roster) { roster_.visited_ = true; }
    Visit(Visit const&) = delete;
    Visit& operator=(Visit const&) = delete;

   private:
    friend AtEnd<Visit>;
    SLUICE_LAZY void end() {
      roster_.visited_ = false;
      roster_.sweep();
    }

    Roster& roster_;
    AtEnd<Visit> at_end_{*this};
  };
  bool visited() const { return visited_; }

  std::size_t size() const { return alive_.size(); }  ///< during a Visit: includes those that have ended in it
  bool empty() const { return alive_.empty(); }
  Running& operator[](std::size_t i) { return *alive_[i]; }
  auto begin() const { return alive_.begin(); }
  auto end() const { return alive_.end(); }

 private:
  AnySearches const& searches_;
  Buffer<std::unique_ptr<Running>> alive_, spare_;
  bool visited_ = false;
};

}  // namespace sluice::inline v0::detail

// SPDX-License-Identifier: Apache-2.0
/// \file
/// The possible continuations of a beam's hypotheses in a catalogue.
#pragma once

#include <sluice/language.hpp>

#include <sluice/catalogue/catalogue.hpp>
#include <sluice/catalogue/in_catalogue.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/detail/beam_state.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// The children of every hypothesis's node, plus eos tokens where an item ends.
struct ChildrenLists {
  /// The range of one hypothesis.
  struct Listed {
    std::uint32_t begin = 0, children = 0, count = 0;  // in `tokens`: children, ascending, then eos tokens
    std::int32_t line = -1;                            // of the answer
    bool certain = false;                              // that it ends
    bool idle = false;                                 // alive, without a slot
    bool asks() const { return count > 0 && !certain; }
  };
  std::vector<Catalogue::Node> nodes;  // [rank]
  std::vector<Listed> listed;          // [rank]
  std::vector<Token> tokens;           // of all of them
  std::vector<Item> first, last;       // [token]: range of items below a child
  std::uint32_t ends = 0;              // number of `tokens` that are eos

  std::span<Token const> tokens_of(Listed const& one) const { return std::span(tokens).subspan(one.begin, one.count); }

  /// Builds new lists.
  /// \param hypotheses  best first; those that have ended get nothing
  /// \param alone       whether an end without alternatives is certain
  void list(InCatalogue const& items, BeamState const& s, std::span<BeamState::Entry const> hypotheses, bool alone) {
    auto const& eos = s.vocabulary->eos;
    auto const may_end = s.generated >= s.bounds.min || s.last();
    tokens.clear(), first.clear(), last.clear(), ends = 0;
    off_.begin(items.off());
    listed.assign(hypotheses.size(), {});
    for (std::size_t rank = 0; rank < hypotheses.size(); ++rank) {
      if (hypotheses[rank].ended) continue;
      auto& one = listed[rank];
      one.begin = static_cast<std::uint32_t>(tokens.size());
      items.list_left(nodes[rank], tokens, first, last, off_);
      one.children = static_cast<std::uint32_t>(tokens.size()) - one.begin;
      if (may_end && items.may_end(nodes[rank])) {
        tokens.insert(tokens.end(), eos.begin(), eos.end());
        first.resize(tokens.size()), last.resize(tokens.size());
        ends += static_cast<std::uint32_t>(eos.size());
        one.certain = alone && one.children == 0 && eos.size() == 1;
      }
      one.count = static_cast<std::uint32_t>(tokens.size()) - one.begin;
    }
  }

  /// Moves to the nodes of the next beam, before its slots are assigned.
  void follow(BeamState const& s) {
    next_.assign(s.next.size(), {});
    for (std::size_t i = 0; i < s.next.size(); ++i) {
      auto const& entry = s.next[i];
      if (entry.ended) continue;
      auto const parent = static_cast<std::size_t>(s.holder[static_cast<std::size_t>(entry.from)]);
      auto const& one = listed[parent];
      if (one.children == 0) continue;  // in an unchecked file, siblings may come in any order
      auto const begin = tokens.begin() + one.begin;
      auto const at =
          static_cast<std::size_t>(std::lower_bound(begin, begin + one.children - 1, entry.token) - tokens.begin());
      next_[i] = {nodes[parent].depth + 1, first[at], last[at]};
    }
    nodes.swap(next_);
  }

 private:
  std::vector<Catalogue::Node> next_;
  SwitchedOffCursor off_;
};

}  // namespace sluice::inline v0::detail

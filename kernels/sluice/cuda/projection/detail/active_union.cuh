// SPDX-License-Identifier: Apache-2.0
/// \file
/// The active tokens of each line: unions of the masks of the lines' clusters, in the form that kernels read.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/line/line_select.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// The result for a union.
struct UnionResult {
  std::int32_t count = 0;    ///< active tokens; for the joint union, those listed
  std::int32_t part = 0;     ///< for one union: 1 if its lines may give only these; 0: all tokens are active
  std::int32_t changed = 0;  ///< for the joint union: whether it differs from that of the last call
};

SLUICE_DEVICE bool has_bit(std::uint32_t const* mask, std::uint32_t place) {
  return (mask[place / 32] >> (place % 32) & 1u) != 0;
}

/// The active tokens of each line, once the kernels of UnionLaunch have run; all pointers are device pointers.
struct ActiveMasks {
  std::int32_t const* union_of =
      nullptr;  ///< [lines]; -1: all tokens are active. Null: every `each` adjacent lines share one
  std::int32_t each = 1;
  std::int32_t line = 0;                 ///< the first line
  UnionResult const* results = nullptr;  ///< [unions]
  std::uint32_t const* masks = nullptr;  ///< [unions, words]
  std::int32_t words = 0;

  /// The line's union; -1: all tokens are active.
  SLUICE_DEVICE std::int32_t deciding(std::int32_t at) const {
    auto const u = union_of != nullptr ? union_of[line + at] : (line + at) / each;
    return u >= 0 && results[u].part != 0 ? u : -1;
  }
  SLUICE_DEVICE bool has(std::int32_t u, std::int32_t token) const {
    return u < 0 || has_bit(masks + std::int64_t{u} * words, static_cast<std::uint32_t>(token));
  }
};

/// The arguments of the kernels that form unions; all pointers are device pointers. Lines that share a union are
/// adjacent.
struct UnionLaunch {
  std::int32_t words = 0;  ///< of a mask: ceil(V / 32)
  std::int32_t size = 0;   ///< V: tokens outside [0, V) are in no mask
  std::int32_t lines = 0, nearest = 1, unions = 0;
  std::int32_t most = 0;                   ///< with more active tokens than this, all are active
  std::int32_t list_all = 0;               ///< 1: all tokens are listed if all are active for any line
  std::int32_t without = 0;                ///< 1: there are lines without a union
  LineQuery common{};                      ///< every line's query
  std::int32_t ascending = 0;              ///< as LineLaunch::ascending
  std::int32_t each = 1;                   ///< see ActiveMasks
  std::int32_t const* union_of = nullptr;  ///< see ActiveMasks
  std::int32_t const* first = nullptr;     ///< [unions + 1], with union_of: where the lines of each begin

  std::uint32_t const* always = nullptr;    ///< [words]
  std::uint32_t const* clusters = nullptr;  ///< [clusters, words]: the tokens of each
  Candidate const* found = nullptr;         ///< [lines, nearest]: the clusters of each line
  LineResult const* found_of = nullptr;     ///< [lines]: how many of them there are
  LineQuery const* queries = nullptr;       ///< [lines], or null: `common`; edits and probes name tokens
  LineSelect const* selects = nullptr;      ///< [lines]: the parts that need further passes; may be null
  Edit const* edits = nullptr;
  Token const* probes = nullptr;
  std::uint32_t const* masks = nullptr;  ///< sets that queries name, `words` each

  std::uint32_t* joint = nullptr;   ///< [words]: tokens active in any union
  std::uint32_t* own = nullptr;     ///< [unions, words]; nullptr: there is one union, the joint one
  std::uint32_t* before = nullptr;  ///< [words]: `joint` at the last call that had one; null: changes are not tracked
  Token* tokens = nullptr;          ///< [V]: the joint union, ascending
  UnionResult* results = nullptr;   ///< [1 + unions]: of the joint union, of each

  SLUICE_HOST_DEVICE std::uint32_t* mask(std::int32_t u) const {
    return own != nullptr ? own + std::int64_t{u} * words : joint;
  }
  SLUICE_HOST_DEVICE LineQuery const& query(std::int32_t line) const {
    return queries != nullptr ? queries[line] : common;
  }
  SLUICE_HOST_DEVICE std::int32_t union_at(std::int32_t line) const {
    return union_of != nullptr ? union_of[line] : line / each;
  }
  /// The first line of a union; the number of lines if u is the number of unions.
  SLUICE_HOST_DEVICE std::int32_t first_of(std::int32_t u) const {
    if (first != nullptr) return first[u];
    return u * each < lines ? u * each : lines;
  }
  /// Where the set begins that a query allows before the softmax; -1: all tokens.
  SLUICE_HOST_DEVICE static std::int32_t allowed(LineQuery const& query) {
    return query.shortlist >= 0 ? query.shortlist : query.stage == Stage::before_softmax ? query.only : -1;
  }
  /// The same for a union, if its lines agree.
  SLUICE_HOST_DEVICE std::int32_t allowed(std::int32_t u) const { return allowed(query(first_of(u))); }
  SLUICE_HOST_DEVICE ActiveMasks active() const { return {union_of, each, 0, results + 1, mask(0), words}; }
};

}  // namespace sluice::inline v0::cuda::detail

// SPDX-License-Identifier: Apache-2.0
/// \file
/// The kernels' input and output for each line.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/device/detail/partial_sum.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda {

inline constexpr std::int32_t most_listed = 64;  ///< the longest list of one pass; longer lists are sorted

inline constexpr std::int32_t unread = -1;  ///< LineQuery::best of a line that nothing is asked of

/// The query of one line: the part of Query that one pass answers.
struct LineQuery {
  /// In [0, most_listed]; `unread`: the line is not read, whatever else is asked, and counts as valid and empty
  std::int32_t best = 1;
  std::int32_t normalise = 1;                ///< 0: raw scores
  float temperature = 1;                     ///< > 0
  Stage stage = Stage::before_softmax;       ///< of the edits; their penalties after the softmax are handled by
                                             ///< LineSelect
  std::int32_t edits = 0, edit_count = 0;    ///< the line's part of LineLaunch::edits
  std::int32_t probes = 0, probe_count = 0;  ///< and of LineLaunch::probes
  std::int32_t shortlist = -1;               ///< where its words begin in LineLaunch::masks; -1: all tokens
  std::int32_t only = -1;                    ///< likewise, at `stage`
};

/// The result for one line, except its lists.
struct LineResult {
  std::int32_t count = 0;  ///< listed
  std::int32_t valid = 1;
  float log_sum_exp = 0;
};

namespace detail {

/// Which part of which line a block reads.
struct LinePartNumber {
  std::int32_t row = 0, split = 0;
};

/// The arguments of the kernel; all pointers are device pointers. V = size.
template <class Format>
struct LineLaunch {
  typename Format::Bits const* scores = nullptr;
  std::int64_t stride = 0;  ///< in elements
  std::int32_t size = 0;
  std::int32_t rows = 0;
  std::int32_t k = 1;       ///< the largest LineQuery::best, at least 1; longer lists are cut to it
  std::int32_t chunks = 1;  ///< per block
  std::int32_t splits = 1;  ///< blocks per line

  // Lines computed tile by tile (some columns of all lines, overwritten by the next): one launch per tile.
  std::int32_t first_split = 0;  ///< of the tile; `scores` points to where place 0 would be
  std::int32_t tile_splits = 0;  ///< blocks per line in this launch; 0: whole lines
  SLUICE_HOST_DEVICE std::int32_t splits_here() const { return tile_splits > 0 ? tile_splits : splits; }

  std::int32_t ring = 0;  ///< the most persistent blocks that read through rings; 0: one block per part. Without masks
  std::int32_t clusters = 0;  ///< 1: the blocks of a line are a cluster; see suits_clusters()

  /// The number of parts of lines in this launch; the parts of a line are adjacent.
  SLUICE_HOST_DEVICE std::int32_t parts_here() const { return rows * splits_here(); }
  SLUICE_HOST_DEVICE LinePartNumber part(std::int32_t item) const {
    auto const row = item / splits_here();
    return {row, first_split + item - row * splits_here()};
  }

  LineQuery common{};                  ///< every line's query
  LineQuery const* queries = nullptr;  ///< or one each
  float const* bias = nullptr;         ///< [V], 16-byte aligned, with 7 zeros behind it
  Token const* tokens = nullptr;       ///< [V], ascending: token of each place; edits, probes and masks name places
  Edit const* edits = nullptr;
  std::int32_t ascending = 0;  ///< 1: every query's edits are in ascending order, see LineTask::ascending
  Token const* probes = nullptr;
  std::uint32_t const* masks = nullptr;  ///< bit p % 32 of word p / 32: whether place p is allowed

  SLUICE_HOST_DEVICE LineQuery const& query(std::int32_t row) const {
    return queries != nullptr ? queries[row] : common;
  }

  /// Whether a line's scores are read.
  SLUICE_HOST_DEVICE bool reads(std::int32_t row) const { return query(row).best >= 0; }

  /// Calls go.operator()<many, masked>() for this launch: with lists or only the best, with or without masks.
  template <class Go>
  void with_variant(Go&& go) const {
    auto const many = k > 1, masked = masks != nullptr;
    if (many && masked) go.template operator()<true, true>();
    else if (many) go.template operator()<true, false>();
    else if (masked) go.template operator()<false, true>();
    else go.template operator()<false, false>();
  }

  Key* keys = nullptr;          ///< [rows, k, splits]: the blocks' lists
  PartialSum* sums = nullptr;   ///< [rows, sums of a line]
  unsigned* tickets = nullptr;  ///< [rows], zero; zero again afterwards

  Candidate* best = nullptr;      ///< [rows, k]
  float* probe_values = nullptr;  ///< as `probes`
  float* probe_parts = nullptr;   ///< as `probes`: values that tiles pass on to the last one; may be probe_values
  LineResult* results = nullptr;  ///< [rows]
  PartialSum* totals = nullptr;   ///< [rows]: the sums of whole lines, if wanted
};

}  // namespace detail

}  // namespace sluice::inline v0::cuda

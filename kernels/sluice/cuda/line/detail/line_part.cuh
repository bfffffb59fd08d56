// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a thread block of LogSoftmaxTopK computes from its part of a line.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/device/detail/partial_sum.cuh>
#include <sluice/cuda/line/detail/line_edits.cuh>
#include <sluice/cuda/line/detail/line_loads.cuh>
#include <sluice/cuda/line/detail/line_reader.cuh>
#include <sluice/cuda/line/detail/selection.cuh>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/line/line_shape.cuh>

#include <cstdint>
#include <type_traits>

namespace sluice::inline v0::cuda::detail {

/// The shared memory of a block.
template <int threads>
struct LineMemory {
  static constexpr int most_groups = LineShape::most_chunks * LineShape::loads * threads;
  static constexpr int most_pairs = most_groups / 2;
  static constexpr int most_elements = most_pairs / 2 > 16 * most_listed ? most_pairs / 2 : 16 * most_listed;
  union {
    float delegates[most_pairs];  ///< the best score of every pair of groups; each thread reads only its own
    Key elements[most_elements];  ///< keys that may be among the best
  };
  Key groups[most_listed * most_pairs / threads];  ///< the groups with the best scores of the pairs that contain them
  Key best[most_listed];                           ///< the answer, in order
  ThresholdMemory<threads> threshold;
  PartialSum sums[LineShape::most_chunks * (threads / 32)];
  PartialSum warp_sums[threads / 32];
  std::uint32_t marks[most_groups / 32];  ///< a bit for every group with edits
  EditRange edits;                        ///< the edits of the block's part; all edits, if they are not in order
  int group_count, element_count;
  int last;
};

/// Reads the part once, in groups of 16 bytes: computes the sum of exponentials and the best score of every pair of
/// groups that one thread loads one after the other (its *delegate*; of equal scores, that of the first group). The k
/// best scores are in the pairs of the k best delegates, so a threshold from the threads' best delegates leaves little
/// more than k pairs to read again (Gaihre et al. 2021, "Dr. Top-k: delegate-centric top-k on
/// GPUs"). The cost does not depend on the order of the scores, and little on k; no thread keeps a list.
/// \tparam many    false: k is 1
/// \tparam masked  false: no query has a mask
/// \tparam Loads   how the part is read: DirectLoads, or RingLoads&
template <class Format, bool many, bool masked, class Block, class Loads = DirectLoads>
class LinePart {
 public:
  static constexpr int threads = Block::threads;
  static constexpr int wide = Format::wide;
  using Memory = LineMemory<threads>;
  static_assert(threads >= 64 && threads % 32 == 0, "every list has to fit");

 protected:
  SLUICE_DEVICE LinePart(Block& block, Memory& memory, LineLaunch<Format> const& launch, std::int32_t row,
                         std::int32_t split, Loads loads)
      : block_(block),
        memory_(memory),
        launch_(launch),
        reader_(launch, row),
        loads_(loads),
        row_(row),
        split_(split),
        chunks_(static_cast<std::int32_t>(LineShape::chunks<Format>(launch.size, threads))),
        base_(static_cast<std::uint32_t>(split * launch.chunks * LineShape::loads * threads)) {}

  /// Reads the whole part. Returns the thread's best group.
  /// \param here  whether the sums of its chunks stay in the block's memory
  SLUICE_DEVICE Key read(bool here) {
    if (block_.thread() == 0) memory_.group_count = memory_.element_count = 0;
    if (reader_.edited()) mark();
    return stream(here);
  }

  /// Writes the block's k best to shared memory, in order; returns their number.
  SLUICE_DEVICE int select(Key best, int k) {
    auto const bar = threshold(block_, memory_.threshold, best, k);
    if (best >= bar) {
      auto seconds = seconds_;
      for (auto i = static_cast<int>(streamed() / (2 * threads)) - 1; i >= 0; --i, seconds >>= 1) {
        auto const group = (2 * static_cast<std::uint32_t>(i) + (seconds & 1u)) * threads;
        auto const thread = static_cast<std::uint32_t>(block_.thread());
        auto const key = make_key(memory_.delegates[i * threads + block_.thread()], base_ + group + thread);
        if (key >= bar) memory_.groups[block_.add(&memory_.group_count, 1)] = key;
      }
    }
    block_.sync(Barrier::groups);
    auto count = memory_.group_count;
    Key const* groups = memory_.groups;
    if (count > most_reread) {  // a few threads had most of the best: keep k pairs
      for (int i = block_.thread(); i < count; i += threads) {
        auto const rank = rank_of(memory_.groups[i], memory_.groups, count);
        if (rank < k) memory_.best[rank] = memory_.groups[i];
      }
      block_.sync(Barrier::kept);
      groups = memory_.best, count = k;
    }
    for (int i = block_.thread(); i < 2 * count; i += threads) {  // both groups of a pair
      auto const local = place_of(groups[i / 2]) - base_;
      auto const second = local / threads % 2 != 0 ? 1u : 0u;
      gather(base_ + local + (static_cast<std::uint32_t>(i % 2) - second) * threads, bar);
    }
    block_.sync(Barrier::elements);
    return rank_elements(k);
  }

  /// Finds the block's best; returns whether there is one.
  SLUICE_DEVICE int select_one(Key best) {
    auto const top = best_of_block(block_, memory_.threshold, best);
    if (block_.thread() == 0 && top != no_key) {
      auto const group = place_of(top);
      auto const named = edited(group - base_);
      float x[wide];
      reader_.scores(block_, reader_.load_any(block_, group), group, named, x);
      reader_.rank(block_, group, named, x);
      auto key = no_key;
      SLUICE_UNROLL
      for (std::uint32_t c = 0; c < wide; ++c) {
        auto const other = make_key(x[c], group * wide + c);
        key = other > key ? other : key;
      }
      memory_.best[0] = key;
    }
    block_.sync(Barrier::ranked);
    return top != no_key ? 1 : 0;
  }

  /// Writes the k best of the listed elements to shared memory, in order; returns their number.
  SLUICE_DEVICE int rank_elements(int k) {
    auto const count = memory_.element_count;
    for (int i = block_.thread(); i < count; i += threads) {
      auto const key = memory_.elements[i];
      auto const rank = rank_of(key, memory_.elements, count);
      if (rank < k) memory_.best[rank] = key;
    }
    block_.sync(Barrier::ranked);
    return count < k ? count : k;
  }

  /// The number of groups that the block reads.
  SLUICE_DEVICE std::uint32_t streamed() const {
    auto const rest = chunks_ - split_ * launch_.chunks;
    return static_cast<std::uint32_t>((rest < launch_.chunks ? rest : launch_.chunks) * LineShape::loads * threads);
  }

  Block& block_;
  Memory& memory_;
  LineLaunch<Format> const& launch_;
  LineReader<Format, masked> const reader_;
  Loads loads_;
  std::int32_t const row_, split_;
  std::int32_t const chunks_;  // of the line
  std::uint32_t const base_;   // the block's first group

 private:
  /// The range that contains a group's edits; empty if it has none.
  SLUICE_DEVICE EditRange edited(std::uint32_t local) const {
    if (!reader_.edited() || (memory_.marks[local / 32] >> (local % 32) & 1u) == 0) return {};
    return memory_.edits;
  }

  /// Finds the edits of the block's part, and marks their groups.
  SLUICE_DEVICE void mark() {
    for (int i = block_.thread(); i < Memory::most_groups / 32; i += threads) memory_.marks[i] = 0;
    auto const* const edits = reader_.edits();
    if (launch_.ascending == 0) {
      if (block_.thread() == 0) memory_.edits = reader_.all_edits();
    } else if (block_.warp() < 2) {  // one warp finds the begin, one the end
      auto const bound = (base_ + (block_.warp() == 0 ? 0 : streamed())) * wide;
      auto const at = first_edit_of_warp(block_, edits, reader_.all_edits().end, bound);
      if (block_.lane() == 0) (block_.warp() == 0 ? memory_.edits.begin : memory_.edits.end) = at;
    }
    block_.sync(Barrier::cleared);
    for (int i = memory_.edits.begin + block_.thread(); i < memory_.edits.end; i += threads) {
      auto const local = edited_place(block_, edits, i) / wide - base_;
      if (local < Memory::most_groups) block_.set(&memory_.marks[local / 32], 1u << (local % 32));
    }
    block_.sync(Barrier::marked);
  }

  /// Writes sums and delegates to shared memory.
  SLUICE_DEVICE Key stream(bool here) {
    if constexpr (!masked) {
      if (reader_.plain()) return stream_groups<true>(here);
    }
    return stream_groups<false>(here);
  }

  /// \tparam plain  the line's scores are those in memory: without branches, and with the same results
  template <bool plain>
  SLUICE_DEVICE Key stream_groups(bool here) {
    constexpr int count = 16 / wide;  // groups used at once: 16 numbers per thread
    constexpr int ahead = std::remove_reference_t<Loads>::template ahead<count, plain>;  // groups loaded before
    static_assert(count % 2 == 0, "pairs");
    auto top = minus_infinity;
    std::uint32_t top_group = 0;
    auto const normalise = launch_.query(row_).normalise != 0;
    for (int chunk = 0; chunk < launch_.chunks && split_ * launch_.chunks + chunk < chunks_; ++chunk) {
      auto const start = static_cast<std::uint32_t>(chunk * LineShape::loads * threads);
      PartialSum sum;
      for (std::uint32_t begin = 0; begin < LineShape::loads; begin += ahead) {
        auto const first = start + begin * threads + static_cast<std::uint32_t>(block_.thread());
        Words words[ahead];
        loads_.load(block_, reader_, base_ + first, words);
        SLUICE_UNROLL
        for (std::uint32_t batch = 0; batch < ahead; batch += count) {
          float x[count][wide];
          auto maximum = sum.maximum;
          auto before = minus_infinity;  // the delegate of a pair's first group
          SLUICE_UNROLL
          for (std::uint32_t i = 0; i < count; ++i) {
            auto const group = first + (batch + i) * threads;
            auto delegate = minus_infinity;
            if constexpr (plain) {
              unpack<Format>(words[batch + i], x[i]);
              delegate = largest_of<Format>(words[batch + i], x[i]);
              maximum = larger(delegate, maximum);
            } else {
              auto const named = edited(group);
              reader_.scores(block_, words[batch + i], base_ + group, named, x[i]);
              SLUICE_UNROLL
              for (int c = 0; c < wide; ++c) delegate = larger(x[i][c], delegate);
              maximum = larger(delegate, maximum);
              if ((named.some() && reader_.edited_after()) || reader_.masked_after()) {
                float ranked[wide];
                SLUICE_UNROLL
                for (int c = 0; c < wide; ++c) ranked[c] = x[i][c];
                reader_.rank(block_, base_ + group, named, ranked);
                delegate = minus_infinity;
                SLUICE_UNROLL
                for (int c = 0; c < wide; ++c) delegate = larger(ranked[c], delegate);
              }
            }
            if (i % 2 == 0) {
              before = delegate;
              continue;
            }
            auto const second = delegate > before;
            delegate = larger(delegate, before);
            if constexpr (many) {
              memory_.delegates[start / 2 + (begin + batch + i) / 2 * threads +
                                static_cast<std::uint32_t>(block_.thread())] = delegate;
              seconds_ = 2 * seconds_ + (second ? 1u : 0u);
            }
            if (delegate > top) top = delegate, top_group = second ? group : group - threads;
          }
          if (normalise) {
            sum.raise<Block>(maximum);
            SLUICE_UNROLL
            for (int i = 0; i < count; ++i) {
              SLUICE_UNROLL
              for (int c = 0; c < wide; ++c) sum.add(PartialSum::exp<Block>(x[i][c], maximum));
            }
          } else {
            SLUICE_UNROLL
            for (int i = 0; i < count; ++i) {
              SLUICE_UNROLL
              for (int c = 0; c < wide; ++c)
                if (!(x[i][c] < plus_infinity)) sum.sum = not_a_number;
            }
          }
        }
      }
      sum = sum_of_warp(block_, sum);
      if (block_.lane() == 0) {
        if (here) {
          memory_.sums[chunk * Block::warps + block_.warp()] = sum;
        } else {
          auto const at = (std::int64_t{row_} * chunks_ + split_ * launch_.chunks + chunk) * Block::warps;
          block_.store(launch_.sums + at + block_.warp(), sum);
        }
      }
    }
    return make_key(top, base_ + top_group);
  }

  /// Lists a group's scores that reach the bar.
  SLUICE_DEVICE void gather(std::uint32_t group, Key bar) {
    auto const named = edited(group - base_);
    float x[wide];
    reader_.scores(block_, reader_.load_any(block_, group), group, named, x);
    reader_.rank(block_, group, named, x);
    SLUICE_UNROLL
    for (std::uint32_t c = 0; c < wide; ++c) {
      auto const key = make_key(x[c], group * wide + c);
      if (key >> 32 >= bar >> 32 && key != no_key) memory_.elements[block_.add(&memory_.element_count, 1)] = key;
    }
  }

  std::uint32_t seconds_ = 0;  // a bit for each of the thread's pairs, the last one's lowest: its second group is best
  static_assert(Memory::most_pairs / threads <= 32);

  static constexpr int most_reread = Memory::most_elements / 2 / wide < 128
                                         ? Memory::most_elements / 2 / wide
                                         : 128;  // pairs: all their scores fit into `elements`
  static_assert(most_reread >= most_listed);
};

}  // namespace sluice::inline v0::cuda::detail

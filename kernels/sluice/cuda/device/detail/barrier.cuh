// SPDX-License-Identifier: Apache-2.0
/// \file
/// The points where the threads of a block, or of a warp, wait for each other.
#pragma once

#include <sluice/language.hpp>

namespace sluice::inline v0::cuda::detail {

/// Named, so that a test can remove one and check that its absence is noticed.
enum class Barrier {
  // Of LogSoftmaxTopK.
  cleared,    ///< marks of edited groups and counters are zero
  marked,     ///< edited groups are marked
  sorted,     ///< every warp's best keys are in order
  threshold,  ///< the threshold is known
  groups,     ///< the groups to look at again are listed
  kept,       ///< the list is cut down to k
  elements,   ///< the keys that may be among the best are listed
  ranked,     ///< the best are in order
  written,    ///< what the block found is in the workspace
  summed,     ///< every warp's part of the sum is in memory
  ticket,     ///< it is known whether the block was the line's last

  // Of its clusters.
  begun,  ///< all of its blocks run
  met,    ///< all have left their lists with the first

  // Of the ring through which it may read.
  ring,      ///< the ring's mbarriers are initialised
  filled,    ///< a stage's bytes have arrived (an mbarrier)
  lifted,    ///< a warp has read a stage
  emptied,   ///< all warps have read the stage (an mbarrier)
  answered,  ///< the block's memory is free for its next part of a line

  // Of further passes over a line.
  tallied,  ///< every warp's part of a sum is in memory
  spent,    ///< the parts have been read
  reached,  ///< it is known where a sum reached its bound
  loaded,   ///< keys to sort are in memory
  placed,   ///< it is known where each of them goes
  ordered,  ///< they are there
  stored,   ///< they have left this memory
  parted,   ///< it is known where tiles of a merge begin
  drawn,    ///< the keys of drawn tokens are in memory

  // Of the merge of beams.
  staged,    ///< a tile of candidates is in memory
  selected,  ///< those of it that may be among the best are listed
  ended,     ///< it is known which of the kept candidates end
  told,      ///< a line's list has been written for the block that merges it
  joined,    ///< it is known whether the line was the last of its group

  // Of a beam that stays on the device.
  chosen,  ///< the hypotheses that continue and those that leave are in memory
  aside,   ///< the finished hypotheses are in order
  stayed,  ///< the hypotheses that stay in their parent's slot are known

  // Of caches.
  forked,  ///< forks have read what rows are about to overwrite (CacheIndirection)
  free,    ///< the warp's marks are zero
  used,    ///< memory that stays in use is marked
  own,     ///< rows that can use their own memory have it

  // Of the union of clusters.
  named,    ///< some lines' clusters are in memory
  taken,    ///< these have been read
  covered,  ///< the clusters' tokens are in the mask
  scanned,  ///< every warp's active tokens are counted
  united,   ///< the block's active tokens are counted

  count_  ///< the number of barriers
};

}  // namespace sluice::inline v0::cuda::detail

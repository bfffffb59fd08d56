// SPDX-License-Identifier: Apache-2.0
/// \file
/// The places where the threads of a block, or of a warp, wait for each other.
#pragma once

#include <sluice/language.hpp>

namespace sluice::inline v0::cuda {

/// Named, so that a test can take one away and see that it is missed.
enum class Barrier {
  // Of LogSoftmaxTopK.
  cleared,    ///< marks of edited groups and counters are zero
  marked,     ///< edited groups are marked
  sorted,     ///< every warp's best keys are in order
  threshold,  ///< the threshold is known
  groups,     ///< the groups to look at again are listed
  kept,       ///< and cut down to k
  elements,   ///< the keys that may be among the best are listed
  ranked,     ///< the best are in order
  written,    ///< what the block found is in the workspace
  summed,     ///< every warp's part of the sum is in memory
  ticket,     ///< it is known whether the block was the line's last

  // Of the ring through which it may read.
  ring,      ///< its mbarriers are there
  filled,    ///< a stage's bytes are there (an mbarrier)
  lifted,    ///< a warp has read a stage
  emptied,   ///< all warps have (an mbarrier)
  answered,  ///< the block's memory is free for its next part of a line

  // Of another look at a line.
  tallied,  ///< every warp's part of a sum is in memory
  spent,    ///< and has been read
  reached,  ///< it is known where a sum reached its bound

  // Of the merge of beams.
  staged,    ///< a tile of candidates is in memory
  selected,  ///< those of it that may be among the best are listed
  ended,     ///< it is known which of the kept candidates end
  told,      ///< a line's list has been written, for whoever merges it
  joined,    ///< it is known whether the line was its group's last

  // Of a beam that stays on the device.
  chosen,  ///< who goes on, and who is out, is in memory
  aside,   ///< the finished hypotheses are in order
  stayed,  ///< it is known who stays in its parent's slot

  // Of caches.
  forked,  ///< forks have read what rows are about to overwrite (CacheIndirection)
  free,    ///< the warp's marks are zero
  used,    ///< memory that stays in use is marked
  own,     ///< rows that can have their own memory have it

  // Of the union of clusters.
  named,    ///< some lines' clusters are in memory
  taken,    ///< and have been read
  covered,  ///< what clusters have is in the mask
  scanned,  ///< every warp's active tokens are counted
  united,   ///< so are the block's

  count_  ///< how many there are
};

}  // namespace sluice::inline v0::cuda

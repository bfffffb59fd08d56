// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which way lines are read.
#pragma once

#include <sluice/language.hpp>

namespace sluice::inline v0::cuda {

/// How LogSoftmaxTopK reads lines. Answers are the same bits.
enum class Loads {
  direct,  ///< every thread loads 64 or 32 bytes, uses them, loads the next; nothing is under way while a block selects
  ring  ///< blocks stay, and bulk copies fill a ring of stages ahead of them; from sm_90 on. Lines with masks go the direct way
};

}  // namespace sluice::inline v0::cuda

// SPDX-License-Identifier: Apache-2.0
/// \file
/// How lines are read.
#pragma once

#include <sluice/language.hpp>

namespace sluice::inline v0::cuda {

/// How LogSoftmaxTopK reads lines. Does not change answers, bit for bit.
enum class Loads {
  direct,  ///< every thread loads 64 or 32 bytes, uses them, loads the next; no loads are in flight while a block
           ///< selects
  ring  ///< persistent blocks, with bulk copies that fill a ring of stages ahead of them; sm_90 and newer. Lines with
        ///< masks use direct loads
};

}  // namespace sluice::inline v0::cuda

// SPDX-License-Identifier: Apache-2.0
/// \file
/// The loop as Decoder holds it: the class itself, or the one in the compiled library.
#pragma once

#include <sluice/language.hpp>

#ifdef SLUICE_COMPILED
#include <sluice/decode/detail/compiled_loop.hpp>

namespace sluice::inline v0::detail {
using LoopHandle = CompiledLoop;
}
#else
#include <sluice/decode/detail/loop.hpp>

namespace sluice::inline v0::detail {
using LoopHandle = Loop;
}
#endif

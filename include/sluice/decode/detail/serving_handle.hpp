// SPDX-License-Identifier: Apache-2.0
/// \file
/// The worker as Server holds it: the class itself, or the one in the compiled library.
#pragma once

#include <sluice/language.hpp>

#ifdef SLUICE_COMPILED
#include <sluice/decode/detail/compiled_serving.hpp>

namespace sluice::inline v0::detail {
using ServingHandle = CompiledServing;
}
#else
#include <sluice/decode/detail/loop.hpp>
#include <sluice/decode/detail/serving.hpp>

namespace sluice::inline v0::detail {
using ServingHandle = Serving<Loop>;
}
#endif

// SPDX-License-Identifier: Apache-2.0
/// \file
/// What decode() does with its decoder.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/in_library.hpp>
#include <sluice/core/result.hpp>
#include <sluice/decode/detail/loop_handle.hpp>

#include <functional>

namespace sluice::inline v0::detail {

/// Steps until nothing is left and hands out every result. If a step throws and no sentence has failed, ends all.
SLUICE_LAZY void run_to_end(LoopHandle& loop, ResultOrder order, std::function<void(Result&&)> const& sink);
SLUICE_FUNCTION_IN_LIBRARY(void run_to_end<void>(LoopHandle&, ResultOrder, std::function<void(Result&&)> const&))

}  // namespace sluice::inline v0::detail

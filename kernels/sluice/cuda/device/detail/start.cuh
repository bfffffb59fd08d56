// SPDX-License-Identifier: Apache-2.0
/// \file
/// When one of our kernels may start.
#pragma once

#include <sluice/language.hpp>

namespace sluice::inline v0::cuda::detail {

/// after: when everything enqueued earlier has ended. early: while the previous kernel, which must be one of ours, is
/// still running. The kernel then waits for it by itself (await_earlier()), which hides the cost of the launch and of
/// its first instructions. Does not change answers.
enum class Start : bool { after, early };

}  // namespace sluice::inline v0::cuda::detail

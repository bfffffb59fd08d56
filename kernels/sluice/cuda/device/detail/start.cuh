// SPDX-License-Identifier: Apache-2.0
/// \file
/// When a kernel of ours may start.
#pragma once

#include <sluice/language.hpp>

namespace sluice::inline v0::cuda {

/// after: when all that was added to the stream before has ended. early: while the kernel just before it, which is one of ours,
/// is still at work; it waits for that by itself (await_earlier()), so launch and first instructions cost no time of their own.
/// Answers are the same.
enum class Start : bool { after, early };

}  // namespace sluice::inline v0::cuda

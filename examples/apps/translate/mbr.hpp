// SPDX-License-Identifier: Apache-2.0
/// \file
/// Minimum Bayes risk over texts.
#pragma once

#include <sluice/core/result.hpp>

#include <translate/options.hpp>

#include <functional>
#include <span>
#include <string>

namespace translate {

/// The hypothesis whose text is closest to all others by `utility`: samples have equal weight, others their probability.
/// \param text     of a hypothesis
/// \param between  is called before each comparison, and may throw
sluice::Hypothesis const& least_risk(
    Options const& options, std::span<sluice::Hypothesis const> hypotheses,
    std::function<std::string(sluice::Hypothesis const&)> const& text, std::function<void()> const& between = [] {});

}  // namespace translate

// SPDX-License-Identifier: Apache-2.0
/// \file
/// Beam search with the options of the command line.
#pragma once

#include <sluice/search/beam_search.hpp>

#include <translate/options.hpp>

namespace translate {

sluice::BeamSearch make_beam_search(Options const& options);

}  // namespace translate

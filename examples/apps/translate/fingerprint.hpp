// SPDX-License-Identifier: Apache-2.0
/// \file
/// What determines the output of a run.
#pragma once

#include <translate/input.hpp>
#include <translate/journal.hpp>
#include <translate/options.hpp>

namespace translate {

/// Options as given, contents of all files that they name, of the models and of the input, and the instructions used for
/// products. Options that only change the speed are not in it.
Fingerprint fingerprint(Options const& options, Input const& input);

/// Call before any work.
/// \throws text::InputError  for input that cannot be read again, or output that cannot be continued
void check_files(Options const& options);

}  // namespace translate

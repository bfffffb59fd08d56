// SPDX-License-Identifier: Apache-2.0
/// \file
/// What determines the output of a run.
#pragma once

#include <translate/input.hpp>
#include <translate/journal.hpp>
#include <translate/options.hpp>

namespace translate {

/// Options as they were said, contents of all files that they name, of the models and of the input, and the instructions
/// that multiply. What changes the speed alone is not in it.
Fingerprint fingerprint(Options const& options, Input const& input);

/// Before any work.
/// \throws text::InputError  for files of which a part cannot be read, or the rest not be written, another time
void check_files(Options const& options);

}  // namespace translate

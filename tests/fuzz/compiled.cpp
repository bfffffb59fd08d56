// SPDX-License-Identifier: Apache-2.0
// What src/compiled/grammars.cpp leaves to the rest of the compiled library, which fuzzers of grammars do without.
#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>

#include <string_view>

namespace sluice::inline v0 {

template void detail::refuse_argument<void>(std::string_view, std::string_view, std::string_view);
template void Vocabulary::check<void>() const;

}  // namespace sluice::inline v0

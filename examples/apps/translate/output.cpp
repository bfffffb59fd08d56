// SPDX-License-Identifier: Apache-2.0
#include <translate/guess_output.hpp>
#include <translate/output.hpp>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <variant>

namespace translate {

sluice::Expansion Output::expand(Answer const& answer, std::span<sluice::Query const> queries,
                                 std::span<sluice::Group const> groups) {
  return std::visit(
      [&](auto& expander, auto const& lines) -> sluice::Expansion {
        if constexpr (requires { expander.expand(lines, queries, groups); })
          return expander.expand(lines, queries, groups);
        else throw std::logic_error("translate: an output layer for another kind of answer");
      },
      expander_, answer);
}

sluice::ClusteredStatistics Output::clusters() const {
  auto const* const clustered = std::get_if<sluice::ClusteredProjection>(&expander_);
  return clustered == nullptr ? sluice::ClusteredStatistics{} : clustered->statistics();
}

sluice::Expansion GuessOutput::expand(sluice::Hidden<float> const& hidden, std::span<sluice::Query const> queries,
                                      std::span<sluice::Group const> groups) {
  return std::visit([&](auto& projection) { return projection.expand(hidden, queries, groups); }, projection_);
}

std::ptrdiff_t GuessOutput::vocabulary_size() const {
  return std::visit([](auto const& projection) { return std::ptrdiff_t{projection.vocabulary_size()}; }, projection_);
}

}  // namespace translate

// SPDX-License-Identifier: Apache-2.0
/// \file
/// The file of --stats.
#pragma once

#include <sluice/decode/statistics.hpp>

#include <nlohmann/json.hpp>

namespace translate {

/// \param seconds  that went by; those of the parts are sums over all threads
inline nlohmann::ordered_json to_json(sluice::Statistics const& s, double seconds) {
  return {{"sentences", s.sentences},
          {"tokens", s.tokens},
          {"steps", s.steps},
          {"rows", s.rows},
          {"expansions", s.expansions},
          {"forks", s.forks},
          {"encoder_calls", s.encoder_calls},
          {"rows_histogram", s.rows_histogram},
          {"seconds",
           {{"total", seconds},
            {"encode", s.seconds.encode},
            {"model", s.seconds.model},
            {"output", s.seconds.output},
            {"search", s.seconds.search}}}};
}

}  // namespace translate

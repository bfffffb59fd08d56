// SPDX-License-Identifier: Apache-2.0
/// \file
/// All sentences through one search.
#pragma once

#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>

#include <ctranslate2/models/model.h>
#include <ctranslate2/options.hpp>
#include <memory>
#include <string>
#include <vector>

namespace translate_ct2 {

/// The outputs for one sentence, best first.
struct Output {
  std::vector<std::vector<std::string>> pieces;
  std::vector<double> scores;
  std::string problem;  ///< nothing if all went well
};

/// \param sentences  pieces
std::vector<Output> decode_all(Options const& options, std::shared_ptr<ctranslate2::models::Model const> const& loaded,
                               std::vector<std::vector<std::string>> const& sentences);

}  // namespace translate_ct2

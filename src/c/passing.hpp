// SPDX-License-Identifier: Apache-2.0
/// \file
/// What crosses the C interface: errors, arrays, results.
#pragma once

#include <sluice/c/sluice.h>
#include <sluice/core/error.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>

#include "sized.hpp"

#include <cmath>
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::c {

/// The last error of this thread.
inline std::string& last_error() {
  thread_local std::string text;
  return text;
}

inline sluice_status failed(sluice_status status, char const* what) noexcept {
  try {
    last_error() = what;
  } catch (...) {
    last_error().clear();
  }
  return status;
}

/// Catches everything, so that no exception crosses the interface.
template <class F>
sluice_status guarded(F&& f) noexcept {
  try {
    return f();
  } catch (std::invalid_argument const& error) {
    return failed(SLUICE_BAD_ARGUMENT, error.what());
  } catch (std::exception const& error) {
    return failed(SLUICE_FAILED, error.what());
  } catch (...) {
    return failed(SLUICE_FAILED, "an exception that is not a std::exception");
  }
}

template <class T>
T& not_null(T* pointer, std::string_view name) {
  require(pointer != nullptr, name, "null", "must point to something");
  return *pointer;
}

inline sluice_model_functions taken(sluice_model_functions const& given) {
  return taken(given, "sluice_model_functions", offsetof(sluice_model_functions, release));
}
inline sluice_grammar_options taken(sluice_grammar_options const& given) {
  return taken(given, "sluice_grammar_options", offsetof(sluice_grammar_options, behind_space));
}
inline sluice_bias_options taken(sluice_bias_options const& given) {
  return taken(given, "sluice_bias_options", offsetof(sluice_bias_options, matches));
}
inline sluice_ngram_options taken(sluice_ngram_options const& given) {
  return taken(given, "sluice_ngram_options", offsetof(sluice_ngram_options, vocabulary));
}
inline sluice_fused_options taken(sluice_fused_options const& given) {
  return taken(given, "sluice_fused_options", offsetof(sluice_fused_options, word_bonus));
}
inline sluice_suffix_options taken(sluice_suffix_options const& given) {
  return taken(given, "sluice_suffix_options", offsetof(sluice_suffix_options, shortest));
}
inline sluice_detection_options taken(sluice_detection_options const& given) {
  return taken(given, "sluice_detection_options", offsetof(sluice_detection_options, mask));
}
inline sluice_ctc_options taken(sluice_ctc_options const& given) {
  return taken(given, "sluice_ctc_options", offsetof(sluice_ctc_options, log_probs));
}
inline sluice_transducer_functions taken(sluice_transducer_functions const& given) {
  return taken(given, "sluice_transducer_functions", offsetof(sluice_transducer_functions, destroy));
}
inline sluice_request taken(sluice_request const& given) {
  return taken(given, "sluice_request", offsetof(sluice_request, prompt));
}
inline sluice_delivery taken(sluice_delivery const& given) {
  return taken(given, "sluice_delivery", offsetof(sluice_delivery, delta));
}

inline std::vector<Token> copy(sluice_token const* tokens, std::size_t count, std::string_view name) {
  require(tokens != nullptr || count == 0, name, "null", "must be as many tokens as it says");
  return {tokens, tokens + count};
}

/// The C view of a result; it refers to `result`.
struct View {
  std::vector<sluice_hypothesis> hypotheses;
  std::vector<double> weights;
  sluice_result of(Result const& result) {
    hypotheses.clear(), weights.clear();
    for (auto const& found : result.hypotheses)
      if (!std::isnan(found.weight)) weights.push_back(found.weight);
    for (auto const& found : result.hypotheses)
      hypotheses.push_back({.tokens = found.tokens.data(),
                            .log_probs = found.log_probs.data(),
                            .count = found.tokens.size(),
                            .log_prob = found.log_prob,
                            .score = found.score,
                            .finished = found.finished ? 1 : 0,
                            .constraints_met = found.constraints_met,
                            .constraints_total = found.constraints_total,
                            .stop = found.stop,
                            .blocks = found.blocks.data(),
                            .block_count = found.blocks.size()});
    return {.id = result.id,
            .failure = name(result.failure),
            .message = result.message.c_str(),
            .hypotheses = hypotheses.data(),
            .count = hypotheses.size(),
            .weights = weights.empty() ? nullptr : weights.data(),
            .log_z = result.log_z,
            .log_z_error = result.log_z_error};
  }
};

}  // namespace sluice::c

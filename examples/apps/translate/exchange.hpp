// SPDX-License-Identifier: Apache-2.0
/// \file
/// Between the lines of a text and the decoders that work on them.
#pragma once

#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/trace_file.hpp>

#include <translate/whole_words.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace translate {

/// A sentence's request, independent of the search.
struct Sentence {
  std::size_t place = 0;  ///< by which its result is given back
  std::vector<sluice::Token> source{};
  std::vector<sluice::Token> prefix{};
  std::uint64_t seed = 0;
  WholeWords constraints{};
  std::string text{};                 ///< for a trace; empty where there is none
  std::vector<std::string> pieces{};  ///< for a trace: the source's, as text
};

/// Hands sentences out in the order of the input and takes results in any order. Any thread may call.
class Exchange {
 public:
  Exchange() = default;
  Exchange(Exchange const&) = delete;
  Exchange& operator=(Exchange const&) = delete;
  virtual ~Exchange() = default;

  /// Appends up to `count` sentences to `sentences`; false if none are left. It appends fewer, or none, if too many results
  /// would have to be kept, if the input has no more yet, or if lines had no sentences.
  /// \param wait  whether to wait until there is at least one
  virtual bool take(std::size_t count, bool wait, std::vector<Sentence>& sentences) = 0;
  virtual void give(std::size_t place, sluice::Result result) = 0;
  /// The trace of the decoder, or nothing.
  virtual sluice::TraceFile* trace() = 0;
  /// Ends all waiting: a thread has failed.
  virtual void abandon() = 0;
};

}  // namespace translate

// SPDX-License-Identifier: Apache-2.0
/// \file
/// --trace: writes what a decoder does to a file.
#pragma once

#include <sluice/core/types.hpp>
#include <sluice/decode/trace_file.hpp>
#include <sluice/decode/trace_page.hpp>

#include <text/trace.hpp>
#include <translate/tokenizer.hpp>

#include <filesystem>
#include <optional>
#include <ostream>
#include <stdexcept>

namespace translate {

using Trace = text::Trace;

/// The file, a page or lines alone, as its name says.
class TraceOutput {
 public:
  /// \param stream  of `file`; both outlive this, as the tokenizer does
  TraceOutput(std::filesystem::path const& file, std::ostream& stream, Tokenizer const& tokenizer)
      : name_(file), stream_(stream) {
    if (file.empty()) return;
    if (file.extension() == ".html") page_.emplace(stream);
    file_.emplace(stream, [&tokenizer](sluice::Token token) { return tokenizer.text(token); });
  }

  /// Nothing where none is wanted.
  sluice::TraceFile* file() { return file_ ? &*file_ : nullptr; }
  /// \throws std::runtime_error  where it could not be written
  void finish() {
    if (!file_) return;
    if (page_) page_->finish();
    if (!stream_.flush()) throw std::runtime_error(name_.string() + ": cannot be written");
  }

 private:
  std::filesystem::path name_;
  std::ostream& stream_;
  std::optional<sluice::TracePage> page_;
  std::optional<sluice::TraceFile> file_;
};

}  // namespace translate

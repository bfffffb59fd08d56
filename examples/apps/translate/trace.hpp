// SPDX-License-Identifier: Apache-2.0
/// \file
/// --trace: writes what a decoder does to a file.
#pragma once

#include <sluice/core/expansion.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/trace_file.hpp>
#include <sluice/decode/trace_page.hpp>

#include <translate/tokenizer.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <ostream>
#include <stdexcept>

namespace translate {

/// What every decoder has as its trace: nothing, or a file.
struct Trace {
  sluice::TraceFile* file = nullptr;

  bool wants_entropy() const { return file != nullptr && file->wants_entropy(); }
  void began(std::uint64_t id, sluice::Sentence const& sentence) {
    if (file != nullptr) file->began(id, sentence);
  }
  void admitted(std::uint64_t id, sluice::Slot base, std::int32_t slots) {
    if (file != nullptr) file->admitted(id, base, slots);
  }
  void planned(sluice::StepPlan const& step) {
    if (file != nullptr) file->planned(step);
  }
  void answered(sluice::StepPlan const& step, sluice::Expansion const& answer) {
    if (file != nullptr) file->answered(step, answer);
  }
  void ended(sluice::Result const& result) {
    if (file != nullptr) file->ended(result);
  }
};

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

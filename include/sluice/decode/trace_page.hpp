// SPDX-License-Identifier: Apache-2.0
/// \file
/// A trace as one self-contained page of HTML. docs/viewer.md shows what is on it.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/at_end.hpp>
#include <sluice/decode/detail/trace_json.hpp>
#include <sluice/decode/detail/trace_page_source.hpp>

#include <istream>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sluice::inline v0 {

/// Writes the page around the lines that a TraceFile writes into the same stream:
///
///     TracePage page(file);
///     {
///       Decoder decoder(model, search, schedule, LogSoftmaxTopK(), TraceFile(file, texts));
///       ...
///     }
///     page.finish();
// NOLINTNEXTLINE(cppcoreguidelines-special-member-functions): AtEnd destroys
class TracePage {
 public:
  /// Writes the part before the lines. \param page  must outlive this
  SLUICE_LAZY explicit TracePage(std::ostream& page) : page_(page) { write(detail::trace_page_before); }
  TracePage(TracePage const&) = delete;
  TracePage& operator=(TracePage const&) = delete;

  /// Writes the part after the lines. If it is not called, the destructor does it, and cannot report failure.
  /// \throws std::runtime_error  if part of the page, or of the lines, could not be written
  SLUICE_LAZY void finish() {
    if (!finished_) write(detail::trace_page_after);
    finished_ = true;
    page_.flush();
    if (!page_) throw std::runtime_error("sluice: trace page: cannot be written");
  }

 private:
  friend class detail::AtEnd<TracePage>;
  SLUICE_LAZY void end() {
    if (!finished_) write(detail::trace_page_after);
  }

  template <class Pieces>
  void write(Pieces const& pieces) {
    for (auto const piece : pieces) page_ << piece;
  }

  std::ostream& page_;
  bool finished_ = false;
  detail::AtEnd<TracePage> at_end_{*this};
};

/// Makes a page of the lines of a TraceFile. Lines from an untrusted source are safe: what could end the script, or is not UTF-8,
/// is escaped.
/// \throws std::runtime_error  if the page cannot be written
SLUICE_LAZY void write_trace_page(std::istream& lines, std::ostream& page) {
  TracePage around(page);
  std::string safe;
  for (std::string line; std::getline(lines, line);) {
    safe.clear();
    for (std::string_view rest = line; !rest.empty();) {
      auto const bytes = detail::utf8_character(rest);
      if (bytes == 0) safe += "\xEF\xBF\xBD";           // U+FFFD
      else if (rest.front() == '<') safe += "\\u003c";  // in JSON it stands in strings alone
      else safe += rest.substr(0, bytes);
      rest.remove_prefix(bytes == 0 ? 1 : bytes);
    }
    page << safe << '\n';
  }
  around.finish();
}

}  // namespace sluice::inline v0

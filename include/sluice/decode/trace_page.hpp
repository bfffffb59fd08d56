// SPDX-License-Identifier: Apache-2.0
/// \file
/// A trace as one page of HTML that needs nothing beside it: docs/viewer.md shows what is on it.
#pragma once

#include <sluice/language.hpp>

#include <sluice/decode/detail/trace_json.hpp>
#include <sluice/decode/detail/trace_page_source.hpp>

#include <istream>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sluice::inline v0 {

/// The page around lines that are written into the same stream, by a TraceFile:
///
///     TracePage page(file);
///     {
///       Decoder decoder(model, search, schedule, LogSoftmaxTopK(), TraceFile(file, texts));
///       ...
///     }
///     page.finish();
template <class = void>
class LazyTracePage {
 public:
  /// Writes what stands before the lines. \param page  must outlive this
  explicit LazyTracePage(std::ostream& page) : page_(page) { write(detail::trace_page_before); }
  LazyTracePage(LazyTracePage const&) = delete;
  LazyTracePage& operator=(LazyTracePage const&) = delete;
  ~LazyTracePage() {
    if (!finished_) write(detail::trace_page_after);
  }

  /// Writes what stands behind the lines; the destructor does so too, where nobody has, and cannot tell of failure.
  /// \throws std::runtime_error  where any of it, or of the lines, could not be written
  void finish() {
    if (!finished_) write(detail::trace_page_after);
    finished_ = true;
    page_.flush();
    if (!page_) throw std::runtime_error("sluice: trace page: cannot be written");
  }

 private:
  template <class Pieces>
  void write(Pieces const& pieces) {
    for (auto const piece : pieces) page_ << piece;
  }

  std::ostream& page_;
  bool finished_ = false;
};
using TracePage = LazyTracePage<>;

/// Makes a page of the lines of a TraceFile. Lines from elsewhere cannot leave their place in it: what could end it, or is
/// no UTF-8, is written in another way.
/// \throws std::runtime_error  where the page cannot be written
template <class = void>
void write_trace_page(std::istream& lines, std::ostream& page) {
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

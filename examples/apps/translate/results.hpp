// SPDX-License-Identifier: Apache-2.0
/// \file
/// From results in any order to an output in the order of the input.
#pragma once

#include <text/checksum.hpp>
#include <translate/compression.hpp>
#include <translate/journal.hpp>
#include <translate/output_file.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace translate {

/// Where the translations of some lines go.
struct Destination {
  std::filesystem::path file;            ///< empty: standard output
  Format format = Format::plain;         ///< another one: a member for every MiB of text
  bool at_once = false;                  ///< write every line at once, without buffering
  std::optional<Fingerprint> journal{};  ///< keep a journal beside the file, and continue where one ends
};

/// Lines of the output, each written as soon as all before it have been. With a journal a line that is done is never lost
/// and never done again, whenever the program is killed. Not for several threads at once.
class Results {
 public:
  using Say = std::function<void(std::string const&)>;

  /// \param before  lines of the input that lie before the first one here
  /// \throws text::InputError  if the file cannot be written, or its journal does not fit
  Results(Destination destination, std::size_t before, Say say);

  /// Lines, from the first one on, that an earlier run has written.
  std::size_t written() const { return written_.lines; }
  /// The result of line `number`, if an earlier run finished it ahead of its turn.
  std::optional<Finished> done_before(std::size_t number);

  /// Another line has been read.
  void expect() { lines_.emplace_back(); }
  /// Line `number` of the input, from 1, is done.
  void finish(std::size_t number, Finished line, bool again = false);
  /// No more lines are to be expected.
  void end();
  /// Whether all is written, now or earlier.
  bool complete() const { return complete_; }

  /// Lines that were read and cannot be written yet, since one of them is not done.
  std::size_t waiting() const { return lines_.size() - ready_; }
  /// The largest exit code of what has been written.
  int code() const { return written_.code; }

 private:
  void recover();
  void advance();
  void write_member();
  void note(bool more);
  void close();

  Destination destination_;
  Say say_;
  std::size_t before_, member_;
  std::optional<OutputFile> file_;
  std::optional<Journal> journal_;
  std::map<std::size_t, Finished> ahead_;  // of an earlier run
  std::deque<std::optional<Finished>> lines_;
  std::size_t ready_ = 0, ready_bytes_ = 0;  // lines at the front that are done, and their text
  Written written_;
  text::Checksum sum_;
  std::chrono::steady_clock::time_point synchronised_ = std::chrono::steady_clock::now();
  bool ended_ = false, complete_ = false;
};

}  // namespace translate

// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a later run needs to continue where this one ended.
#pragma once

#include <translate/output_file.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace translate {

/// What determines the output, each under a name: options, files, instructions.
using Fingerprint = std::map<std::string, std::string>;

/// A line of the input that is done.
struct Finished {
  std::string text;      ///< all that comes out, its line ends included
  std::string messages;  ///< a line each
  int code = 0;          ///< what the program's exit code is at least

  /// Something is wrong with it.
  void complain(int at_least, std::string const& message) {
    code = code > at_least ? code : at_least;
    messages += message + "\n";
  }
};

/// How much of the output is there.
struct Written {
  std::size_t lines = 0;       ///< of the input
  std::uint64_t bytes = 0;     ///< of the output
  std::uint64_t checksum = 0;  ///< of these
  int code = 0;                ///< the largest so far
};

/// A file beside the output. Every record has a checksum, so that one that was not written as a whole is seen; a record in
/// the file outlives the program, one that sync() has seen the machine.
///
///     sluice-journal 1 {"--width":"5", ...}         what decides over the output
///     SUM ahead 17 0 34 0                           line 17 is done, before its turn; its text follows
///     SUM written 16 1203 7d0c... 0                 the output holds so many lines in so many bytes
///     SUM done                                      and that is all
class Journal {
 public:
  /// Opens the journal, or begins one.
  /// \throws text::InputError  if it is of other options or another input, or no journal
  Journal(std::filesystem::path const& file, Fingerprint const& now);

  std::vector<Written> const& written() const { return written_; }            ///< in the order of the file
  std::map<std::size_t, Finished> take_ahead() { return std::move(ahead_); }  ///< by the line's number
  bool done() const { return done_; }

  void ahead(std::size_t number, Finished const& line);
  void written(Written const& now);
  void finish();
  void sync() { file_->sync(); }

  /// Bytes that have come since the last compaction.
  std::uint64_t size() const { return size_; }
  /// Writes the journal anew with what still matters: the caller's next calls, until end_compaction(). The output must
  /// have been synchronised.
  void begin_compaction();
  void end_compaction();

 private:
  void read(std::string const& text);
  void add(std::string record, std::string_view more = {});
  std::string head() const;
  void replace(std::filesystem::path const& by);

  std::filesystem::path path_;
  Fingerprint fingerprint_;
  std::optional<OutputFile> file_;
  std::vector<Written> written_;
  std::map<std::size_t, Finished> ahead_;
  bool done_ = false;
  std::uint64_t size_ = 0;
};

}  // namespace translate

// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where the sentences come from.
#pragma once

#include <text/lines.hpp>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <istream>
#include <memory>
#include <optional>
#include <poll.h>
#include <string>
#include <unistd.h>

namespace translate {

/// A file, whose lines are checked and counted before any is handed out, or a stream, whose lines come as they come.
class Input {
 public:
  /// \param file  empty: standard input
  /// \throws text::InputError  if the file cannot be read or holds a line that is not UTF-8
  explicit Input(std::filesystem::path const& file)
      : name_(file.empty() ? "standard input" : file.string()),
        standard_(file.empty()),
        interactive_(file.empty() && isatty(STDIN_FILENO) != 0),
        reader_(file.empty() ? std::cin : file_) {
    if (file.empty()) return;
    if (std::filesystem::is_directory(file)) throw text::InputError(name_ + ": is a directory");
    file_.open(file, std::ios::binary);
    if (!file_) throw text::InputError(name_ + ": cannot be opened");
    if (!std::filesystem::is_regular_file(file)) return;
    text::LineReader check(file_);
    for (std::string line; check.next(line);)
      if (!text::valid_utf8(line)) throw text::InputError(where(check.number()) + "not valid UTF-8");
    if (file_.bad()) throw text::InputError(name_ + ": cannot be read");
    count_ = check.number();
    file_.clear();
    file_.seekg(0);
  }

  std::string const& name() const { return name_; }
  /// Known for files only.
  std::optional<std::size_t> count() const { return count_; }
  /// Lines to be sorted together: many of a file; a pipe wants its answers.
  std::size_t window(std::size_t batch) const { return (count_ ? 64 : 4) * batch; }
  /// Whether somebody types.
  bool interactive() const { return interactive_; }

  /// Whether next() would return at once, as far as one can know: a line may come in pieces.
  bool ready() const {
    if (!standard_ || std::cin.rdbuf()->in_avail() != 0) return true;
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    return poll(&input, 1, 0) != 0;
  }
  /// Whether there was another line; a stream's may be no UTF-8.
  bool next(std::string& line) { return reader_.next(line); }
  /// Of the line read last, from 1.
  std::size_t number() const { return reader_.number(); }
  /// The head of a message about line `number`.
  std::string where(std::size_t number) const { return name_ + ":" + std::to_string(number) + ": "; }

 private:
  std::string name_;
  std::ifstream file_;
  std::optional<std::size_t> count_;
  bool standard_, interactive_;
  text::LineReader reader_;
};

}  // namespace translate

// SPDX-License-Identifier: Apache-2.0
/// \file
/// The source of the sentences: a file or a stream.
#pragma once

#include <sluice/core/noise.hpp>

#include <text/checksum.hpp>
#include <text/lines.hpp>
#include <translate/compression.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <istream>
#include <limits>
#include <memory>
#include <optional>
#include <poll.h>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace translate {

/// The lines that begin in some bytes of a text: [begin, end) of it without compression.
struct Part {
  std::uint64_t begin = 0, end = std::numeric_limits<std::uint64_t>::max();
  std::size_t before = 0;                                       ///< lines that begin earlier
  std::size_t lines = std::numeric_limits<std::size_t>::max();  ///< in it; unknown for a stream
};

/// A file, whose lines are checked and counted before any is handed out, or a stream, whose lines are read as they arrive.
class Input {
 public:
  /// \param file  empty: standard input
  /// \throws text::InputError  if the file cannot be read
  explicit Input(std::filesystem::path const& file)
      : file_(file),
        name_(file.empty() ? "standard input" : file.string()),
        interactive_(file.empty() && isatty(STDIN_FILENO) != 0) {
    if (file.empty()) {
      reopen();
      return;
    }
    if (std::filesystem::is_directory(file)) throw text::InputError(name_ + ": is a directory");
    regular_ = std::filesystem::is_regular_file(file);
    if (regular_) format_ = format_of_file(file);
    reopen();
  }

  /// Reads all lines of a file, once.
  /// \throws text::InputError  if it holds a line that is not UTF-8
  void check() {
    if (!regular_) return;
    Part all;
    std::uint64_t sum = 0;
    for (std::uint64_t block = 0; !stream_.eof() && stream_.peek() != std::istream::traits_type::eof(); ++block) {
      marks_.emplace_back(reader_.position(), reader_.number());
      end_ = (block + 1) * mark_every;
      auto const found = tally();
      sum += sluice::mix(found.checksum + block);
    }
    if (stream_.bad()) throw text::InputError(name_ + ": " + problem());
    all.end = reader_.position(), all.lines = reader_.number();
    set(all, sum);
    go(all);
  }
  /// Sets what check() would find, as found by other ranks.
  void set(Part const& whole, std::uint64_t checksum) { whole_ = whole, count_ = whole.lines, checksum_ = checksum; }

  /// Lines of UTF-8 from here to the end of the part.
  struct Tally {
    std::size_t lines = 0;
    std::uint64_t checksum = 0;
  };
  /// \throws text::InputError  for a line that is not UTF-8
  Tally tally() {
    text::Checksum sum;
    auto const before = reader_.number();
    for (std::string line; next(line); sum.add("\n")) {
      if (!text::valid_utf8(line)) throw text::InputError(where(reader_.number()) + "not valid UTF-8");
      sum.add(line);
    }
    return {reader_.number() - before, sum.value()};
  }

  std::string const& name() const { return name_; }
  bool regular() const { return regular_; }
  Format format() const { return format_; }
  /// Known for files only.
  std::optional<std::size_t> count() const { return count_; }
  std::uint64_t checksum() const { return checksum_; }
  /// Lines to be sorted together: many of a file; few of a pipe, whose reader waits for answers.
  std::size_t window(std::size_t batch) const { return (count_ ? 64 : 4) * batch; }
  /// Whether the input is a terminal.
  bool interactive() const { return interactive_; }

  Part whole() const { return whole_; }
  /// The lines that begin in the bytes `begin` to `end` of the text of a file.
  Part part(std::uint64_t begin, std::uint64_t end) {
    auto const before = [this](std::uint64_t position) {
      go({.begin = 0, .end = position}, std::numeric_limits<std::size_t>::max());
      return reader_.number();
    };
    Part part{.begin = begin, .end = end, .before = before(begin)};
    part.lines = before(end) - part.before;
    return part;
  }
  /// next() gives the lines of this part, but for the first `skip`.
  void go(Part const& part, std::size_t skip = 0) {
    end_ = part.end;
    if (!regular_) return;
    auto from = std::pair{part.begin, part.before};
    for (auto const& mark : marks_)  // past what is to be skipped, if it is much
      if (mark.first < part.end && mark.first > from.first && mark.second <= part.before + skip) from = mark;
    // A line begins after a line's end. Of a compressed file, everything before is read too.
    if (format_ != Format::plain) reopen();
    auto const seek = from.first - std::min<std::uint64_t>(from.first, 1);
    stream_.clear();
    if (format_ == Format::plain) stream_.seekg(static_cast<std::streamoff>(seek));
    else stream_.ignore(static_cast<std::streamsize>(seek));
    reader_ = text::LineReader(stream_, from.second, seek);
    std::string line;
    if (from.first > 0) reader_.next(line), reader_ = text::LineReader(stream_, from.second, reader_.position());
    while (reader_.number() < part.before + skip && next(line)) {
    }
  }

  /// Whether next() would probably return at once; a line may arrive in pieces.
  bool ready() const {
    if (!file_.empty() || std::cin.rdbuf()->in_avail() != 0) return true;
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    return poll(&input, 1, 0) != 0;
  }
  /// Whether there was another line; a stream's may be no UTF-8.
  bool next(std::string& line) { return reader_.position() < end_ && reader_.next(line); }
  /// Of the line read last, from 1.
  std::size_t number() const { return reader_.number(); }
  /// The head of a message about line `number`.
  std::string where(std::size_t number) const { return name_ + ":" + std::to_string(number) + ": "; }

 private:
  static constexpr std::uint64_t mark_every = std::uint64_t{1} << 20;

  void reopen() {
    if (file_.empty()) {
      stream_.rdbuf(std::cin.rdbuf());
      return;
    }
    stream_.rdbuf(nullptr);
    if (format_ != Format::plain) {
      buffer_ = open_compressed(file_, format_);
    } else {
      auto plain = std::make_unique<std::filebuf>();
      if (plain->open(file_, std::ios::in | std::ios::binary) == nullptr)
        throw text::InputError(name_ + ": cannot be opened");
      buffer_ = std::move(plain);
    }
    stream_.rdbuf(buffer_.get());
  }
  std::string problem() const {
    auto const* const text = dynamic_cast<TextBuffer const*>(buffer_.get());
    return text == nullptr || text->problem().empty() ? "cannot be read" : text->problem();
  }

  std::filesystem::path file_;
  std::string name_;
  bool interactive_, regular_ = false;
  Format format_ = Format::plain;
  std::unique_ptr<std::streambuf> buffer_;
  std::istream stream_{nullptr};
  text::LineReader reader_{stream_};
  Part whole_;
  std::uint64_t end_ = std::numeric_limits<std::uint64_t>::max();  // no line that begins here is ours
  std::optional<std::size_t> count_;
  std::uint64_t checksum_ = 0;
  std::vector<std::pair<std::uint64_t, std::size_t>> marks_;  // a line begins there, so many lines lie before
};

}  // namespace translate

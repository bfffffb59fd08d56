// SPDX-License-Identifier: Apache-2.0
/// \file
/// A file that is written from its beginning to its end.
#pragma once

#include <text/lines.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <unistd.h>
#include <utility>

namespace translate {

/// flush() hands the output to the system, sync() writes it to the disk. Not for several threads at once.
class OutputFile {
 public:
  OutputFile() : name_("the output"), descriptor_(STDOUT_FILENO) {}
  /// \param keep  whether to keep its contents, which truncate() cuts. Then no other program may have it open like this
  /// \throws text::InputError  if it cannot be written
  explicit OutputFile(std::filesystem::path const& file, bool keep = false) : name_(file.string()) {
    descriptor_ = ::open(file.c_str(), (keep ? O_RDWR : O_WRONLY | O_TRUNC) | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) throw text::InputError(name_ + ": cannot be written");
    if (keep && ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      close();
      throw text::InputError(name_ + ": another program is at work on it");
    }
  }
  OutputFile(OutputFile&& other) noexcept
      : name_(std::move(other.name_)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        buffer_(std::move(other.buffer_)) {}
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile() { close(); }

  std::string const& name() const { return name_; }

  void write(std::string_view bytes) {
    buffer_ += bytes;
    if (buffer_.size() >= most) flush();
  }
  /// \throws std::runtime_error  if the system refuses
  void flush() {
    for (std::string_view left(buffer_); !left.empty();) {
      auto const written = ::write(descriptor_, left.data(), left.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) throw std::runtime_error(name_ + ": cannot be written");
      left.remove_prefix(static_cast<std::size_t>(written));
    }
    buffer_.clear();
  }
  void sync() {
    flush();
    ::fdatasync(descriptor_);  // a pipe refuses
  }
  /// From the beginning; fewer at the end of the file.
  std::size_t read(char* to, std::size_t count) {
    for (;;) {
      auto const got = ::read(descriptor_, to, count);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) throw std::runtime_error(name_ + ": cannot be read");
    }
  }
  /// Writes continue after the first so many bytes.
  void truncate(std::uint64_t bytes) {
    if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0 ||
        ::lseek(descriptor_, static_cast<off_t>(bytes), SEEK_SET) < 0)
      throw std::runtime_error(name_ + ": cannot be written");
  }

 private:
  static constexpr std::size_t most = std::size_t{1} << 16;

  void close() {
    if (descriptor_ > STDERR_FILENO) ::close(descriptor_);
    descriptor_ = -1;
  }

  std::string name_;
  int descriptor_ = -1;
  std::string buffer_;
};

}  // namespace translate

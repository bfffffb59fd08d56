// SPDX-License-Identifier: Apache-2.0
/// \file
/// The folder of the parts of the output, and the output that they are joined to.
#pragma once

#include <text/lines.hpp>
#include <translate/journal.hpp>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <translate_mpi/ranks.hpp>
#include <translate_mpi/shards.hpp>
#include <unistd.h>
#include <utility>
#include <vector>

namespace translate_mpi {

/// OUTPUT.parts, and OUTPUT.journal, which says that OUTPUT is complete.
class Parts {
 public:
  explicit Parts(std::filesystem::path output) : output_(std::move(output)) {}
  ~Parts() {
    if (lock_ >= 0) ::close(lock_);
  }
  Parts(Parts const&) = delete;
  Parts& operator=(Parts const&) = delete;

  std::filesystem::path folder() const { return output_.string() + ".parts"; }

  /// Of the first rank. Until this object ends, no other run begins on the same output.
  /// \return whether an earlier run has finished, and its exit code
  /// \throws text::InputError  if what is there does not fit, or another run is at work on it
  std::pair<bool, int> begin(bool resume, translate::Fingerprint const& fingerprint) {
    lock();
    try {
      if (!resume) {
        clear();
        std::filesystem::remove(journal());
      } else if (std::filesystem::exists(journal())) {
        translate::Journal const before(journal(), fingerprint);
        std::error_code missing;
        auto const size = std::filesystem::file_size(output_, missing);
        if (missing || before.written().empty() || before.written().back().bytes != size)
          throw text::InputError(output_.string() + ": is not what its journal says was finished; remove " +
                                 journal().string() + " to begin anew");
        std::filesystem::remove(folder(), missing);
        return {true, before.written().back().code};
      } else if (std::filesystem::exists(output_)) {
        throw text::InputError(output_.string() + ": is there, without the journal of a run with --resume; remove it");
      }
    } catch (...) {
      std::error_code error;
      std::filesystem::remove(folder(), error);  // if nothing is in it
      throw;
    }
    return {false, 0};
  }

  /// Every rank copies some of the parts to their places.
  void join(Ranks const& ranks, Shards const& shards, translate::Fingerprint const& fingerprint, int code) const {
    std::filesystem::path const made = output_.string() + ".joined";
    std::vector<std::filesystem::path> mine;
    std::uint64_t bytes = 0;
    together(ranks, [&] {
      if (ranks.first()) std::ofstream(made, std::ios::binary | std::ios::trunc);
      for (auto i = Shards::share(shards.count(), ranks.rank(), ranks.count());
           i < Shards::share(shards.count(), ranks.rank() + 1, ranks.count()); ++i)
        if (shards.part(i).lines > 0)
          mine.push_back(DealtShards::file(folder(), i)), bytes += std::filesystem::file_size(mine.back());
    });
    auto const before = ranks.sum_before(bytes);
    auto const all = ranks.sum(bytes);
    together(ranks, [&] { copy(mine, made, before); });
    together(ranks, [&] {
      if (!ranks.first()) return;
      if (std::filesystem::file_size(made) != all) throw std::runtime_error(made.string() + ": is incomplete");
      std::filesystem::rename(made, output_);
      std::filesystem::remove(journal());
      translate::Journal done(journal(), fingerprint);
      done.written({.lines = shards.whole().lines, .bytes = all, .code = code});
      done.finish();
      done.sync();
      clear();
      std::error_code error;
      std::filesystem::remove(folder(), error);
    });
  }

 private:
  std::filesystem::path journal() const { return output_.string() + ".journal"; }

  /// Makes the folder, and locks it. Where the file system has no locks of folders, nothing is locked.
  void lock() {
    for (;;) {
      std::error_code error;
      std::filesystem::create_directory(folder(), error);
      if (error || ::access(folder().c_str(), W_OK) != 0)
        throw text::InputError(output_.string() + ": cannot be written");
      lock_ = ::open(folder().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      if (lock_ < 0) continue;  // a run that ends has just removed it
      if (::flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        throw text::InputError(folder().string() + ": another run is at work on it");
      struct stat ours = {}, there = {};
      if (::fstat(lock_, &ours) == 0 && ::stat(folder().c_str(), &there) == 0 && ours.st_ino == there.st_ino) return;
      ::close(std::exchange(lock_, -1));  // likewise
    }
  }

  /// Removes what is in the folder, but nothing that we have not made.
  void clear() const {
    std::error_code error;
    for (auto const& thousand : std::filesystem::directory_iterator(folder(), error)) {
      if (!number(thousand.path().filename().string())) continue;
      for (auto const& part : std::filesystem::directory_iterator(thousand.path(), error)) {
        auto name = part.path().filename().string();
        for (std::string const ending : {".new", ".journal"})
          if (name.ends_with(ending)) name.erase(name.size() - ending.size());
        if (number(name)) std::filesystem::remove(part.path(), error);
      }
      std::filesystem::remove(thousand.path(), error);
    }
  }
  static bool number(std::string const& name) {
    return std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  }

  static void copy(std::vector<std::filesystem::path> const& from, std::filesystem::path const& to,
                   std::uint64_t place) {
    auto const out = ::open(to.c_str(), O_WRONLY | O_CLOEXEC);
    auto good = out >= 0;
    std::vector<char> buffer(std::size_t{1} << 20);
    for (auto const& file : from) {
      std::ifstream stream(file, std::ios::binary);
      while (good && (stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size())), stream.gcount() > 0)) {
        auto const count = static_cast<std::size_t>(stream.gcount());
        for (std::size_t done = 0; good && done < count;) {
          auto const written = ::pwrite(out, buffer.data() + done, count - done, static_cast<off_t>(place + done));
          good = written > 0;
          if (good) done += static_cast<std::size_t>(written);
        }
        place += count;
      }
      good = good && stream.eof() && !stream.bad();
    }
    good = good && ::fsync(out) == 0;
    if (out >= 0) good = ::close(out) == 0 && good;
    if (!good) throw std::runtime_error(to.string() + ": cannot be written");
  }

  std::filesystem::path output_;
  int lock_ = -1;
};

}  // namespace translate_mpi

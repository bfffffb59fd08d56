// SPDX-License-Identifier: Apache-2.0
/// \file
/// The shards of an input, and how ranks get and keep them.
#pragma once

#include <sluice/core/noise.hpp>

#include <text/checksum.hpp>
#include <text/lines.hpp>
#include <translate/fingerprint.hpp>
#include <translate/input.hpp>
#include <translate/options.hpp>
#include <translate/progress.hpp>
#include <translate/shares.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <mpi.h>
#include <optional>
#include <string>
#include <translate_mpi/ranks.hpp>
#include <utility>
#include <vector>

namespace translate_mpi {

/// Shard i has the lines that begin in the i-th range of bytes. Ranges of equal size are closer to equal work than equal
/// numbers of lines, and their positions are known before the input is read.
class Shards {
 public:
  /// Every rank reads, checks and counts its part of the input.
  /// \throws text::InputError  on one rank, Agreed on the others, for a line that is not UTF-8
  Shards(Ranks const& ranks, translate::Input& input, std::filesystem::path const& file, std::uint64_t size)
      : bytes_(std::filesystem::file_size(file)), size_(size) {
    auto const count = bytes_ / size + (bytes_ % size == 0 ? 0 : 1);
    before_.resize(count + 1);
    constexpr auto none = std::numeric_limits<std::uint64_t>::max();
    auto const first = share(count, ranks.rank(), ranks.count());
    auto const last = share(count, ranks.rank() + 1, ranks.count());
    std::vector<std::uint64_t> lines(last - first);
    std::uint64_t sum = 0, bad = none, bad_line = 0;
    for (auto shard = first; shard < last; ++shard) {
      input.go({.begin = shard * size, .end = std::min(bytes_, (shard + 1) * size)});
      try {
        auto const found = input.tally();
        lines[shard - first] = found.lines;
        sum += sluice::mix(found.checksum + shard);
      } catch (text::InputError const&) {  // which line of the input, only all ranks know
        bad = shard, bad_line = input.number();
        break;
      }
    }
    gather(ranks, lines, count);
    auto const worst = ranks.least(bad);
    together(ranks, [&] {
      if (worst != none && worst == bad)
        throw text::InputError(input.where(before_[bad] + bad_line) + "not valid UTF-8");
    });
    checksum_ = ranks.sum(sum);
  }

  std::size_t count() const { return before_.size() - 1; }
  translate::Part part(std::size_t shard) const {
    return {.begin = shard * size_,
            .end = std::min(bytes_, (shard + 1) * size_),
            .before = before_[shard],
            .lines = before_[shard + 1] - before_[shard]};
  }
  translate::Part whole() const { return {.begin = 0, .end = bytes_, .before = 0, .lines = before_.back()}; }
  std::uint64_t checksum() const { return checksum_; }

  /// Where the part of one rank begins, if `count` things are shared out.
  static std::uint64_t share(std::uint64_t count, int rank, int ranks) {
    auto const n = static_cast<std::uint64_t>(ranks), r = static_cast<std::uint64_t>(rank);
    return count / n * r + count % n * r / n;
  }

 private:
  void gather(Ranks const& ranks, std::vector<std::uint64_t> const& lines, std::uint64_t count) {
    std::vector<int> counts, places;
    for (int rank = 0; rank < ranks.count(); ++rank) {
      auto const first = share(count, rank, ranks.count());
      places.push_back(static_cast<int>(first));
      counts.push_back(static_cast<int>(share(count, rank + 1, ranks.count()) - first));
    }
    MPI_Allgatherv(lines.data(), static_cast<int>(lines.size()), MPI_UINT64_T, before_.data() + 1, counts.data(),
                   places.data(), MPI_UINT64_T, MPI_COMM_WORLD);
    for (std::size_t i = 1; i < before_.size(); ++i) before_[i] += before_[i - 1];
  }

  std::uint64_t bytes_, size_, checksum_ = 0;
  std::vector<std::uint64_t> before_;  // lines that begin before each shard
};

/// Deals shards to this rank until none are left, each with its own file and journal.
class DealtShards final : public translate::Shares {
 public:
  /// \param folder  of the parts of the output
  DealtShards(Ranks const& ranks, Shards const& shards, std::filesystem::path folder, translate::Format format,
              translate::Fingerprint fingerprint, translate::Progress& progress)
      : shards_(shards),
        folder_(std::move(folder)),
        format_(format),
        fingerprint_(std::move(fingerprint)),
        progress_(progress),
        counter_(ranks) {}

  std::optional<translate::Share> next() override {
    for (auto shard = counter_.next(); shard < shards_.count(); shard = counter_.next()) {
      auto const part = shards_.part(shard);
      progress_.reach(part.before, shards_.whole().lines);
      if (part.lines == 0) continue;
      ++dealt_;
      auto all = fingerprint_;
      all["shard"] = std::to_string(shard);
      translate::Destination where{.file = file(folder_, shard), .format = format_, .journal = std::move(all)};
      std::error_code error;  // which opening the file will find
      std::filesystem::create_directory(where.file.parent_path(), error);
      auto say = [this](std::string const& message) { progress_.say(message); };
      return translate::Share{part, std::make_unique<translate::Results>(std::move(where), part.before, say)};
    }
    return std::nullopt;
  }
  void serve() override { counter_.serve(); }

  std::size_t dealt() const { return dealt_; }

  /// A thousand in each folder.
  static std::filesystem::path file(std::filesystem::path const& folder, std::size_t shard) {
    return folder / std::to_string(shard / 1000) / std::to_string(shard);
  }

 private:
  Shards const& shards_;
  std::filesystem::path folder_;
  translate::Format format_;
  translate::Fingerprint fingerprint_;
  translate::Progress& progress_;
  Counter counter_;
  std::size_t dealt_ = 0;
};

}  // namespace translate_mpi

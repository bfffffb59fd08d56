// SPDX-License-Identifier: Apache-2.0
/// \file
/// A file as bytes in memory, shared with every process that maps it.
#pragma once

#include <sluice/language.hpp>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#if __has_include(<sys/mman.h>)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define SLUICE_MAPS_FILES 1
#else
#define SLUICE_MAPS_FILES 0
#endif

namespace sluice::inline v0::detail {

/// Bytes and their owner.
struct KeptBytes {
  std::shared_ptr<void const> keeper;
  std::span<std::byte const> bytes;
};

/// Zeroed bytes, aligned like those of a file.
inline std::pair<std::shared_ptr<void const>, std::byte*> zeroed_bytes(std::size_t size) {
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  auto lines = std::make_shared<std::vector<Line>>((size + 63) / 64);
  auto* const first = reinterpret_cast<std::byte*>(lines->data());  // not of the first line alone
  return {std::move(lines), first};
}
/// Copies bytes.
inline KeptBytes copy_bytes(std::span<std::byte const> bytes) {
  auto [keeper, to] = zeroed_bytes(bytes.size());
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  return {std::move(keeper), {to, bytes.size()}};
}

/// Maps a file read-only: processes that map the same file share its memory. If files cannot be mapped, it is read. Do
/// not write to it or truncate it while it is mapped: replace it by renaming.
/// \throws std::runtime_error  naming the file
SLUICE_LAZY KeptBytes map_file(std::string const& path) {
#if SLUICE_MAPS_FILES
  auto const fail = [&](char const* what) {
    throw std::runtime_error(path + ": " + what + ": " + std::generic_category().message(errno));
  };
  struct Mapping {
    explicit Mapping(int opened) : file(opened) {}
    Mapping(Mapping const&) = delete;
    Mapping& operator=(Mapping const&) = delete;
    ~Mapping() {
      if (address != MAP_FAILED) ::munmap(address, size);
      if (file >= 0) ::close(file);
    }
    int file;
    void* address = MAP_FAILED;
    std::size_t size = 0;
  };
  auto mapping = std::make_shared<Mapping>(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (mapping->file < 0) fail("cannot be opened");
  struct stat status {};
  if (::fstat(mapping->file, &status) != 0) fail("cannot be looked at");
  if (!S_ISREG(status.st_mode)) throw std::runtime_error(path + ": is no regular file");
  mapping->size = static_cast<std::size_t>(status.st_size);
  if (mapping->size == 0) return {};
  mapping->address = ::mmap(nullptr, mapping->size, PROT_READ, MAP_SHARED, mapping->file, 0);
  if (mapping->address == MAP_FAILED) fail("cannot be mapped");
  ::close(mapping->file);
  mapping->file = -1;
  std::span const bytes(static_cast<std::byte const*>(mapping->address), mapping->size);
  return {std::move(mapping), bytes};
#else
  std::ifstream stream(path, std::ios::binary | std::ios::ate);
  if (!stream) throw std::runtime_error(path + ": cannot be opened");
  std::vector<std::byte> bytes(static_cast<std::size_t>(stream.tellg()));
  stream.seekg(0);
  stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!stream) throw std::runtime_error(path + ": cannot be read");
  return copy_bytes(bytes);
#endif
}

}  // namespace sluice::inline v0::detail

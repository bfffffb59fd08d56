// SPDX-License-Identifier: Apache-2.0
/// \file
/// Memory next to pages that cannot be read.
#pragma once

#include <support/catch.hpp>

#include <cstddef>
#include <cstring>
#include <span>
#include <sys/mman.h>
#include <unistd.h>

namespace sluice::test {

/// A copy of some numbers, directly before (at_end) or after a page that cannot be read: any read beyond them crashes.
template <class T>
class Fenced {
 public:
  Fenced(std::span<T const> from, bool at_end) {
    auto const page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    auto const bytes = from.size() * sizeof(T);
    auto const pages = (bytes + page - 1) / page;
    size_ = (pages + 2) * page;
    memory_ = static_cast<char*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(memory_ != MAP_FAILED);
    auto* const at = at_end ? memory_ + (1 + pages) * page - bytes : memory_ + page;
    std::memcpy(at, from.data(), bytes);
    REQUIRE(mprotect(memory_, page, PROT_NONE) == 0);
    REQUIRE(mprotect(memory_ + (1 + pages) * page, page, PROT_NONE) == 0);
    data_ = reinterpret_cast<T const*>(at);
  }
  Fenced(Fenced const&) = delete;
  Fenced& operator=(Fenced const&) = delete;
  ~Fenced() { munmap(memory_, size_); }
  T const* data() const { return data_; }

 private:
  char* memory_ = nullptr;
  std::size_t size_ = 0;
  T const* data_ = nullptr;
};

}  // namespace sluice::test

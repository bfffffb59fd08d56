// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <http/memory.hpp>
#include <malloc.h>

namespace serve {

namespace {

constinit thread_local Account* counted = nullptr;

constexpr std::size_t large = std::size_t{1} << 20;  // from here on, memory is given back at once

/// What the allocator takes for a block besides what can be used.
constexpr std::size_t overhead = 8;

}  // namespace

Account::~Account() {
  pool_.give(reserved_);
  if (peak_ >= large) malloc_trim(0);
}

void Account::take(std::size_t bytes) {
  // Destructors may allocate (nlohmann's do), and must not throw.
  if (std::uncaught_exceptions() > 0) {
    used_ += bytes;
    return;
  }
  if (bytes > most_ || used_ > most_ - bytes) throw OverBudget(field_, most_, false);
  if (used_ + bytes > reserved_) {
    auto const more = (used_ + bytes - reserved_ + chunk - 1) / chunk * chunk;
    if (!pool_.take(more)) throw OverBudget(field_, pool_.most(), true);
    reserved_ += more;
  }
  used_ += bytes, peak_ = std::max(peak_, used_);
}

Account::Counting::Counting(Account* account) : before_(counted) { counted = account; }
Account::Counting::~Counting() { counted = before_; }
Account* Account::current() { return counted; }

Account::Naming::Naming(char const* field) {
  if (account_ != nullptr) before_ = account_->field_, account_->field_ = field;
}
Account::Naming::~Naming() {
  if (account_ != nullptr) account_->field_ = before_;
}

void spare_memory() {
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_MMAP_THRESHOLD, 1 << 20);  // and not what was once freed: large blocks always go back
  mallopt(M_TRIM_THRESHOLD, 1 << 21);  // malloc_trim() leaves so much to each arena
}

}  // namespace serve

// The other forms, but those with an alignment, call these two.
// NOLINTBEGIN(cppcoreguidelines-no-malloc): this is what an allocator does
void* operator new(std::size_t size) {
  auto* const account = serve::counted;
  if (account != nullptr) account->take(size + serve::overhead);
  for (;;) {
    if (auto* const block = std::malloc(std::max(size, std::size_t{1}))) {
      // What operator delete gives back, so that the account is even.
      if (account != nullptr) account->give(size), account->add(malloc_usable_size(block));
      return block;
    }
    auto const handler = std::get_new_handler();
    if (handler == nullptr) {
      if (account != nullptr) account->give(size + serve::overhead);
      throw std::bad_alloc();
    }
    handler();
  }
}

void operator delete(void* block) noexcept {
  if (block != nullptr && serve::counted != nullptr) serve::counted->give(malloc_usable_size(block) + serve::overhead);
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept { operator delete(block); }
// NOLINTEND(cppcoreguidelines-no-malloc)

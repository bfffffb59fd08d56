// SPDX-License-Identifier: Apache-2.0
/// \file
/// What several threads compute once and share.
#pragma once

#include <sluice/language.hpp>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Values by key, in several parts, so that threads seldom wait for each other. No lock is held while a value is made. A
/// thread that wants what another is making waits for it: to make it twice would take as long.
template <class Key, class Value, class Hash = std::hash<Key>>
class SharedCache {
 public:
  /// \param most  values to keep, of each part
  explicit SharedCache(std::size_t most) : most_(most) {}

  /// The value for a key; make() if it is not known. \param wait  false: it may be called while this thread is making another
  ///     value of this cache
  template <class Make>
  Value find(Key const& key, Make const& make, bool wait = true) {
    auto& part = parts_[(static_cast<std::uint64_t>(Hash{}(key)) * 0x9E3779B97F4A7C15u >> 60) % parts_.size()];
    {
      auto lock = std::unique_lock(part.mutex);
      for (;;) {
        if (auto const it = part.all.find(key); it != part.all.end()) return it->second;
        if (!wait || std::ranges::none_of(part.making, [&](Key const* one) { return *one == key; })) break;
        ++part.waiting;
        part.made.wait(lock);
        --part.waiting;
      }
      part.making.push_back(&key);
    }
    struct Making {
      Making(Part& its_part, Key const& its_key) : part(its_part), key(&its_key) {}
      Making(Making const&) = delete;
      Making& operator=(Making const&) = delete;
      ~Making() {  // even if it could not be made
        auto const lock = std::scoped_lock(part.mutex);
        std::erase(part.making, key);
        if (part.waiting > 0) part.made.notify_all();
      }
      Part& part;
      Key const* key;
    } const making(part, key);
    auto made = make();
    auto const lock = std::scoped_lock(part.mutex);
    if (part.all.size() >= most_) part.all.clear();
    return part.all.try_emplace(key, std::move(made)).first->second;
  }

 private:
  struct Part {
    std::mutex mutex;
    std::condition_variable made;
    std::unordered_map<Key, Value, Hash> all;
    std::vector<Key const*> making;
    std::size_t waiting = 0;
  };
  std::array<Part, 8> parts_;
  std::size_t most_;
};

}  // namespace sluice::inline v0::detail

// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/detail/buffer.hpp>

#include <support/catch.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;

namespace {

/// Does the same with both, at random, and compares them after each step.
template <class T, class F>
void as_a_vector(std::uint64_t seed, F const& draw) {
  std::mt19937_64 random(seed);
  detail::Buffer<T> buffer, other;
  std::vector<T> vector;
  auto const below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (auto step = 0; step < 200; ++step) {
    auto const item = draw(random());
    auto const at = below(vector.size() + 1), to = at + below(vector.size() - at + 1);
    auto const offset = static_cast<std::ptrdiff_t>(at);
    switch (random() % 13) {
      case 0: buffer.clear(), vector.clear(); break;
      case 1: buffer.resize(at), vector.resize(at); break;
      case 2: buffer.resize(at + 3, item), vector.resize(at + 3, item); break;
      case 3: buffer.assign(to, item), vector.assign(to, item); break;
      case 4: buffer.insert(buffer.begin() + at, item), vector.insert(vector.begin() + offset, item); break;
      case 5:
        buffer.erase(buffer.begin() + at, buffer.begin() + to);
        vector.erase(vector.begin() + offset, vector.begin() + static_cast<std::ptrdiff_t>(to));
        break;
      case 6: other = buffer, buffer.push_back(item), buffer = std::move(other); break;
      case 7:
        other = std::move(buffer);
        CHECK(buffer.empty());
        buffer.swap(other);
        break;
      case 8: {
        auto const copy = vector;
        buffer.append(std::span(copy)), vector.insert(vector.end(), copy.begin(), copy.end());
        break;
      }
      case 9: erase_if(buffer, [&](T const& one) { return one == item; }), std::erase(vector, item); break;
      case 10:
        if (!vector.empty()) buffer.resize(60, buffer.back()), vector.resize(60, vector.back());
        break;
      default: buffer.push_back(item), vector.push_back(item);
    }
    if (vector.size() > 50) buffer.pop_back(), vector.pop_back(), buffer.resize(20), vector.resize(20);
    REQUIRE(std::vector<T>(buffer.begin(), buffer.end()) == vector);
    CHECK((buffer.size() == vector.size() && buffer.empty() == vector.empty()));
    other = buffer, other.push_back(item);
    CHECK((other != buffer && buffer != other));
    other.pop_back();
    CHECK(other == buffer);
  }
}

}  // namespace

TEST_CASE("a buffer does what a vector does", "[buffer]") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    as_a_vector<std::uint32_t>(seed, [](std::uint64_t drawn) { return static_cast<std::uint32_t>(drawn % 5); });
    as_a_vector<std::string>(seed, [](std::uint64_t drawn) { return std::string(drawn % 40, 'x'); });
    auto const shared = std::make_shared<int>(0);
    as_a_vector<std::shared_ptr<int>>(seed, [&](std::uint64_t drawn) { return drawn % 2 == 0 ? shared : nullptr; });
    CHECK(shared.use_count() == 1);  // each item is destroyed once
  }
}

TEST_CASE("a queue does what a deque does", "[buffer]") {
  std::mt19937_64 random(3);
  detail::Queue<std::string> queue;
  std::deque<std::string> deque;
  for (auto step = 0; step < 3000; ++step) {
    auto const more = random() % (step / 500 % 2 == 0 ? 3 : 2) > 0;  // grows, then stays
    auto const item = std::string(random() % 30, 'x');
    if (more) queue.push_back(item), deque.push_back(item);
    else if (random() % 20 == 0) queue.resize(deque.size() + 2), deque.resize(deque.size() + 2);
    else if (!deque.empty()) {
      REQUIRE(queue.front() == deque.front());
      queue.pop_front(), deque.pop_front();
    }
    REQUIRE((queue.size() == deque.size() && queue.empty() == deque.empty()));
    for (auto i = deque.size(); i-- > 0 && step % 50 == 0;) REQUIRE(queue[i] == deque[i]);
  }
}

TEST_CASE("a buffer of items that only move, and one of aligned items", "[buffer]") {
  detail::Buffer<std::unique_ptr<int>> owners;
  for (auto i = 0; i < 100; ++i) owners.push_back(std::make_unique<int>(i));
  owners.erase(owners.begin(), owners.begin() + 40);
  CHECK((*owners.front() == 40 && *owners.back() == 99 && owners.size() == 60));
  CHECK_THROWS_AS(owners.at(60), std::out_of_range);
  struct alignas(64) Line {
    float numbers[16] = {};
  };
  detail::Buffer<Line> lines(5);
  for (auto const& line : lines) CHECK(reinterpret_cast<std::uintptr_t>(&line) % 64 == 0);
}

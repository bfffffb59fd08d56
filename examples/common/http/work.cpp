// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <http/work.hpp>

namespace serve {

namespace {

thread_local Work* current = nullptr;

}  // namespace

Work::Work(Clock::time_point until) : until_(until) { current = this; }
Work::~Work() { current = nullptr; }

void Work::checkpoint() {
  if (current == nullptr) return;
  auto const now = Clock::now();
  if (now > current->until_) throw Refused(504, "late: the request took too long to prepare");
  if (now < current->next_look_) return;
  current->next_look_ = now + std::chrono::milliseconds(20);
  if (auto const* const connection = Connection::current(); connection != nullptr && connection->gone()) throw Gone();
}

}  // namespace serve

// SPDX-License-Identifier: Apache-2.0
/// \file
/// Something for tests/cli/mutate.test.sh to change.
#pragma once

namespace tiny {

template <int N>
constexpr int twice() {
  return N + N;
}

/// Steps of `size` that `length` takes. What a test of it cannot see: whether nothing is a step.
inline int steps(int length, int size) {
  int count = 0;
  while (length > 0) {
    length -= size;
    ++count;
  }
  static_assert(twice<2>() == 4, "what must be constant stays as it is");
  return count;
}

inline int difference(int a, int b) { return a - b; }
inline int apart(int a, int b) { return difference(a, b); }
inline bool forgotten(int x) { return x == 3; }

}  // namespace tiny

/* SPDX-License-Identifier: Apache-2.0 */
/* What both clients in C count and say. Before it is included, CLIENT is the client's name, and LAST_ERROR() why a call failed. */
#ifndef TESTS_C_CHECK_H
#define TESTS_C_CHECK_H

#include <stdio.h>

static int passed = 0, failures = 0;
static void check(int condition, char const* what, int line) {
  if (condition) {
    ++passed;
    return;
  }
  ++failures;
  printf("FAILED: " CLIENT ".c:%d: %s (last error: %s)\n", line, what, LAST_ERROR());
}
#define CHECK(condition) check((condition) != 0, #condition, __LINE__)

#endif

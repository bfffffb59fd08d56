/* SPDX-License-Identifier: Apache-2.0 */
/* Suffix decoding: the same outputs, in the rounds of C++. */
#ifndef TESTS_C_REMEMBERS_H
#define TESTS_C_REMEMBERS_H

#include "table.h"

/* Adds the checks that hold to *passed. The others are printed; their number is returned. */
int remembers(table* t, int* passed);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of programs that were compiled with an earlier header, or with a later one. */
#ifndef TESTS_C_SIZES_H
#define TESTS_C_SIZES_H

#include "table.h"

/* Adds the checks that hold to *passed. The others are printed; their number is returned. */
int sizes(table* t, int* passed);

#endif

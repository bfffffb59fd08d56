/* SPDX-License-Identifier: Apache-2.0 */
/* Watermarks: what marks is found again, as C++ finds it. */
#ifndef TESTS_C_MARKS_H
#define TESTS_C_MARKS_H

/* Adds the checks that hold to *passed. The others are printed; their number is returned. */
int marks(int* passed);

#endif

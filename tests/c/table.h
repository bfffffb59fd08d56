/* SPDX-License-Identifier: Apache-2.0 */
/* The table of support/table_model.hpp, written again in C: its logits are a hash of the source and the tokens so far. */
#ifndef TESTS_C_TABLE_H
#define TESTS_C_TABLE_H

#include <sluice/c/sluice.h>

enum { table_size = 8, table_slots = 512, table_length = 64 };

typedef struct table {
  uint64_t seed[table_slots];
  int32_t count[table_slots];
  sluice_token tokens[table_slots][table_length];
  int released, destroyed, fails_start, fails_step, fails_propose, too_many, guessed;
} table;

/* A table that can do everything and claims `abilities`. Sources are uint64_t const*. It guesses; three guesses of four are right. */
sluice_model_functions table_functions(table* t, int32_t abilities);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What C++ finds: the answers that client.c compares with. */
#ifndef TESTS_C_EXPECTED_H
#define TESTS_C_EXPECTED_H

#include <sluice/c/sluice.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ways = 23 }; /* of decoding: see expected.cpp and client.c, which sets the same up in C */

/* Of ways 13 and up: a beam that draws, blocks guessed by the table, by look-up, by both; a catalogue with a beam, and with blocks;
 * another engine's beam; penalties; boosted phrases with a beam, and greedy with more options. */
enum {
  drawing = 13,
  blocks_guessed,
  blocks_looked_up,
  blocks_both,
  chosen,
  blocks_chosen,
  engine,
  penalised,
  biased,
  biased_once
};

/* How many differences there are to what C++ finds for source `seed`, request number `id`, one way. */
int differs(int way, uint64_t seed, uint64_t id, sluice_result const* result);

/* Of the headers, as they say it in C++. */
char const* expected_version(void);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What C++ finds: the answers that client.c compares with. */
#ifndef TESTS_C_EXPECTED_H
#define TESTS_C_EXPECTED_H

#include <sluice/c/sluice.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ways = 32 }; /* of decoding: see expected.cpp and client.c, which sets the same up in C */

/* Of ways 13 and up: a beam that draws, blocks guessed by the table, by look-up, by both; a catalogue with a beam, and with blocks;
 * another engine's beam; penalties; boosted phrases with a beam, and greedy with more options; stops with a beam, and greedy with more
 * options; n-grams beside the table with a beam; particles under a grammar; samples with marks, drawn with two keys, and by a tournament;
 * green tokens with a beam, greedy, and in blocks guessed by the table. */
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
  biased_once,
  stopped,
  stopped_greedy,
  fused,
  weighted,
  marked,
  marked_by_tournament,
  green,
  green_greedy,
  green_blocks
};

/* How many differences there are to what C++ finds for source `seed`, request number `id`, one way. */
int differs(int way, uint64_t seed, uint64_t id, sluice_result const* result);

/* How many differences there are to the trace that C++ writes for the same, decoded alone as number `id`. */
int trace_differs(int way, uint64_t seed, uint64_t id, char const* about, sluice_bytes lines, sluice_bytes page);

/* How many differences there are to what C++ finds in a text, one way; mask: as long as the text, or null. */
enum { detections = 6 }; /* see marks.c, which sets the same up in C */
static uint64_t const detection_key[] = {99, 2, 3, 4, 5, 6, 7, 8};
int detection_differs(int way, sluice_token const* tokens, size_t count, uint8_t const* mask, int32_t window,
                      sluice_watermark_detection const* found);

/* In how many rounds C++ decodes these sources, one after another, with a suffix cache. way: 0 without options, 1 with those of
 * remembers.c, 2 with them and a look-up inside. */
void remembered_rounds(int way, uint64_t const* sources, size_t count, int32_t forget, int32_t* rounds);

/* Of the headers, as they say it in C++. */
char const* expected_version(void);

#ifdef __cplusplus
}
#endif

#endif

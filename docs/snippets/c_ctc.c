// SPDX-License-Identifier: Apache-2.0
// The CTC of docs/c.md, in C99.
#include <sluice/c/sluice.h>

#include <stdio.h>

enum { labels = 5, blank = 0, space = 4 };  // "", a, b, c, " "
static float const logits[] = {
    0, 3, 2, 0, 0,  //
    2, 1, 1, 0, 0,  //
    0, 1, 3, 1, 0,  //
    1, 0, 2, 1, 2,  //
    1, 0, 0, 0, 3,  //
    0, 2, 2, 0, 0,  //
    2, 0, 1, 1, 0,
};

static int say(sluice_status status) {
  if (status != SLUICE_OK) printf("%s\n", sluice_last_error());
  return status == SLUICE_OK;
}

static void show(sluice_frames_hypothesis const* found) {
  for (size_t t = 0; t < found->count; ++t) putchar("-abc "[found->tokens[t]]);
  printf("  %.3f, of words at", found->score);
  for (size_t w = 0; w < found->word_count; ++w)
    printf(" %d-%d", found->words[w].first_frame, found->words[w].end_frame);
  printf("\n");
}

int main(void) {
  // [decode]
  sluice_token const separator = space;
  sluice_ctc_options const options = {
      .size = sizeof options, .labels = labels, .blank = blank, .separators = &separator, .separator_count = 1};
  sluice_ctc_matrix const matrices[] = {{logits, 7, 0}, {logits, 4, 0}};  // of 7 frames and of 4
  sluice_ctc* ctc = NULL;
  sluice_search* search = NULL;
  sluice_frames_results* results = NULL;
  if (!say(sluice_ctc_create(&options, &ctc)) || !say(sluice_search_create("ctc", &search)) ||
      !say(sluice_search_set(search, "width", 16)) || !say(sluice_ctc_decode(ctc, search, matrices, 2, 0, &results)))
    return 1;
  for (size_t i = 0; i < 2; ++i) show(sluice_frames_results_at(results, i)->hypotheses);
  // [/decode]
  sluice_frames_results_free(results);

  // [stream]
  sluice_ctc_stream* stream = NULL;
  sluice_frames_result const* result = NULL;
  if (!say(sluice_ctc_stream_create(ctc, search, &stream))) return 1;
  for (size_t frame = 0; frame < 7; ++frame) {
    sluice_ctc_matrix const one = {logits + frame * labels, 1, 0};
    if (!say(sluice_ctc_stream_append(stream, &one, frame == 6, NULL))) return 1;
  }
  if (!say(sluice_ctc_stream_result(stream, &result))) return 1;
  show(result->hypotheses);
  // [/stream]
  sluice_ctc_stream_free(stream);
  sluice_search_free(search);
  sluice_ctc_free(ctc);
  return 0;
}

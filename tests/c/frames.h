/* SPDX-License-Identifier: Apache-2.0 */
/* CTC: what C finds in matrices is what C++ finds. */
#ifndef TESTS_C_FRAMES_H
#define TESTS_C_FRAMES_H

#include <sluice/c/sluice.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Adds the checks that hold to *passed. The others are printed; their number is returned. */
int frames(int* passed);

/* Of decoding, see frames.c, which sets the same up in C: without anything; the best alignments of log-probabilities, pruned; boosted
 * labels; the words of a lexicon; these with n-grams of words; n-grams of any words; of labels; a grammar. */
enum { ctc_plain, ctc_pruned, ctc_biased, ctc_lexicon, ctc_words, ctc_any_words, ctc_labels, ctc_grammar, ctc_ways };
enum { ctc_size = 5, ctc_frames = 14 };
static char const* const ctc_texts[ctc_size] = {"", "a", "b", "c", " "}; /* label 0 is the blank */
static char const ctc_regex[] = "[abc]{1,3}( [abc]{1,3})*";
static char const ctc_arpa[] =
    "\\data\\\nngram 1=6\nngram "
    "2=3\n\n\\1-grams:\n-99\t<s>\t-0.3\n-0.9\t</s>\n-1.2\t<unk>\n-0.5\ta\t-0.2\n-0.8\tab\t-0.1\n-0.7\tcb\n\n"
    "\\2-grams:\n-0.2\t<s> ab\n-0.4\tab a\n-0.3\ta </s>\n\n\\end\\\n";

/* How many differences there are to what C++ finds in a matrix [frames, ctc_size], one way. */
int ctc_differs(int way, float const* scores, size_t frames, sluice_frames_result const* result);
/* The same for the alignment of a text. */
int ctc_alignment_differs(float const* scores, size_t frames, sluice_token const* tokens, size_t count,
                          int32_t const* ranges, double const* log_probs, double log_prob);

/* Transducers: greedy; a beam; in the order of alignments; pairs of labels and durations; boosted labels. */
enum { of_greedy, of_beam, of_alignments, of_durations, of_boosted, transducer_ways };
enum { transducer_labels = 4, transducer_states = 4096 }; /* label 0 is the blank */
static int32_t const transducer_durations[] = {0, 1, 3};
/* What a joiner says: column `column` of a line after the last two labels. */
static inline float transducer_logit(uint32_t source, int32_t frame, sluice_token before, sluice_token last,
                                     int32_t column) {
  uint32_t x = source * 2654435761u + (uint32_t)frame * 40503u + (uint32_t)(before * 16 + last) * 69069u +
               (uint32_t)column * 374761393u;
  x = (x ^ (x >> 15)) * 2246822519u;
  return (float)((x ^ (x >> 13)) >> 8) / 4000000.0f;
}
static inline int32_t transducer_frames(uint32_t source) { return 3 + (int32_t)(source % 5); }
/* How many differences there are to what C++ finds, one way. */
int transducer_differs(int way, uint32_t source, sluice_frames_result const* result);

#ifdef __cplusplus
}
#endif

#endif

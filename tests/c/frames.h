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

#ifdef __cplusplus
}
#endif

#endif

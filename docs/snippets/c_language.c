// SPDX-License-Identifier: Apache-2.0
// The stops, the language model and the trace of docs/c.md, in C99: a model of pieces that likes mats.
#include <sluice/c/sluice.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { end, the, cat, mat, sat, lay, dot, pieces };
static char const* const piece[pieces] = {"", " the", " cat", " mat", " sat", " lay", "."};
static char const* const word[pieces] = {"", "the", "cat", "mat", "sat", "lay", "."};
static double const follows[pieces][pieces] = {[end] = {[the] = 1},
                                               [the] = {[cat] = 0.4, [mat] = 0.6},
                                               [cat] = {[sat] = 0.5, [lay] = 0.5},
                                               [mat] = {[sat] = 0.5, [lay] = 0.4, [dot] = 0.1},
                                               [sat] = {[dot] = 1},
                                               [lay] = {[dot] = 1},
                                               [dot] = {[the] = 0.6, [end] = 0.4}};

static int start(void* user, size_t count, void const* const* sources, int32_t const* slots) {
  (void)user, (void)count, (void)sources, (void)slots;
  return 0;
}

static int step(void* user, size_t count, sluice_row const* rows, float* scores) {
  (void)user;
  for (size_t i = 0; i < count; ++i)
    for (int next = 0; next < pieces; ++next) *scores++ = (float)log(follows[rows[i].tokens[rows[i].count - 1]][next]);
  return 0;
}

static int say(sluice_status status) {
  if (status != SLUICE_OK) fprintf(stderr, "%s\n", sluice_last_error());
  return status == SLUICE_OK;
}

static int written(char const* file) {
  static char const arpa[] =
      "\\data\\\nngram 1=9\nngram "
      "2=3\n\n\\1-grams:\n-99\t<s>\t0\n-1\t</s>\n-2\t<unk>\n-1\tthe\t0\n-1\tcat\t0\n-1.5\tmat\n"
      "-1\tsat\n-1.5\tlay\n-1\t.\n\n\\2-grams:\n-0.2\t<s> the\n-0.2\tthe cat\n-0.2\tcat sat\n\n\\end\\\n";
  FILE* const to = fopen(file, "w");
  return to != NULL && fputs(arpa, to) >= 0 && fclose(to) == 0;
}

int main(void) {
  sluice_token const eos = end;
  sluice_model_functions const functions = {.size = sizeof functions,
                                            .vocabulary = pieces,
                                            .bos = end,
                                            .eos = &eos,
                                            .eos_count = 1,
                                            .log_probs = 1,
                                            .start = start,
                                            .step = step};
  sluice_bytes bytes[pieces], words[pieces];
  for (int token = 0; token < pieces; ++token) {
    bytes[token] = (sluice_bytes){piece[token], strlen(piece[token])};
    words[token] = (sluice_bytes){word[token], strlen(word[token])};
  }
  sluice_model* model = NULL;
  sluice_search* search = NULL;
  if (!written("pets.arpa") || !say(sluice_model_create(&functions, &model)) ||
      !say(sluice_model_set_bytes(model, bytes, pieces)) || !say(sluice_search_create("greedy", &search)) ||
      !say(sluice_search_set(search, "max_length", 12)))
    return 1;
  {
    // [stop]
    sluice_request const request = {.size = sizeof request, .source = NULL};
    sluice_results* results = NULL;
    if (!say(sluice_search_stop_text(search, ". ", 2)) || !say(sluice_decode(model, search, &request, 1, 0, &results)))
      return 1;
    sluice_hypothesis const* const found = sluice_results_at(results, 0)->hypotheses;
    char text[100];
    size_t count = 0;
    if (!say(sluice_search_text(search, model, found, 0, text, sizeof text, &count))) return 1;
    printf("%d tokens, stop %d:%.*s\n", (int)found->count, found->stop, (int)count, text);
    sluice_results_free(results);
    // [/stop]
  }
  // [fuse]
  sluice_ngrams* ngrams = NULL;
  sluice_model *language = NULL, *fused = NULL;
  int32_t numbers[pieces];
  if (!say(sluice_ngrams_open("pets.arpa", &ngrams)) || !say(sluice_ngrams_find(ngrams, words, pieces, numbers)))
    return 1;
  sluice_ngram_options const options = {
      .size = sizeof options, .vocabulary = pieces, .bos = end, .eos = &eos, .eos_count = 1, .words = numbers};
  if (!say(sluice_ngrams_model(ngrams, &options, &language)) ||
      !say(sluice_model_fuse(model, language, 0.5, NULL, &fused)))  // log p + 0.5 * log p of the n-grams
    return 1;
  sluice_ngrams_free(ngrams);
  // [/fuse]
  // [trace]
  sluice_trace* trace = NULL;
  if (!say(sluice_trace_create("with n-grams", &trace))) return 1;
  sluice_request const request = {.size = sizeof request, .trace = trace};
  sluice_results* results = NULL;
  if (!say(sluice_decode(fused, search, &request, 1, 0, &results))) return 1;
  sluice_bytes page;
  if (!say(sluice_trace_page(trace, &page))) return 1;
  FILE* const file = fopen("trace.html", "wb");
  if (file == NULL || fwrite(page.data, 1, page.count, file) != page.count || fclose(file) != 0) return 1;
  sluice_trace_free(trace);
  // [/trace]
  sluice_hypothesis const* const found = sluice_results_at(results, 0)->hypotheses;
  for (size_t t = 0; t < found->count; ++t) printf("%s", piece[found->tokens[t]]);
  printf("\n");
  sluice_results_free(results), sluice_search_free(search);
  sluice_model_free(fused), sluice_model_free(language), sluice_model_free(model);
  return remove("pets.arpa") != 0 || remove("trace.html") != 0;
}

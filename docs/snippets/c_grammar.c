// SPDX-License-Identifier: Apache-2.0
// The grammar of docs/c.md, in C99: a model with random scores over the printable characters of ASCII writes JSON.
#include <sluice/c/sluice.h>

#include <stdio.h>
#include <string.h>

enum { stop, characters = '~' - ' ' + 1, vocabulary = characters + 1 };

static int start(void* user, size_t count, void const* const* sources, int32_t const* slots) {
  (void)user, (void)count, (void)sources, (void)slots;
  return 0;
}

static int step(void* user, size_t count, sluice_row const* rows, float* scores) {
  (void)user;
  for (size_t i = 0; i < count; ++i)
    for (int next = 0; next < vocabulary; ++next)
      *scores++ = (float)((next * 41 + rows[i].length * 17 + rows[i].tokens[rows[i].count - 1] * 29) % 101) / 16;
  return 0;
}

static int say(sluice_status status) {
  if (status != SLUICE_OK) printf("%s\n", sluice_last_error());
  return status == SLUICE_OK;
}

static int tools(void) {
  // [tools]
  char const* const written = "<tool_call>\n{\"name\": \"book\", \"arguments\": {\"seats\": 4}}\n</tool_call>";
  sluice_tool_parser* parser = NULL;
  sluice_tool_event const* events = NULL;
  size_t count = 0;
  if (!say(sluice_tool_parser_create("hermes", NULL, NULL, &parser))) return 1;
  for (char const* c = written; *c != '\0'; ++c) {  // as the model writes it
    if (!say(sluice_tool_parser_append(parser, c, 1, &events, &count))) return 1;
    for (size_t i = 0; i < count; ++i)
      if (strcmp(events[i].kind, "begun") == 0)
        printf("%d: %.*s ", (int)events[i].call, (int)events[i].count, events[i].text);
      else printf("%.*s", (int)events[i].count, events[i].text);
  }
  printf("\n");
  // [/tools]
  sluice_tool_parser_free(parser);
  return 0;
}

int main(int arguments, char** argument) {
  if (arguments > 1 && strcmp(argument[1], "tools") == 0) return tools();
  sluice_token const eos = stop;
  sluice_model_functions const functions = {.size = sizeof functions,
                                            .vocabulary = vocabulary,
                                            .bos = stop,
                                            .eos = &eos,
                                            .eos_count = 1,
                                            .start = start,
                                            .step = step};
  sluice_model* model = NULL;
  sluice_search* search = NULL;
  sluice_results* results = NULL;
  sluice_request const request = {.size = sizeof request, .source = NULL};
  if (!say(sluice_model_create(&functions, &model)) || !say(sluice_search_create("beam", &search)) ||
      !say(sluice_search_set(search, "width", 4)) || !say(sluice_search_set(search, "max_length", 40)))
    return 1;

  // [grammar]
  char printable[vocabulary];
  sluice_bytes bytes[vocabulary] = {{NULL, 0}};  // eos has no bytes
  for (int token = 1; token < vocabulary; ++token) {
    printable[token] = (char)(' ' + token - 1);
    bytes[token] = (sluice_bytes){&printable[token], 1};
  }
  char const* const schema =
      "{\"type\": \"object\", \"properties\": {\"seats\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 8},"
      " \"window\": {\"type\": \"boolean\"}}, \"required\": [\"seats\", \"window\"], \"additionalProperties\": false}";
  sluice_grammar* grammar = NULL;
  say(sluice_grammar_create(model, "regex", "[a-z", NULL, &grammar));    // refused: bytes not set yet
  if (!say(sluice_model_set_bytes(model, bytes, vocabulary))) return 1;  // once for a model
  say(sluice_grammar_create(model, "regex", "[a-z", NULL, &grammar));    // refused: not a valid expression
  if (!say(sluice_grammar_create(model, "json_schema", schema, NULL, &grammar)) ||
      !say(sluice_search_obey(search, grammar)) || !say(sluice_decode(model, search, &request, 1, 0, &results)))
    return 1;
  sluice_hypothesis const* const found = sluice_results_at(results, 0)->hypotheses;
  for (size_t t = 0; t + 1 < found->count; ++t) putchar(printable[found->tokens[t]]);  // all but eos
  printf("\n");
  // [/grammar]
  sluice_grammar_free(grammar);
  sluice_results_free(results);
  sluice_search_free(search);
  sluice_model_free(model);
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the tokens of table.h are as bytes, and grammars about them: as C has them, and as expected.cpp does. */
#ifndef TESTS_C_GRAMMARS_H
#define TESTS_C_GRAMMARS_H

/* [table_size] */
static char const* const table_texts[] = {"", "", "", "[", "]", ",", "1", "1,"};

static char const list_regex[] = "\\[1(,1)*\\]";
static char const nested_gbnf[] = "root ::= \"[\" item (\",\" item)* \"]\"\nitem ::= \"1\" | root\n";
static char const numbers_schema[] = "{\"type\": \"array\", \"items\": {\"enum\": [1, 11, 111]}, \"minItems\": 2}";

/* Stops. */
static char const* const stop_texts[] = {"[]", "1,1", ",,"};
static int const stop_tokens[] = {5, 3, 4, 4};

/* N-grams of words, which are a letter for each token; the last one has none. */
static char const words_arpa[] =
    "\\data\\\nngram 1=7\nngram "
    "2=4\n\n\\1-grams:\n-99\t<s>\t-0.4\n-1.2\t</s>\n-1.5\t<unk>\n-0.7\ta\t-0.3\n-0.9\tb\t-0.2\n"
    "-1.1\tc\n-1.3\td\t-0.25\n\n\\2-grams:\n-0.3\t<s> a\n-0.5\ta b\n-0.6\tb c\n-0.2\td a\n\n\\end\\\n";
static char const* const table_words[] = {"", "", "", "a", "b", "c", "d", "e"};

/* Sequences of a catalogue, behind each other. */
static int const item_tokens[] = {6, 7, 3, 4, 3, 4, 3, 4, 5, 5, 5, 7, 7, 4, 6, 5, 7, 3, 3};
static unsigned long const item_lengths[] = {4, 2, 3, 2, 2, 3, 3};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the tokens of table.h are as bytes, and grammars about them: as C has them, and as expected.cpp does. */
#ifndef TESTS_C_GRAMMARS_H
#define TESTS_C_GRAMMARS_H

/* [table_size] */
static char const* const table_texts[] = {"", "", "", "[", "]", ",", "1", "1,"};

static char const list_regex[] = "\\[1(,1)*\\]";
static char const nested_gbnf[] = "root ::= \"[\" item (\",\" item)* \"]\"\nitem ::= \"1\" | root\n";
static char const numbers_schema[] = "{\"type\": \"array\", \"items\": {\"enum\": [1, 11, 111]}, \"minItems\": 2}";

/* Sequences of a catalogue, behind each other. */
static int const item_tokens[] = {6, 7, 3, 4, 3, 4, 3, 4, 5, 5, 5, 7, 7, 4, 6, 5, 7, 3, 3};
static unsigned long const item_lengths[] = {4, 2, 3, 2, 2, 3, 3};

#endif

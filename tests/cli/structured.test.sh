#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# structured.test.sh STRUCTURED FOLDER MODEL: forms are filled from sentences, and what makes no sense is refused.
# shellcheck disable=SC2016,SC2034,SC2154  # what program.sh reads and sets
program=$(realpath "$1") folder=$(realpath "$2") model=$(realpath "$3")
# shellcheck source=tests/cli/program.sh
. "$(dirname "$(realpath "$0")")/program.sh"

always=(--model "$model" "$folder/orders.de")
printf 'no schema' >broken.json
printf '{"properties": {"a": {"type": "string"}}}' >free.json
refused 'broken.json: schema, line 1, column 1: a value is missing' --schema broken.json
refused 'free.json: has no property "a" with an enum of texts' --schema free.json --sentence 'An {a}.'
refused 'has no property "b"' --schema "$folder/order.json" --sentence 'A {b}.'
refused '\{ without \}' --schema "$folder/order.json" --sentence 'A {who.'

count=$(wc -l <"$folder/orders.de")
run --schema "$folder/order.json" >forms || fail 'orders'
lines "$count" forms
values='"who":"[^"]+","quantity":"[a-z ]+","item":"[a-z ]+","day":"[^"]+"'
check "forms: $(cat forms)" [ "$(grep -c -x -E "\{$values\}" forms)" -eq "$count" ]
check "five eggs: $(cat forms)" grep -q '"quantity":"five","item":"eggs"' forms
run --schema "$folder/order.json" --sentences >both || fail 'sentences'
check 'the same forms' cmp -s forms <(grep '^{' both)
check 'a sentence for each' [ "$(grep -c -E '^[A-Z][^{}]*\.$' both)" -eq "$count" ]

report

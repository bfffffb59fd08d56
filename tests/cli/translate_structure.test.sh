#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# translate_structure.test.sh TRANSLATE MODEL SAMPLE: translations that obey a grammar, a JSON schema, an expression.
# shellcheck disable=SC2086,SC2154  # options are split on purpose; translate.sh sets the rest
# shellcheck source=tests/cli/translate.sh
. "$(dirname "$(realpath "$0")")/translate.sh"

head -n 6 "$sample" >six
cat >names.gbnf <<'END'
# a sentence of small words, with a bracket that the pieces can only spell as a byte
root ::= "{" word (" " word)* "}"
word ::= [a-z]+
END
cat >order.json <<'END'
{"type": "object", "properties": {"order": {"type": "string", "maxLength": 30}, "number": {"type": "integer", "minimum": 1,
 "maximum": 99}}, "required": ["order", "number"], "additionalProperties": false}
END
word='^\{[a-z]+( [a-z]+)*\}$' json='^\{"order":"([^"\\]|\\.){0,60}","number":[1-9][0-9]?\}$'
time_of_day='(at|before|after) ([01][0-9]|2[0-3]):[0-5][0-9]( (am|pm))?'

# ---- refused before any work ------------------------------------------------------------------------------------------

refused 'missing: cannot be opened' --grammar missing
refused 'missing: cannot be opened' --json-schema missing
refused '--json-schema does not go with --grammar' --grammar names.gbnf --json-schema order.json
refused '--regex does not go with --grammar' --regex a --grammar names.gbnf
printf 'root ::= "a"\nwrong ::= [a-\n' >broken.gbnf
refused 'broken.gbnf: grammar, line 2, column [0-9]+: ' --grammar broken.gbnf
printf '{"type": "array",\n "uniqueItems": true}' >unknown.json
refused 'unknown.json: schema, line 2, column 17: .*uniqueItems' --json-schema unknown.json
refused '--regex: pattern, line 1, column 2: ' --regex 'a(b'
: >empty.gbnf
refused 'empty.gbnf: ' --grammar empty.gbnf
plainly refused 'line 1, column 2: ' --model missing --regex 'a(b' # no model is looked for

# ---- under every search -------------------------------------------------------------------------------------------------

for search in '--search greedy' '--search beam --width 3' '--preset ctranslate2 --width 3' '--schedule streaming --width 3' \
  '--search sample --seed 3' '--search blockwise --block 3' '--search blockwise --proposer ngram' \
  '--search blockwise --accept top:3 --block 4' '--projection clustered --search greedy' '--threads 2 --search greedy'; do
  for what in "--grammar names.gbnf --max-length 20" "--json-schema order.json --max-length 60"; do
    run $search $what --input six >actual 2>err || fail "$search $what: $(cat err)"
    lines 6 actual
    case $what in *names*) form=$word ;; *) form=$json ;; esac
    check "$search $what: $(cat actual)" [ "$(grep -c -E "$form" actual)" -eq 6 ]
  done
done
run --search greedy --grammar names.gbnf --max-length 20 --input six >greedy
run --search blockwise --block 3 --grammar names.gbnf --max-length 20 --input six >blockwise
same greedy blockwise 'guesses change nothing'
run --width 4 --n-best 4 --json-schema order.json --max-length 60 --input six >list
check 'n-best' [ "$(texts list | grep -c -E "$json")" -eq "$(wc -l <list)" ]

# A phrase that must come, within a string.
yes '{"all": ["water"]}' | head -n 6 >water
run --constraints water --json-schema order.json --max-length 60 --input six >actual 2>err || fail "constraints: $(cat err)"
check "the word is there: $(cat actual)" [ "$(grep -E "$json" actual | grep -c 'water')" -eq 6 ]
yes '{"order":"' | head -n 6 >begun
run --prefix begun --json-schema order.json --max-length 60 --input six >actual 2>err || fail "prefix: $(cat err)"
check "behind a prefix: $(cat actual)" [ "$(grep -c -E "$json" actual)" -eq 6 ]

# What comes out, given again, is scored; what breaks the grammar is impossible.
run --regex "$time_of_day" --input six >times
check "$(cat times)" [ "$(grep -c -E "^$time_of_day\$" times)" -eq 6 ]
run --score times --regex "$time_of_day" --input six >scores
check "scores: $(cat scores)" [ "$(grep -c -E '^-[0-9.]+$' scores)" -eq 6 ]
sed 's/[0-9]*:/99:/' times >late
run --score late --regex "$time_of_day" --input six >scores
check "scores of what is none: $(cat scores)" [ "$(grep -c -x -e -inf scores)" -eq 6 ]

# ---- what cannot be -----------------------------------------------------------------------------------------------------

run --regex "$time_of_day" --max-length 3 --input six >actual 2>err
check 'exit code of what does not fit' [ $? -eq 1 ]
check "$(cat err)" [ "$(grep -c 'length.max = 3: the grammar needs' err)" -eq 6 ]
yes 'soon' | head -n 6 >begun
run --prefix begun --regex "$time_of_day" --input six >actual 2>err
check "$(cat err)" [ "$(grep -c 'prefix = .* breaks the grammar' err)" -eq 6 ]

report

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# translate_constraints.test.sh TRANSLATE MODEL SAMPLE: translate --constraints and --glossary. What was promised is looked
# for in the text, by grep.
# shellcheck disable=SC2016,SC2086,SC2094,SC2154  # options are split on purpose; translate.sh sets the rest
# shellcheck source=tests/cli/translate.sh
. "$(dirname "$(realpath "$0")")/translate.sh"

head -n 3 "$sample" >three
printf '{}\n\n{"all": []}\n' >nothing

# ---- refused --------------------------------------------------------------------------------------------------------------

for flag in --constraints --glossary; do
  refused "$flag" $flag
  refused "$flag has no effect with --search greedy" --search greedy $flag nothing
  refused "$flag has no effect with --search sample" --search sample $flag nothing
  refused "$flag has no effect with --score" --score nothing $flag nothing
  refused 'missing: cannot be opened' --input three $flag missing
done
for option in '--prune-finished 3' '--grid-base 2'; do
  refused "${option% *} has no effect with neither --constraints nor --glossary" $option
done
for value in -1 nan much; do refused '--prune-finished' --constraints nothing --prune-finished $value; done
for value in 0 -1 2.5; do refused '--grid-base' --constraints nothing --grid-base $value; done
refused '--width has no effect with --grid-base' --constraints nothing --grid-base 2 --width 3
refused '--n-best 11 is more than --width 10' --constraints nothing --n-best 11
refused '--n-best 3 is more than --grid-base 2' --constraints nothing --grid-base 2 --n-best 3
head -n 2 nothing >short
refused 'short has 2 lines, three has 3' --constraints short --input three

# glossary LINE: a file with that in line 3
glossary() { printf '# terms\n\n%b\n' "$1" >glossary; }
glossary 'Brille spectacles'
refused "glossary:3: no tab between source term and target term: 'Brille spectacles'" --glossary glossary
glossary 'Brille\tspectacles\tx'
refused 'glossary:3: more than two columns' --glossary glossary
glossary '\tspectacles'
refused 'glossary:3: no source term' --glossary glossary
glossary 'Brille\t '
refused 'glossary:3: no target term' --glossary glossary

# ---- a line with a fault is that line's ---------------------------------------------------------------------------------------

run --width 10 --input three >plain
# faulty LINE PATTERN
faulty() {
  printf '{}\n%s\n{}\n' "$1" >constraints
  run --input three --constraints constraints >out 2>err
  local code=$?
  if [ $code -ne 2 ] || [ "$(wc -l <err)" -ne 1 ] || ! grep -q -E -- "^translate: constraints:2: $2" err; then
    fail "${1:0:80}: exit code $code, $(head -c 400 err)"
  else pass; fi
  { line plain 1; echo; line plain 3; } >expected
  same expected out
}
faulty '{"all": ["cat"' 'not JSON, from byte 15 on'
faulty '["cat"]' 'not an object \{...\}: \["cat"\]'
faulty '{"each": ["cat"]}' "unknown key 'each': not one of all, any, exact, none, ordered"
faulty '{"all": ["cat"], "all": ["dog"]}' 'key "all" comes twice'
faulty "{\"all\": $(printf '%300000s' '' | tr ' ' '[')$(printf '%300000s' '' | tr ' ' ']')}" 'nested too deeply$'
faulty '{"all": [1e999]}' 'a number is too large'
faulty "{\"all\": [[\"$(printf '%300000s' '' | tr ' ' 'x')\"]]}" 'all\[0\] is not a text: \["x{60,80}\.\.\.$'
faulty '{"all": "cat"}' 'all is not a list of phrases: "cat"'
faulty '{"none": ["cat", 3]}' 'none\[1\] is not a text: 3'
faulty '{"any": ["cat"]}' 'any\[0\] is not a list of phrases: "cat"'
faulty '{"any": [["cat"], []]}' 'any\[1\] is a list without phrases'
faulty '{"ordered": ["cat", " "]}' "ordered\[1\]: ' ' is no token: \[\]"
faulty '{"any": [["cat", ""]]}' "any\[0\]\[1\]: '' is no token: \[\]"
faulty '{"all": ["the cat"], "none": ["cat"]}' "all\[0\]: 'the cat' \[.*the .*cat\] is demanded, but 'cat' \[.*cat\] forbidden"
faulty '{"any": [["a cat", "cats"]], "none": ["cats", "a"]}' "any\[0\]: 'cats' \[.*cats\] is demanded, but 'cats'"
faulty '{"ordered": ["cat"], "none": ["cat"]}' "ordered\[0\]: 'cat'"
faulty '{"exact": ["cat"], "none": ["cat"]}' "exact\[0\]: 'cat'"

# Streams: what is there is translated.
run --constraints short <three >out 2>err
check 'a stream longer than its constraints' [ $? -eq 2 ]
check 'a stream longer than its constraints: message' grep -q 'standard input:3: short has no such line' err
{ head -n 2 plain; echo; } >expected
same expected out
head -n 1 three | run --constraints nothing >out 2>err
check 'a stream shorter than its constraints: message' grep -q 'nothing has 3 lines, standard input has 1' err

# ---- nothing demanded ---------------------------------------------------------------------------------------------------------

run --constraints nothing --input three >actual || fail '--constraints with nothing in it'
same plain actual
printf '# none\nKatze\tcat\n' >glossary
run --glossary glossary --width 10 --input three >actual || fail '--glossary with nothing in the text'
same plain actual
run --glossary glossary --grid-base 10 --max-length 256 --input three >actual || fail '--grid-base with nothing to do'
check '--grid-base gives lines' [ "$(wc -l <actual)" -eq 3 ]

# ---- whole words, casing, bans --------------------------------------------------------------------------------------------

one() { printf '%s\n' "$1" >constraint; shift; run --constraints constraint "$@" 2>err; } # one JSON [OPTION...] <SOURCE
dog() { echo 'Unser Hund schnarcht.'; }
text=$(dog | one '{"all": ["cat"]}')
check "cat: $text" grep -q -w cat <<<"$text"
text=$(dog | one '{"none": ["dog"]}')
check "no dog: $text" [ "$(grep -c -w dog <<<"$text")" -eq 0 ]
text=$(echo 'Die Suppe ist heiß.' | one '{"all": ["the soup"], "none": ["The"]}')
check "a capital is another word where it is forbidden: $text" grep -q -w 'the soup' <<<"$text"
text=$(echo 'Die Suppe ist heiß.' | one '{"all": ["the soup"]}')
check "a capital at the beginning: $text" grep -q '^The soup' <<<"$text"
for phrase in 'Zyxomma 3.5' 'C++' 'don'"'"'t' '(new)' '☃' 'Ökotest' '"so"'; do
  text=$(dog | one "$(printf '{"all": ["%s"]}' "${phrase//\"/\\\"}")")
  check "$phrase: $text" grep -q -w -F -e "$phrase" <<<"$text"
done
ebay() { echo 'eBay ist gut.'; }
text=$(ebay | one '{"all": ["eBay"]}')
check "eBay: $text" grep -q -w eBay <<<"$text"
text=$(echo 'Die Suppe ist heiß.' | one '{"exact": ["the soup"]}')
check "exact: $text" grep -q -w 'the soup' <<<"$text"
text=$(dog | one '{"none": ["."]}')
check "no full stop: $text" grep -q '^[^.]*[^. ][^.]*$' <<<"$text"
text=$(dog | one '{"all": ["."]}')
check "one full stop, behind a word: $text" grep -q '^[^.]*[a-z][.]$' <<<"$text"
text=$(echo 'Das Auto ist rot.' | one '{"all": ["'"'"'s"]}')
check "'s: $text" grep -q "[a-z]'s\>" <<<"$text"
echo cat >forbid
text=$(dog | one '{"all": ["cat"]}' --forbid forbid)
check "a constraint wins over a ban: $text" grep -q -w cat <<<"$text"
text=$(dog | one '{"all": ["cat", "cat"]}')
check "twice: $text" [ "$(grep -o -w cat <<<"$text" | wc -l)" -ge 2 ]
text=$(dog | one '{"all": ["cat", "house", "garden"]}' --max-length 3)
check 'too short: exit code and message' grep -q -E '^translate: standard input:1: [0-2] of 3 constraints are met, not ' err
check 'too short: something comes all the same' [ -n "$text" ]
text=$(echo | one '{"all": ["cat"]}')
check 'nothing to translate' grep -q "standard input:1: 0 of 1 constraints are met, not 'cat'" err

# ---- glossary ---------------------------------------------------------------------------------------------------------------

printf '# source\ttarget\nHund\thound\n\nkaffee\tjava\nKaffee\tmocha\ngroßen Krankenhaus\tinfirmary\nKrankenhaus\tclinic\n' >glossary
cat >terms <<'TEXT'
Unser Hund schnarcht.
Der Kaffee ist schon kalt.
Meine Schwester arbeitet in einem großen Krankenhaus.
Die Hunde schlafen.
Der Hund bellt, und der andere Hund schläft.
TEXT
run --glossary glossary --input terms >actual || fail '--glossary'
check 'hound' grep -q -i -w hound <(line actual 1)
check 'java or mocha' grep -q -i -w -E 'java|mocha' <(line actual 2)
check 'the longest term' grep -q -i -w infirmary <(line actual 3)
check 'not the shorter one in it' [ "$(line actual 3 | grep -i -c -w clinic)" -eq 0 ]
check 'a part of a word is no term' [ "$(line actual 4 | grep -i -c -w hound)" -eq 0 ]
check 'demanded once' grep -q -i -w hound <(line actual 5)
printf '{"none": ["our"]}\n{"all": ["spoon"]}\n{"none": ["infirmary"]}\n{}\n{}\n' >with
run --glossary glossary --constraints with --input terms >both 2>err
check 'both flags: exit code' [ $? -eq 2 ]
check 'both flags' [ "$(line both 1 | grep -i -c -w our)$(line both 1 | grep -i -c -w hound)" = 01 ]
check 'both flags, line 2' [ "$(line both 2 | grep -i -o -w -E 'java|mocha|spoon' | sort -u | wc -l)" -ge 2 ]
check 'both flags: contradiction' grep -q "^translate: terms:3: glossary:6: 'großen Krankenhaus': 'infirmary' \[.*\] is demanded, but 'infirmary' \[.*\] forbidden" err
check 'both flags: others go on' [ "$(line both 4)" = "$(line actual 4)" ]
printf 'Büro\tworkshop\n' >glossary
printf 'Das Büro ist neu.\nDas Bu\314\210ro ist neu.\n' >terms
run --glossary glossary --input terms >actual || fail 'an umlaut in two ways'
check 'an umlaut as one character' grep -q -i -w workshop <(line actual 1)
check 'an umlaut as two characters' grep -q -i -w workshop <(line actual 2)

report

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# translate_constraints.test.sh TRANSLATE MODEL SAMPLE: translate --constraints and --glossary. What was promised is looked
# for in the text, by grep; sample.en lies beside sample.de.
# shellcheck disable=SC2086  # options are split on purpose
set -u
export LC_ALL=C
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

translate=$(realpath "$1") model=$(realpath "$2") sample=$(realpath "$3")
reference=${sample%.de}.en
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

passed=0 failed=0
pass() { passed=$((passed + 1)); }
fail() { failed=$((failed + 1)); printf 'FAILED: %s\n' "$*"; }
check() { # check WHAT COMMAND...
  local what=$1
  shift
  if "$@"; then pass; else fail "$what"; fi
}
run() { "$translate" --model "$model" "$@"; }
refused() { # refused PATTERN ARGUMENTS...: exit code 2, one message that matches, no output
  local pattern=$1 code
  shift
  run "$@" >out 2>err </dev/null
  code=$?
  if [ $code -ne 2 ]; then fail "exit code $code, not 2: translate $*"
  elif [ "$(wc -l <err)" -ne 1 ] || ! grep -q -E -- "^translate: .*$pattern" err; then fail "message of translate $*: $(cat err)"
  elif [ -s out ]; then fail "output of translate $*"
  else pass; fi
}
same() { check "$1 and $2 differ" cmp -s "$1" "$2"; }
line() { sed -n "$2p" "$1"; }
texts() { awk -F ' [|][|][|] ' '{ print $2 }' "$1"; }

# holds TEXT PHRASE: as whole words, as written or with a capital where a sentence begins.
holds() {
  local capital=${2^}
  printf '%s\n' "$1" | grep -q -w -F -e "$2" && return 0
  printf '%s\n' "$1" | grep -q -w -F -e "$capital" &&
    printf '%s\n' "$1" | grep -q -E "(^|[.!?][^[:alnum:]]* )[^[:alnum:] ]*$capital([^[:alnum:]_]|\$)"
}
# broken FILE OUTPUT: numbers of lines whose demands (one a line of FILE: number, all or none, phrase) the text does not meet.
broken() {
  while IFS=$'\t' read -r number kind phrase; do
    if holds "$(line "$2" "$number")" "$phrase"; then [ "$kind" = all ] || echo "$number"
    else [ "$kind" = none ] || echo "$number"; fi
  done <"$1" | sort -n -u
}
reported() { sed -n 's/^translate: [^:]*:\([0-9]*\): .*\(constraints are met\|is forbidden\).*/\1/p' "$1" | sort -n -u; }

head -n 3 "$sample" >three
printf '{}\n\n{"all": []}\n' >nothing
count=$(wc -l <"$sample")

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

# ---- what is promised: words of the reference, in four ways ----------------------------------------------------------------

# The longest words, for they are the least likely to come by themselves; every fifth line forbids what comes by itself.
run --input "$sample" >beam
awk -v q='"' -v plain=beam '
  function join(a, n,    i, s) { for (i = 1; i <= n; ++i) s = s (i > 1 ? ", " : "") q a[i] q; return s }
  {
    getline own <plain
    sub(/[.!?]+$/, ""); gsub(/,/, ""); n = split($0, w, " "); m = split(own, o, /[ ,.!?]+/)
    i = n < 3 ? 1 : int(n / 2) + 1
    if (NR % 5 == 1) { print "{\"all\": [" q w[i] q "]}"; print NR "\tall\t" w[i] >"demands" }
    if (NR % 5 == 2) { a[1] = w[n]; a[2] = w[i]; print "{\"all\": [" join(a, i == n ? 1 : 2) "]}"
      print NR "\tall\t" w[n] >"demands"; print NR "\tall\t" w[i] >"demands" }
    if (NR % 5 == 3) { p = i < n ? w[i] " " w[i + 1] : w[i]; print "{\"ordered\": [" q w[1] q ", " q p q "]}"
      print NR "\tall\t" w[1] >"demands"; print NR "\tall\t" p >"demands" }
    if (NR % 5 == 4) { print "{\"any\": [[" q w[i] q "]], \"all\": [\"bicycle\", \"New York\"]}"
      print NR "\tall\t" w[i] >"demands"; print NR "\tall\tbicycle" >"demands"; print NR "\tall\tNew York" >"demands" }
    if (NR % 5 == 0) { print "{\"none\": [" q o[2] q ", " q o[3] q "]}"
      print NR "\tnone\t" o[2] >"demands"; print NR "\tnone\t" o[3] >"demands" }
  }' "$reference" >constraints
check 'a constraint for every line' [ "$(cut -f 1 demands | sort -u | wc -l)" -eq "$count" ]
broken demands beam >before
check 'the demands are met anyway' [ "$(wc -l <before)" -ge $((count / 2)) ]
for options in '' '--width 3' '--preset marian' '--preset sockeye' '--preset varstream' '--preset ctranslate2' \
  '--preset huggingface' '--projection clustered' '--schedule streaming --batch 7 --threads 2' '--grid-base 2' \
  '--no-repeat-ngram 2' '--prune-finished none'; do
  run $options --input "$sample" --constraints constraints --stats stats >actual 2>err
  code=$?
  check "$options: lines" [ "$(wc -l <actual)" -eq "$count" ]
  broken demands actual >missed
  reported err >told
  check "$options: unmet $(tr '\n' ' ' <missed), reported $(tr '\n' ' ' <told)" cmp -s missed told
  check "$options: exit code" [ $code -eq "$([ -s told ] && echo 1 || echo 0)" ]
  check "$options: $(wc -l <told) lines are not as demanded" [ "$(wc -l <told)" -le 1 ]
  check "$options: --stats" grep -q '"sentences": 60,' stats
done
run --input "$sample" --constraints constraints >all 2>err
run --input "$sample" --constraints constraints --batch 1 >actual 2>err
same all actual
run --schedule streaming --refill-below 1 --input "$sample" --constraints constraints >actual 2>err
same all actual

head -n 10 "$sample" >ten
head -n 10 constraints >ten_constraints
awk -F '\t' '$1 <= 10' demands >ten_demands
"$translate" --ensemble "$model,$model" --input ten --constraints ten_constraints >actual || fail '--ensemble'
head -n 10 all >expected
same expected actual
run --n-best 3 --input ten --constraints ten_constraints >nbest || fail '--n-best'
check '--n-best: more than one' [ "$(wc -l <nbest)" -gt 15 ]
: >each
texts nbest >list
awk -F '\t' 'NR == FNR { split($0, part, " "); index_of[FNR] = part[1]; n = FNR; next }
  { for (i = 1; i <= n; ++i) if (index_of[i] == $1 - 1) print i "\t" $2 "\t" $3 }' nbest ten_demands >each
check '--n-best: all are as demanded' [ -z "$(broken each list)" ]
run --mbr chrf --input ten --constraints ten_constraints >actual || fail '--mbr'
check '--mbr' [ -z "$(broken ten_demands actual)" ]
sed 's/.*/I think/' ten >prefix
run --prefix prefix --input ten --constraints ten_constraints >actual 2>err
check '--prefix' [ "$(grep -c '^I think' actual)" -eq 10 ]
broken ten_demands actual >missed
reported err >told
same missed told
printf '{"none": ["think"]}\n' >constraints_1
head -n 1 ten | run --prefix <(echo 'I think') --constraints constraints_1 >out 2>err
check 'a prefix with what is forbidden' grep -q "constraints_1:1: 'think' is forbidden, but the prefix has it" err

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

printf '%d passed, %d failed\n' $passed $failed
[ $failed -eq 0 ]

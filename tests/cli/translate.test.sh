#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# translate.test.sh TRANSLATE MODEL SAMPLE: the command line of translate, from every error to every promise.
# shellcheck disable=SC2086,SC2094,SC2016,SC2238  # options are split on purpose; files of one name are different ones
set -u
export LC_ALL=C

translate=$(realpath "$1") model=$(realpath "$2") sample=$(realpath "$3")
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

# refused PATTERN ARGUMENTS...: exit code 2, one line on standard error that matches, nothing on standard output.
refused() {
  local pattern=$1 code
  shift
  "$translate" "$@" >out 2>err </dev/null
  code=$?
  if [ $code -ne 2 ]; then fail "exit code $code, not 2: translate $*"
  elif [ "$(wc -l <err)" -ne 1 ] || ! grep -q -E -- "^translate: .*$pattern" err; then fail "message of translate $*: $(cat err)"
  elif [ -s out ]; then fail "output of translate $*"
  else pass; fi
}
# same A B
same() { check "$1 and $2 differ" cmp -s "$1" "$2"; }
lines() { check "$2 has $(wc -l <"$2") lines, not $1" [ "$(wc -l <"$2")" -eq "$1" ]; }
line() { sed -n "$2p" "$1"; }

count=$(wc -l <"$sample")
sed 's/.*/I think/' "$sample" >prefix
head -n 1 prefix >short
printf 'Guten Tag.\nGr\374n\n' >latin1
printf 'this is no model\n' >broken.safetensors
mkdir empty half
cp "$model/model.safetensors" half/

# ---- refused before any work ------------------------------------------------------------------------------------------

refused '--frobnicate' --frobnicate
refused 'stray' stray
for flag in --model --input --output --search --width --n-best --length-penalty --max-length --prefix --score --schedule \
  --batch --threads --stats; do
  refused "$flag" $flag
done
for flag in --width --n-best --max-length --batch --threads; do
  refused "$flag" $flag 0
  refused "$flag" $flag -3
  refused "$flag" $flag many
  refused "$flag" $flag 2.5
done
refused '--length-penalty' --length-penalty long
refused '--length-penalty' --length-penalty nan
refused '--length-penalty' --length-penalty inf
refused "--search: 'deepest' is not one of beam, greedy" --search deepest
refused '--search' --search 0
refused "--schedule: 'tomorrow' is not one of batched" --schedule tomorrow
refused '--n-best 6 is more than --width 5' --n-best 6
refused '--width has no effect with --search greedy' --search greedy --width 3
refused '--n-best has no effect with --search greedy' --search greedy --n-best 1
refused '--length-penalty has no effect with --search greedy' --search greedy --length-penalty 1
refused '--prefix has no effect with --score' --score prefix --prefix prefix
refused '--n-best has no effect with --score' --score prefix --n-best 2

refused 'missing/model.safetensors: no such file' --model missing/model.safetensors
refused 'empty/model.safetensors: no such file' --model empty
refused 'half/spm.model' --model half
refused 'broken.safetensors' --model broken.safetensors
refused 'nowhere.txt: cannot be opened' --model "$model" --input nowhere.txt
refused 'empty: is a directory' --model "$model" --input empty
refused 'latin1:2: not valid UTF-8' --model "$model" --input latin1
refused 'latin1:2: not valid UTF-8' --model "$model" --input "$sample" --prefix latin1
refused 'latin1:2: not valid UTF-8' --model "$model" --input "$sample" --score latin1
refused 'nowhere.txt: cannot be opened' --model "$model" --input "$sample" --prefix nowhere.txt
refused 'nowhere.txt: cannot be opened' --model "$model" --input "$sample" --score nowhere.txt
refused "short has 1 lines, .* has $count" --model "$model" --input "$sample" --prefix short
refused "short has 1 lines, .* has $count" --model "$model" --input "$sample" --score short
refused 'absent/out: cannot be written' --model "$model" --input "$sample" --output absent/out
refused 'absent/stats: cannot be written' --model "$model" --input "$sample" --stats absent/stats
cp "$sample" copy
refused 'copy: is the input' --model "$model" --input copy --output copy
same copy "$sample"
refused 'latin1:2' --model "$model" --input latin1 --output unborn
check 'an output was made before any work' [ ! -e unborn ]

# ---- help ---------------------------------------------------------------------------------------------------------------

check '--help fails' "$translate" --help >help
check '--help names the flags' grep -q -- '--length-penalty' help
check '--version fails' "$translate" --version >version
check '--version' grep -q -E '^translate \(sluice [0-9]+\.[0-9]+\.[0-9]+\)$' version

# ---- batch, threads and the way in change nothing ---------------------------------------------------------------------------

for search in "--search greedy" "--search beam --width 4" "--width 3 --n-best 3"; do
  run $search --input "$sample" --output expected 2>err || fail "translate $search"
  check "messages of translate $search" [ ! -s err ]
  for way in "--batch 1" "--batch 7" "--batch 64 --threads 3" "--batch 2 --threads 2"; do
    run $search $way --input "$sample" >actual || fail "translate $search $way"
    same expected actual
    run $search $way <"$sample" >actual || fail "translate $search $way, from standard input"
    same expected actual
  done
done
run --search greedy --input "$sample" >greedy
run --input "$sample" >beam
lines "$count" greedy
lines "$count" beam
check 'greedy and beam agree everywhere' [ "$(cmp greedy beam 2>&1)" ]
check 'an empty line came out' [ "$(grep -c -v '[a-z]' beam)" -eq 0 ]
tac "$sample" | run --batch 8 | tac >reversed
same beam reversed
run --input <(cat "$sample") >piped
same beam piped
"$translate" --model "$model/model.safetensors" --input "$sample" >named
same beam named

# ---- lines --------------------------------------------------------------------------------------------------------------

printf '' | run >out || fail 'no input'
check 'no input, some output' [ ! -s out ]
printf '\xEF\xBB\xBF%s\r\n\n  \n%s' "$(line "$sample" 1)" "$(line "$sample" 2)" >odd
{ line beam 1; echo; echo; line beam 2; } >expected
run <odd >actual || fail 'odd lines'
same expected actual
run --input odd >actual || fail 'odd lines of a file'
same expected actual
run --stats stats --search greedy --input odd >/dev/null
check 'empty lines were decoded' grep -q '"sentences": 2,' stats

{ line "$sample" 1; printf 'Gr\374n\n'; line "$sample" 2; } >stream
{ line beam 1; echo; line beam 2; } >expected
run <stream >actual 2>err
check 'invalid UTF-8 in a stream: exit code' [ $? -eq 2 ]
check 'invalid UTF-8 in a stream: message' grep -q '^translate: standard input:2: not valid UTF-8$' err
same expected actual

{ line "$sample" 1; yes 'Hund' | head -n 600 | tr '\n' ' '; echo; line "$sample" 2; } >long
for batch in 1 3; do
  run --batch $batch --input long >actual 2>err
  check 'a sentence that fails: exit code' [ $? -eq 1 ]
  check 'a sentence that fails: message' grep -q -E '^translate: long:2: source: .*length' err
  check 'a sentence that fails: one message' [ "$(wc -l <err)" -eq 1 ]
  same expected actual
done

# ---- n-best ---------------------------------------------------------------------------------------------------------------

run --n-best 5 --input "$sample" >nbest
lines $((5 * count)) nbest
check 'format of --n-best' [ "$(grep -c -E '^[0-9]+ \|\|\| .* \|\|\| -[0-9]+\.[0-9]{6}$' nbest)" -eq $((5 * count)) ]
awk -F ' [|][|][|] ' 'NR % 5 == 1 { print $2 }' nbest >first
same beam first
check 'order of --n-best' awk -F ' [|][|][|] ' '
  $1 != int((NR - 1) / 5) { exit 1 }
  $1 == last && $3 > score { exit 1 }
  { last = $1; score = $3 }' nbest
printf '\n' | run --n-best 2 >out
check 'an empty line with --n-best' [ "$(od -An -c out | tr -d ' ')" = '\n' ]

# ---- options have an effect -------------------------------------------------------------------------------------------------

run --length-penalty 0 --input "$sample" >short_ones
run --length-penalty 3 --input "$sample" >long_ones
check '--length-penalty' [ "$(wc -c <short_ones)" -lt "$(wc -c <long_ones)" ]
run --width 1 --input "$sample" >narrow
same greedy narrow
run --max-length 3 --search greedy --input "$sample" >cut_off
check '--max-length' [ "$(wc -w <cut_off)" -le $((3 * count)) ]
lines "$count" cut_off

# ---- prefix -----------------------------------------------------------------------------------------------------------------

for search in "--search greedy" "--width 3"; do
  run $search --prefix prefix --input "$sample" >actual || fail "--prefix $search"
  check "--prefix $search" [ "$(grep -c '^I think' actual)" -eq "$count" ]
done
sed 's/.*//' "$sample" >nothing
run --prefix nothing --input "$sample" >actual
same beam actual
run --prefix short >actual 2>err < <(head -n 2 "$sample")
check 'a stream longer than its prefixes: exit code' [ $? -eq 2 ]
check 'a stream longer than its prefixes: message' grep -q 'standard input:2: short has no such line' err
lines 2 actual
check 'a stream longer than its prefixes: empty line' [ -z "$(line actual 2)" ]
run --prefix prefix >actual 2>err < <(head -n 2 "$sample")
check 'a stream shorter than its prefixes: exit code' [ $? -eq 2 ]
lines 2 actual

# ---- score ------------------------------------------------------------------------------------------------------------------

# A translation scores what beam search said, unless the tokenizer cuts its text differently; that is rare.
for penalty in 1 0.5; do
  run --length-penalty $penalty --n-best 1 --input "$sample" | awk -F ' [|][|][|] ' '{ print $2 > "texts"; print $3 }' >said
  run --length-penalty $penalty --score texts --input "$sample" >scored || fail '--score'
  lines "$count" scored
  equal=$(paste said scored | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d <= 2e-5) ++n } END { print n + 0 }')
  check "--score: only $equal of $count scores are those of beam search" [ $((10 * equal)) -ge $((9 * count)) ]
done
run --score texts --batch 3 --threads 2 <"$sample" >actual
run --score texts --input "$sample" >scored
same scored actual
{ line "$sample" 1; echo; line "$sample" 3; } >three
{ line texts 1; echo 'Nothing.'; echo; } >targets
run --score targets --input three >actual || fail '--score with empty lines'
check '--score: an empty source gives an empty line' [ -z "$(line actual 2)" ]
check '--score: an empty target has a score' grep -q -E '^-[0-9]+\.[0-9]{6}$' <(line actual 3)

# ---- statistics and progress --------------------------------------------------------------------------------------------------

run --stats stats --search greedy --threads 2 --input "$sample" >/dev/null || fail '--stats'
for key in sentences tokens steps rows expansions forks encoder_calls rows_histogram seconds total encode model output search; do
  check "--stats: $key" grep -q "\"$key\":" stats
done
check '--stats: sentences' grep -q "\"sentences\": $count," stats
run --progress --search greedy --input "$sample" 2>err >actual || fail '--progress'
same greedy actual
check '--progress' grep -q "$count/$count sentences" err

printf '%d passed, %d failed\n' $passed $failed
[ $failed -eq 0 ]

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# translate.test.sh TRANSLATE MODEL SAMPLE: the command line of translate, from every error to every promise.
# shellcheck disable=SC2086,SC2094,SC2016,SC2238  # options are split on purpose; files of one name are different ones
set -u
export LC_ALL=C
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} # waiting threads would cost more than they bring

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
differ() { check "$1 and $2 are the same" [ "$(cmp "$1" "$2" 2>&1)" ]; }
texts() { awk -F ' [|][|][|] ' '{ print $2 }' "$1"; }
stat() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" stats; } # stat KEY: of the file stats

count=$(wc -l <"$sample")
sed 's/.*/I think/' "$sample" >prefix
head -n 1 prefix >short
fewer() { awk 'NR % 6 == 5 && NR < 59 || NR == 56' "$1"; } # short ones and a long one
fewer "$sample" >few
some=$(wc -l <few)
printf 'Guten Tag.\nGr\374n\n' >latin1
printf 'this is no model\n' >broken.safetensors
mkdir empty half foreign second
cp "$model/model.safetensors" half/
ln -s "$model/model.safetensors" foreign/
sed 's/Hund/Hvnd/' "$model/spm.model" >foreign/spm.model
cp "$model/spm.model" "$model/model.safetensors" second/
dd if=/dev/zero of=second/model.safetensors bs=1000 seek=9000 count=20 conv=notrunc 2>dd # some weights less
check 'second is the same model' [ "$(cmp "$model/model.safetensors" second/model.safetensors 2>&1)" ]

# ---- refused before any work ------------------------------------------------------------------------------------------

refused '--frobnicate' --frobnicate
refused 'stray' stray
for flag in --model --ensemble --input --output --search --n-best --mbr --min-length --max-length --preset --width \
  --absolute-threshold --relative-threshold --max-per-parent --length-penalty --temperature --top-k --top-p --seed \
  --no-repeat-ngram --repetition-penalty --forbid --prefix --score --schedule --batch --window --encode-ahead \
  --refill-below --order --max-rows --drain-after --threads --stats; do
  refused "$flag" $flag
done
for flag in --width --n-best --max-length --max-per-parent --top-k --no-repeat-ngram --batch --threads; do
  for value in 0 -3 many 2.5; do refused "$flag" $flag $value; done
done
for value in -1 many 2.5; do
  refused '--min-length' --min-length $value
  refused '--seed' --seed $value
done
refused '--seed' --seed 18446744073709551616
for flag in --length-penalty --absolute-threshold --relative-threshold --temperature --top-p --repetition-penalty; do
  for value in long nan inf; do refused "$flag" $flag $value; done
done
for flag in --absolute-threshold --relative-threshold --temperature --top-p --repetition-penalty; do
  for value in 0 -0.5; do refused "$flag" $flag $value; done
done
refused "--relative-threshold: '1' is not a number between 0 and 1" --relative-threshold 1
refused "--top-p: '1.5' is not a number in \(0, 1\]" --top-p 1.5
refused "--search: 'deepest' is not one of beam, blockwise, greedy, sample" --search deepest
refused "--preset: 'opennmt' is not one of ctranslate2, fairseq, huggingface, marian, sockeye, varstream" --preset opennmt
refused "--mbr: 'meteor' is not one of bleu, chrf" --mbr meteor
refused "--schedule: 'tomorrow' is not one of batched, streaming" --schedule tomorrow
refused "--order: 'newest' is not one of oldest_first, shortest_only" --schedule streaming --order newest
for value in -0.1 1.1 nan half; do refused "--refill-below: '$value'" --schedule streaming --refill-below $value; done
for flag in --window --encode-ahead --max-rows --drain-after; do
  for value in -1 many 2.5; do refused "$flag" --schedule streaming $flag $value; done
done
for flag in --search --preset --mbr --schedule; do # the numbers behind the names are nobody's business
  for value in 0 1; do refused "$flag: '$value' is not one of" $flag $value; done
done

# useless WITH OPTION...: refused with the arguments WITH, each on its own.
useless() {
  local with=$1 option
  shift
  for option; do refused "${option%% *} has no effect with $with" ${with/--score/--score prefix} $option; done
}
beam=('--preset marian' '--width 3' '--absolute-threshold 1' '--relative-threshold 0.1' '--max-per-parent 2')
sampling=('--temperature 2' '--top-k 3' '--top-p 0.5' '--seed 2')
useless '--search greedy' "${beam[@]}" "${sampling[@]}" '--n-best 1' '--length-penalty 1' '--mbr chrf'
useless '--search beam' "${sampling[@]}"
useless '--search sample' "${beam[@]}" '--length-penalty 1'
useless '--score' "${beam[@]}" "${sampling[@]}" '--n-best 2' '--mbr bleu' '--min-length 2' '--max-length 3' \
  '--prefix prefix' '--search greedy' '--search beam' '--no-repeat-ngram 3' '--repetition-penalty 2' '--forbid prefix'
useless '--schedule batched' '--refill-below 1' '--order oldest_first' '--max-rows 9' '--drain-after 9'
refused '--model has no effect with --ensemble' --model "$model" --ensemble "$model,second"
refused '--n-best 6 is more than --width 5' --n-best 6
refused '--n-best 6 is more than --width 5' --n-best 6 --mbr chrf
refused '--mbr has no effect with one candidate: --n-best must be 2 or more' --mbr chrf --n-best 1
refused '--mbr has no effect with one candidate: --n-best must be 2 or more' --mbr chrf --n-best 1 --search sample
refused '--mbr has no effect with one candidate: --width must be 2 or more' --mbr chrf --width 1
refused '--min-length 9 leaves no room for the end in --max-length 9' --min-length 9 --max-length 9

refused 'missing/model.safetensors: no such file' --model missing/model.safetensors
refused 'empty/model.safetensors: no such file' --model empty
refused 'half/spm.model' --model half
refused 'broken.safetensors' --model broken.safetensors
refused "'$model' must name two models or more" --ensemble "$model"
refused 'missing/model.safetensors: no such file' --ensemble "$model,missing/model.safetensors"
refused "foreign/model.safetensors: has another vocabulary than .*: piece [0-9]+ is '.*Hvnd', not '.*Hund'" \
  --ensemble "$model,foreign"
refused 'nowhere.txt: cannot be opened' --model "$model" --input nowhere.txt
refused 'empty: is a directory' --model "$model" --input empty
refused 'latin1:2: not valid UTF-8' --model "$model" --input latin1
for flag in --prefix --score --forbid; do
  refused 'latin1:2: not valid UTF-8' --model "$model" --input "$sample" $flag latin1
  refused 'nowhere.txt: cannot be opened' --model "$model" --input "$sample" $flag nowhere.txt
done
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
for flag in "${beam[@]}" "${sampling[@]}" --ensemble --mbr --min-length --no-repeat-ngram --repetition-penalty --forbid; do
  check "--help names ${flag%% *}" grep -q -E -- "^  ${flag%% *} [A-Z]" help
done
check '--help shows what the parser thinks' [ "$(grep -c -E 'value in|\{|UINT|FLOAT|TEXT' help)" -eq 0 ]
check '--help is too wide' [ "$(awk 'length > 120' help)" = '' ]
check '--version fails' "$translate" --version >version
check '--version' grep -q -E '^translate \(sluice [0-9]+\.[0-9]+\.[0-9]+\)$' version

# ---- batch, threads and the way in change nothing ---------------------------------------------------------------------------

printf 'the\n restaurant\n\n' >forbid
for search in "--search greedy" "--width 4" "--width 3 --n-best 3" "--preset varstream --width 3 --mbr chrf" \
  "--search sample --n-best 2 --seed 5 --top-p 0.9 --forbid forbid --no-repeat-ngram 3"; do
  run $search --input few --output expected 2>err || fail "translate $search"
  check "messages of translate $search" [ ! -s err ]
  for way in "--batch 1" "--batch 4 --threads 2" "--schedule streaming --batch 3 --window 0 --encode-ahead 4" \
    "--schedule streaming --refill-below 1 --batch 2 --order shortest_only --max-rows 3 --threads 2 --window 3"; do
    run $search $way <few >actual || fail "translate $search $way"
    same expected actual
  done
done
run --search greedy --input "$sample" --stats stats >greedy
lines "$count" greedy
check 'an empty line came out' [ "$(grep -c -v '[a-z]' greedy)" -eq 0 ]
OMP_NUM_THREADS=2 run --search greedy --batch 8 --threads 3 --input "$sample" >actual
same greedy actual
for key in sentences tokens steps model_calls rows fed expansions forks encoder_calls encoded rows_histogram cache pages \
  peak_pages bytes seconds total encode model output search; do
  check "--stats: $key" grep -q "\"$key\": *[0-9[{]" stats
done
check '--stats: sentences' [ "$(stat sentences)" -eq "$count" ]
check '--stats: rows_histogram on one line' grep -q -E '^  "rows_histogram": \[[0-9,]+\],$' stats
check '--stats: a page is still in use' [ "$(stat pages)" -eq 0 ]
check '--stats: cache' [ "$(stat peak_pages)" -gt 0 -a "$(stat bytes)" -gt 0 ]

run --n-best 5 --input "$sample" >nbest
awk -F ' [|][|][|] ' 'NR % 5 == 1 { print $2 }' nbest >beam
awk -F ' [|][|][|] ' 'NR % 5 == 1 { print $3 }' nbest >said
fewer greedy >few_greedy
fewer beam >few_beam
differ greedy beam
run --input few >actual
same few_beam actual
tac few | run --batch 8 | tac >actual
same few_beam actual
run --input <(cat few) >actual
same few_beam actual
"$translate" --model "$model/model.safetensors" --input few >actual
same few_beam actual

# ---- streaming ----------------------------------------------------------------------------------------------------------

steps_of() { run --search greedy --batch 8 --window 0 --input "$sample" --stats stats "$@" >actual; stat steps; }
batched=$(steps_of) rows_batched=$(stat rows)
refilled=$(steps_of --schedule streaming --refill-below 1)
same greedy actual
check '--schedule streaming runs other rows' [ "$(stat rows)" -eq "$rows_batched" ]
check '--refill-below 1 takes no fewer steps' [ "$refilled" -lt "$batched" ]
check '--refill-below 0 is not batched' [ "$(steps_of --schedule streaming --refill-below 0)" -eq "$batched" ]
check '--max-rows 4 does nothing' [ "$(steps_of --schedule streaming --max-rows 4)" -ge $((rows_batched / 4)) ]
check '--order shortest_only does nothing' [ "$(steps_of --schedule streaming --order shortest_only)" -gt \
  "$(steps_of --schedule streaming)" ]
check '--drain-after 1 keeps somebody out although nobody can be overtaken' [ \
  "$(steps_of --schedule streaming --refill-below 1 --drain-after 1)" -eq "$refilled" ]
check '--drain-after 1 does nothing' [ "$(steps_of --schedule streaming --refill-below 1 --max-rows 7 --drain-after 1)" -gt \
  "$(steps_of --schedule streaming --refill-below 1 --max-rows 7)" ]
run --search greedy --batch 8 --window 60 --input "$sample" --stats stats >actual
check "--window does nothing" [ "$(stat steps)" -lt "$batched" ]
steps_of --encode-ahead 16 >steps
check '--encode-ahead: groups' [ "$(stat encoder_calls)" -eq 8 -a "$(stat encoded)" -eq "$count" ]
# However long the input, memory holds a part of it; and output comes while input is still to come.
mkfifo pipe
run --search greedy --max-length 1 --schedule streaming <pipe >actual &
exec 3>pipe
head -n 1 few >&3
for _ in $(seq 300); do [ -s actual ] && break; sleep 0.1; done
check 'a pipe has no answer before the next line' [ "$(wc -l <actual)" -eq 1 ]
cat few few >&3
for _ in $(seq 300); do [ "$(wc -l <actual)" -eq $((2 * some + 1)) ] && break; sleep 0.1; done
check 'a pipe has no answers before its end' [ "$(wc -l <actual)" -eq $((2 * some + 1)) ]
exec 3>&-
wait

# ---- lines --------------------------------------------------------------------------------------------------------------

printf '' | run >out || fail 'no input'
check 'no input, some output' [ ! -s out ]
printf '\xEF\xBB\xBF%s\r\n\n  \n%s' "$(line "$sample" 1)" "$(line "$sample" 2)" >odd
{ line beam 1; echo; echo; line beam 2; } >expected
run <odd >actual || fail 'odd lines'
same expected actual
run --stats stats --input odd >actual || fail 'odd lines of a file'
same expected actual
check 'empty lines were decoded' [ "$(stat sentences)" -eq 2 ]

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

lines $((5 * count)) nbest
check 'format of --n-best' [ "$(grep -c -E '^[0-9]+ \|\|\| .* \|\|\| -[0-9]+\.[0-9]{6}$' nbest)" -eq $((5 * count)) ]
check 'order of --n-best' awk -F ' [|][|][|] ' '
  $1 != int((NR - 1) / 5) { exit 1 }
  $1 == last && $3 > score { exit 1 }
  { last = $1; score = $3 }' nbest
printf '\n' | run --n-best 2 >out
check 'an empty line with --n-best' [ "$(od -An -c out | tr -d ' ')" = '\n' ]

# ---- lengths ----------------------------------------------------------------------------------------------------------------

run --length-penalty 0 --input few >short_ones
run --length-penalty 3 --input few >long_ones
check '--length-penalty' [ "$(wc -c <short_ones)" -lt "$(wc -c <long_ones)" ]
run --width 1 --input few >actual
same few_greedy actual
run --max-length 3 --search greedy --input few >actual
check '--max-length' [ "$(wc -w <actual)" -le $((3 * some)) ]
lines "$some" actual
run --min-length 12 --search greedy --stats stats --input few >actual
check '--min-length' [ "$(stat tokens)" -ge $((13 * some)) ]
run --min-length 0 --search greedy --input few >actual
same few_greedy actual

# ---- presets and pruning ------------------------------------------------------------------------------------------------------

# preset PRESET OPTION...: its list of two, and what it cost.
preset() { run --preset "$@" --n-best 2 --input few --stats stats >preset || fail "--preset $*"; }
run --n-best 2 --input few >default
run --preset fairseq --max-length 3 --n-best 2 --input few >cut_off
declare -A rows
for name in fairseq ctranslate2 huggingface sockeye marian varstream; do
  preset $name
  rows[$name]=$(stat rows)
  case $name in
    fairseq) same default preset ;;
    sockeye) check 'sockeye: what has ended keeps its place' [ ${rows[sockeye]} -lt ${rows[fairseq]} ] ;;
    marian) # which alone has no length penalty
      cp preset marian
      preset marian --length-penalty 0
      same marian preset
      preset marian --length-penalty 1
      differ marian preset
      ;;
    varstream)
      preset varstream --absolute-threshold 100 --max-per-parent 100
      check '--absolute-threshold over a preset' [ "$(stat rows)" -gt ${rows[varstream]} ]
      preset varstream --width 2
      check '--width over a preset' [ "$(stat rows)" -lt ${rows[varstream]} ]
      ;;
  esac
done
for name in ctranslate2 huggingface marian; do # which need no end at the maximum length
  preset $name --max-length 3
  check "--preset $name --max-length" [ "$(texts preset | wc -w)" -gt "$(texts cut_off | wc -w)" ]
done
for pruning in '--absolute-threshold 0.6931471805599453' '--relative-threshold 0.5' '--max-per-parent 1'; do
  run $pruning --input few --stats stats >actual || fail "$pruning"
  check "$pruning" [ "$(stat rows)" -lt ${rows[fairseq]} ]
  { stat rows; cat actual; } >"pruned.${pruning:2:8}"
done
same pruned.absolute pruned.relative # log 2 is half as probable

# ---- masks ------------------------------------------------------------------------------------------------------------------

repeated() { awk '{ split("", seen); for (i = 1; i <= NF; ++i) n += seen[$i]++ > 0 } END { print n + 0 }' "$1"; }
for search in '--search greedy' '--width 2'; do
  run $search --no-repeat-ngram 1 --input few >actual || fail '--no-repeat-ngram'
  check "--no-repeat-ngram $search" [ "$(repeated few_greedy)" -gt 0 -a "$(repeated actual)" -eq 0 ]
done
run --search greedy --repetition-penalty 10 --input few >penalised
differ few_greedy penalised
run --width 1 --repetition-penalty 10 --input few >actual
same penalised actual # the same penalty in both
run --search greedy --repetition-penalty 1 --input few >actual
same few_greedy actual
run --forbid forbid --input few >actual
check '--forbid' [ "$(grep -c -w the few_beam)" -gt 0 -a "$(grep -c -w the actual)" -eq 0 ]
run --search sample --top-k 1 --forbid forbid --input few >actual
check '--forbid with samples' [ "$(grep -c -w the actual)" -eq 0 ]
: >nothing
run --search greedy --forbid nothing --input few >actual
same few_greedy actual
# "taste s": within a word too, unless the line begins with a space.
echo 's' >forbid
run --search greedy --forbid forbid --input few >actual
differ few_greedy actual
echo ' s' >forbid
run --search greedy --forbid forbid --input few >actual
same few_greedy actual

# ---- ensembles ----------------------------------------------------------------------------------------------------------------

twice() { "$translate" --ensemble "$@" --input few; }
twice "$model,$model" >actual || fail '--ensemble'
same few_beam actual
"$translate" --model second --input few >alone || fail 'the other model'
twice "$model,second" --n-best 1 --stats stats >together
check '--stats: pages of ensembles' [ "$(stat peak_pages)" -gt 0 ]
twice "second/model.safetensors,$model" --batch 4 --threads 2 >actual
texts together >texts
same texts actual
differ few_beam alone
twice "$model,second" --score texts >scored
check '--ensemble --score' [ "$(paste scored <(awk -F ' [|][|][|] ' '{ print $3 }' together) |
  awk '{ d = $1 - $2; if (d < 0) d = -d; if (d <= 2e-5) ++n } END { print n + 0 }')" -ge $((some - 2)) ]
run --score texts --input few >actual
differ scored actual

# ---- samples ------------------------------------------------------------------------------------------------------------------

sample() { run --search sample "$@" --input few; }
sample --n-best 3 >samples
lines $((3 * some)) samples
check 'format of samples' [ "$(grep -c -E '^[0-9]+ \|\|\| .* \|\|\| -?[0-9]+\.[0-9]{6}$' samples)" -eq $((3 * some)) ]
awk -F ' [|][|][|] ' 'NR % 3 == 1 { print $2 }' samples >expected
sample >actual
same expected actual # one sample is the first of three
sample --seed 1 >actual
same expected actual
sample --seed 2 >actual
differ expected actual
yes "$(line "$sample" "$count")" | head -n 4 | run --search sample >actual
check 'the same line again: the same sample' [ "$(sort -u actual | wc -l)" -gt 1 ]
for option in '--temperature 0.001' '--top-k 1' '--top-p 0.000001'; do
  sample $option >actual
  same few_greedy actual
done

# ---- minimum Bayes risk ---------------------------------------------------------------------------------------------------------

texts samples >candidates
run --n-best 5 --input few | awk -F ' [|][|][|] ' '{ print $2 }' >>candidates
for option in '--mbr chrf' '--mbr bleu --n-best 5' '--mbr chrf --search sample --n-best 3'; do
  run $option --input few >chosen || fail "$option"
  lines "$some" chosen
  check "$option: a text that was no candidate" [ "$(grep -c -v -x -F -f candidates chosen)" -eq 0 ]
  check "$option: the first ones" [ "$(cmp chosen few_beam 2>&1)" ]
done
# Where two of three say the same, that has the least risk.
sample --temperature 0.3 --n-best 3 >samples
sample --temperature 0.3 --n-best 3 --mbr bleu >chosen
texts samples | paste - - - | paste - chosen >choices
check 'the majority was not chosen' awk -F '\t' '
  { major = $1 == $2 || $1 == $3 ? $1 : $2 == $3 ? $2 : "" }
  major != "" { ++n; if ($4 != major) { bad = 1 } }
  END { exit n == 0 || bad }' choices

# ---- prefix -----------------------------------------------------------------------------------------------------------------

head -n "$some" prefix >few_prefix
for search in "--search greedy" "--width 3" "--search sample"; do
  run $search --prefix few_prefix --input few >actual || fail "--prefix $search"
  check "--prefix $search" [ "$(grep -c '^I think' actual)" -eq "$some" ]
done
sed 's/.*//' few >nothing
run --prefix nothing --input few >actual
same few_beam actual
run --prefix short >actual 2>err < <(head -n 2 "$sample")
check 'a stream longer than its prefixes: exit code' [ $? -eq 2 ]
check 'a stream longer than its prefixes: message' grep -q 'standard input:2: short has no such line' err
lines 2 actual
check 'a stream longer than its prefixes: empty line' [ -z "$(line actual 2)" ]
run --prefix prefix >actual 2>err < <(head -n 2 "$sample")
check 'a stream shorter than its prefixes: exit code' [ $? -eq 2 ]
lines 2 actual

# ---- projection ---------------------------------------------------------------------------------------------------------------

for search in greedy beam; do
  run --search $search --projection logits --input few >actual || fail "--projection logits $search"
  same few_$search actual
  for options in '--projection int8 --layers int8' '--projection bfloat16 --layers bfloat16' '--projection clustered'; do
    run --search $search $options --input few >actual || fail "$options $search"
    lines "$some" actual
    equal=$(paste -d '\n' few_$search actual | awk 'NR % 2 { a = $0; next } $0 == a { ++n } END { print n + 0 }')
    check "$options $search: $equal of $some lines are those of dense" [ $((4 * equal)) -ge $((3 * some)) ]
    run --search $search $options --batch 1 --input few >alone
    same actual alone
  done
done
run --search greedy --projection clustered --nearest 400 --audit 1 --stats stats --input few >actual || fail '--nearest 400'
same few_greedy actual
check '--stats has clusters' grep -q '"agreed"' stats
cp "$model/clusters.bin" clusters.bin
printf x >>clusters.bin
head -c 1000 "$model/clusters.bin" >cut.bin
few=$work/few
refused 'clusters.bin: clusters: something follows' --model "$model" --projection clustered --clusters clusters.bin --input "$few"
refused 'cut.bin: clusters: cut off' --model "$model" --projection clustered --clusters cut.bin --input "$few"
refused 'no.bin: cannot be read' --model "$model" --projection clustered --clusters no.bin --input "$few"
refused "not for 'fr-en'" --model "$model" --projection clustered --direction fr-en --input "$few"
refused 'nearest = 401: must not exceed' --model "$model" --projection clustered --nearest 401 --input "$few"
refused '--clusters has no effect with --projection dense' --model "$model" --clusters clusters.bin
refused '--nearest has no effect with --projection int8' --model "$model" --projection int8 --nearest 2
refused '--projection has no effect with --ensemble' --ensemble "$model,$model" --projection clustered
refused "'float' is not one of" --model "$model" --projection float
refused "'int4' is not one of" --model "$model" --layers int4

# ---- score ------------------------------------------------------------------------------------------------------------------

# A translation scores what beam search said, unless the tokenizer cuts its text differently; that is rare.
run --score beam --input "$sample" >scored || fail '--score'
lines "$count" scored
equal=$(paste said scored | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d <= 2e-5) ++n } END { print n + 0 }')
check "--score: only $equal of $count scores are those of beam search" [ $((10 * equal)) -ge $((9 * count)) ]
run --score beam --batch 3 --threads 2 <"$sample" >actual
same scored actual
run --score beam --length-penalty 0.5 --input "$sample" >actual
differ scored actual
{ line "$sample" 1; echo; line "$sample" 3; } >three
{ line beam 1; echo 'Nothing.'; echo; } >targets
run --score targets --input three >actual || fail '--score with empty lines'
check '--score: an empty source gives an empty line' [ -z "$(line actual 2)" ]
check '--score: an empty target has a score' grep -q -E '^-[0-9]+\.[0-9]{6}$' <(line actual 3)

# ---- progress -----------------------------------------------------------------------------------------------------------------

run --progress --search greedy --input few 2>err >actual || fail '--progress'
same few_greedy actual
check '--progress' grep -q "$some/$some sentences" err

printf '%d passed, %d failed\n' $passed $failed
[ $failed -eq 0 ]

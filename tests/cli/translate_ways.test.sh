#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# translate_ways.test.sh TRANSLATE MODEL SAMPLE: batches, threads, schedules and the ways in and out change nothing.
# shellcheck disable=SC2016,SC2086,SC2094,SC2154,SC2238  # options are split on purpose; files of one name are different ones; translate.sh sets the rest
# shellcheck source=tests/cli/translate.sh
. "$(dirname "$(realpath "$0")")/translate.sh"

fewer "$sample" >few
some=$(wc -l <few)

# ---- batch, threads and the way in change nothing ---------------------------------------------------------------------------

printf 'the\n restaurant\n\n' >forbid
for search in "--search greedy" "--width 4" "--width 3 --n-best 3" "--preset varstream --width 3 --mbr chrf" \
  "--width 3 --n-best 2 --alignments soft" "--search sample --n-best 2 --seed 5 --top-p 0.9 --forbid forbid --no-repeat-ngram 3"; do
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

# Lines without words, and one that is not UTF-8, among others: each thread prepares its own, and all keep their places.
{ head -n 5 "$sample"; printf '\n  \nna\377\n\n'; tail -n +6 "$sample"; printf '\n'; } >holes
code=0
run --search greedy <holes >expected 2>err || code=$?
check 'a line that is not UTF-8: exit code' [ $code -eq 2 ]
check 'a line that is not UTF-8: message' grep -q 'standard input:8: not valid UTF-8' err
lines $((count + 5)) expected
grep '[a-z]' expected >actual
same greedy actual 'lines beside those without words'
for threads in 2 5; do
  code=0
  run --search greedy --batch 3 --window 2 --threads $threads <holes >actual 2>others || code=$?
  check "$threads threads: exit code" [ $code -eq 2 ]
  same expected actual
  same err others
done
grep -a -v na holes >holes_of_a_file # what is known to end is shared out
run --search greedy --alignments hard --input holes_of_a_file >expected
run --search greedy --alignments hard --input holes_of_a_file --threads 4 --batch 5 >actual
same expected actual 'a file with lines without words'

for key in sentences tokens steps model_calls rows fed expansions forks encoder_calls encoded rows_histogram cache pages \
  peak_pages bytes seconds total encode model output search; do
  check "--stats: $key" grep -q "\"$key\": *[0-9[{]" stats
done
check '--stats: sentences' [ "$(stat sentences)" -eq "$count" ]
check '--stats: rows_histogram on one line' grep -q -E '^  "rows_histogram": \[[0-9,]+\],$' stats
check '--stats: a page is still in use' [ "$(stat pages)" -eq 0 ]
check '--stats: cache' [ "$(stat peak_pages)" -gt 0 -a "$(stat bytes)" -gt 0 ]

# ---- alignments: behind the same translations, all words, the best share of each -------------------------------------------

for kind in hard soft 0.2; do
  run --search greedy --alignments $kind --input "$sample" >aligned.$kind
  sed 's/ ||| .*//' aligned.$kind >actual
  same greedy actual "--alignments $kind"
done
run --search blockwise --alignments hard --input "$sample" >actual
same aligned.hard actual 'guesses that are rejected align nothing'
wrong=$(paste -d '\t' "$sample" aligned.hard aligned.soft aligned.0.2 | awk -F '\t' '
  function fault(what) { print "line " NR ": " what }
  {
    split($2, hard, " [|][|][|] "); split($3, soft, " [|][|][|] "); split($4, above, " [|][|][|] ")
    sources = split($1, word, " "); targets = split(hard[1], word, " ")
    if (targets > 0 && split(soft[2], line, " ") != targets) fault("words of the translation")
    for (t = 1; t <= targets; ++t) {
      if (split(line[t], share, ",") != sources) fault("words of the source")
      sum = best = 0
      for (s = 1; s <= sources; ++s) {
        sum += share[s]
        if (share[s] > share[best]) best = s
        pair = (s - 1) "-" (t - 1)
        listed = index(" " above[2] " ", " " pair " ") > 0
        if (share[s] > 0.2001 && !listed || share[s] < 0.1999 && listed) fault(pair)
      }
      if (sum < 0.995 || sum > 1.005) fault("shares add up to " sum)
      if (!index(" " hard[2] " ", " " (best - 1) "-" (t - 1) " ")) fault("the best of word " t)
    }
    if (split(hard[2], pairs, " ") != targets) fault("pairs")
  }
  END { print NR " lines" }')
check "alignments: $wrong" [ "$wrong" = "$count lines" ]
refused '--alignments has no effect with --explain' --alignments hard --explain --search blockwise
refused '--alignments has no effect with --score' --alignments hard --score "$sample"
plainly refused '--alignments has no effect with --ensemble' --alignments hard --ensemble "$model,$model"
refused "--alignments: '1.5' is neither hard, soft nor a number in .0, 1." --alignments 1.5

run --n-best 5 --input "$sample" >nbest
texts <(awk 'NR % 5 == 1' nbest) >beam
fewer greedy >few_greedy
fewer beam >few_beam
differ greedy beam
run --input few >actual
same few_beam actual
tac few | run --batch 8 | tac >actual
same few_beam actual
run --input <(cat few) >actual
same few_beam actual
translate --model "$model/model.safetensors" --input few >actual
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

# ---- progress -----------------------------------------------------------------------------------------------------------------

run --progress --search greedy --input few 2>err >actual || fail '--progress'
same few_greedy actual
check '--progress' grep -q "$some/$some sentences" err

report

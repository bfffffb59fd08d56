#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# translate_searches.test.sh TRANSLATE MODEL SAMPLE: options of translate's searches: each does what it says.
# shellcheck disable=SC2016,SC2086,SC2094,SC2154  # options are split on purpose; translate.sh sets the rest
# shellcheck source=tests/cli/translate.sh
. "$(dirname "$(realpath "$0")")/translate.sh"

fewer "$sample" >few
some=$(wc -l <few)
run --search greedy --input few >few_greedy || fail '--search greedy'
run --input few >few_beam || fail 'beam search'
printf 'the\n restaurant\n\n' >forbid

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
# Best first is such a preset whose rule proves what it finds, in fewer rows; others are refused.
preset huggingface --length-penalty 0
rows[plain]=$(stat rows)
run --search best-first --length-penalty 0 --n-best 2 --input few --stats stats >actual || fail '--search best-first'
same preset actual
check '--search best-first: rows' [ "$(stat rows)" -lt ${rows[plain]} ]
run --search best-first --preset marian --input few >actual 2>complaint && fail '--search best-first --preset marian'
check '--search best-first --preset marian' [ "$(grep -c 'finished = shrink' complaint)" -gt 0 ]
# How sure it was: a probability for each word, alternatives for each piece, and the same for whoever finds the same.
echo 'Wo hast du meine Brille hingelegt?' >line
run --search greedy --confidence --alternatives 2 --input line >actual || fail '--confidence'
check '--confidence: a number for each word' \
  [ "$(awk -F ' [|][|][|] ' '{ print $1 }' actual | wc -w)" -eq "$(awk -F ' [|][|][|] ' '{ print $2 }' actual | wc -w)" ]
run --search greedy --alternatives 1 --input line | awk -F ' [|][|][|] ' '{ gsub(/:[0-9.]+/, "", $2); gsub(/ /, "", $2); print $2 }' >pieces
run --search greedy --input line | sed 's/^/ /; s/ /▁/g; s,$,</s>,' >best_pieces # of greedy search the taken are the best
same best_pieces pieces
run --width 1 --confidence --alternatives 2 --input line >again
same actual again
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

# ---- boosted phrases ------------------------------------------------------------------------------------------------------

printf 'banana\t12\n' >bananas
printf '# not this\nthe\t-20\n' >rather_not
for search in '--search greedy' '--width 5' '--search sample --top-k 1' '--search blockwise'; do
  run $search --max-length 30 --bias bananas --input few >actual
  check "--bias $search" [ "$(grep -c banana actual)" -gt $((some / 2)) -a "$(grep -c 'banana.*banana' actual)" -gt 0 ]
  run $search --max-length 30 --bias bananas --bias-once --input few >actual
  check "--bias-once $search" [ "$(grep -c banana actual)" -gt 0 -a "$(grep -c 'banana.*banana' actual)" -eq 0 ]
  run $search --bias rather_not --input few >actual
  check "a phrase that is rather not $search" [ "$(grep -c -i -w the actual)" -eq 0 ]
  run $search --bias nothing --input few >actual
  run $search --input few >expected
  same expected actual
done

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

# ---- watermarks --------------------------------------------------------------------------------------------------------------

echo 0x1fedcba987654321 >key
echo 0x1fedcba987654322 >other
refused '--watermark has no effect without --watermark-key' --search sample --watermark synthid
refused '--watermark-delta has no effect without --watermark-key' --watermark-delta 2
refused '--watermark gumbel does not go with --search beam, which draws nothing' --watermark-key key
refused '--watermark synthid does not go with --search greedy, which draws nothing' --search greedy --watermark-key key --watermark synthid
refused '--watermark-key does not go with --search best-first' --search best-first --watermark-key key --watermark red_green
refused '--watermark-key does not go with --accept top:2' --search blockwise --accept top:2 --watermark-key key --watermark red_green
refused '--watermark-key has no effect with --score' --score few --watermark-key key
refused "'best' is not one of" --search sample --watermark-key key --watermark best
refused "'17' is not a number from 1 to 16" --search sample --watermark-key key --watermark-width 17
refused 'nowhere.*cannot be read' --search sample --watermark-key nowhere
refused 'watermark.prf' --search sample --watermark-key key --watermark sbw
refused 'samples = 2: .*would all be the same' --search sample --watermark-key key --n-best 2
run --search sample --input few >plain
for scheme in gumbel synthid red_green 'sbw --watermark-prf philox'; do
  run --search sample --watermark-key key --watermark $scheme --input few >marked || fail "--watermark $scheme"
  differ plain marked
  run --search sample --watermark-key key --watermark $scheme --batch 3 --schedule streaming --input few >actual
  same marked actual "$scheme in other batches"
  run --search sample --watermark-key other --watermark $scheme --input few >actual
  differ marked actual
done
run --search sample --watermark-key key --seed 9 --input few >seeded
run --search sample --watermark-key key --seed 8 --input few >actual
same seeded actual 'gumbel: the key draws, not the seed'
run --search sample --watermark-key key --watermark-second 0.5 --n-best 3 --input few >actual
check 'with two keys samples differ' [ "$(texts actual | sort -u | wc -l)" -gt "$some" ]
green=(--watermark-key key --watermark red_green --watermark-delta 6)
run --search greedy "${green[@]}" --input few >marked
differ few_greedy marked
run --width 1 "${green[@]}" --input few >actual
same marked actual 'a green beam of one'
run --search blockwise --proposer ngram "${green[@]}" --input few >actual
same marked actual 'green blocks'
run "${green[@]}" --constraints <(for _ in $(seq "$some"); do echo '{}'; done) --width 1 --input few >actual
same marked actual 'a green constrained beam of one'
run --search sample --watermark-key key --input few --output kept --resume || fail 'a marked run with --resume'
check 'a journal without the key' [ "$(grep -c -i -E '1fedcba987654321|2300718913637663521' kept.journal)" = 0 ]
run --search sample --watermark-key key --input few --output kept --resume || fail 'the same, again'
unborn=()
refused 'kept.journal: is of another run: --watermark-key was' --search sample --watermark-key other --input few --output kept --resume

report

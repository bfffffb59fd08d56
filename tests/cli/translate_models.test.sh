#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# translate_models.test.sh TRANSLATE MODEL SAMPLE: prefixes and references, other projections, several models.
# shellcheck disable=SC2016,SC2086,SC2094,SC2154  # options are split on purpose; translate.sh sets the rest
# shellcheck source=tests/cli/translate.sh
. "$(dirname "$(realpath "$0")")/translate.sh"

fewer "$sample" >few
some=$(wc -l <few)
run --search greedy --input few >few_greedy || fail '--search greedy'
run --input few >few_beam || fail 'beam search'
sed 's/.*/I think/' "$sample" >prefix
head -n 1 prefix >short

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

# ---- ensembles ----------------------------------------------------------------------------------------------------------------

twice() { translate --ensemble "$@" --input few; }
twice "$model,$model" >actual || fail '--ensemble'
same few_beam actual
translate --model second --input few >alone || fail 'the other model'
twice "$model,second" --n-best 1 --stats stats >together
check '--stats: pages of ensembles' [ "$(stat peak_pages)" -gt 0 ]
twice "second/model.safetensors,$model" --batch 4 --threads 2 >actual
texts together >texts
same texts actual
differ few_beam alone
twice "$model,second" --score texts >scored
check '--ensemble --score' [ "$(near scored <(scores together))" -ge $((some - 2)) ]
run --score texts --input few >actual
differ scored actual

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
    case $options in *--layers*)
      run --search $search --precision ${options##* } --input few --stats stats >both || fail "--precision ${options##* } $search"
      same actual both "--precision ${options##* } $search"
      check "--stats of --precision ${options##* }" \
        [ "$(grep -o "\"name\":\"${options##* }\",\"by\":\"[a-z0-9_]*\"" stats | wc -l)" = 2 ]
      ;;
    esac
  done
  run --search $search --precision float32 --input few >actual || fail "--precision float32 $search"
  same few_$search actual '--precision float32'
done
# Whatever this machine makes of it; never int8.
run --search greedy --precision auto --input few --stats stats >actual || fail '--precision auto'
automatic=$(sed -n 's/^  "precision": {"layers":{"name":"\([a-z0-9]*\)".*/\1/p' stats)
check "--precision auto is $automatic" [ "$automatic" = bfloat16 -o "$automatic" = float32 ]
run --search greedy --precision "$automatic" --input few >both || fail "--precision $automatic"
same actual both '--precision auto'
run --search greedy --precision int8 --layers float32 --projection dense --input few --stats stats >actual || fail '--layers float32'
check '--layers over --precision' grep -q '"layers":{"name":"float32".*"output":{"name":"int8"' stats
refused "'half' is not one of auto, bfloat16, float32, int8" --input few --precision half
run --search greedy --projection clustered --nearest 400 --audit 1 --stats stats --input few >actual || fail '--nearest 400'
same few_greedy actual
check '--stats has clusters' grep -q '"agreed"' stats
cp "$model/clusters.bin" clusters.bin
printf x >>clusters.bin
head -c 1000 "$model/clusters.bin" >cut.bin
refused 'clusters.bin: clusters: something follows' --projection clustered --clusters clusters.bin --input few
refused 'cut.bin: clusters: cut off' --projection clustered --clusters cut.bin --input few
refused 'no.bin: cannot be read' --projection clustered --clusters no.bin --input few
refused "not for 'fr-en'" --projection clustered --direction fr-en --input few
refused 'nearest = 401: must not exceed' --projection clustered --nearest 401 --input few
refused '--clusters has no effect with --projection dense' --clusters clusters.bin
refused '--nearest has no effect with --projection int8' --projection int8 --nearest 2
plainly refused '--projection has no effect with --ensemble' --ensemble "$model,$model" --projection clustered
refused "'float' is not one of" --projection float
refused "'int4' is not one of" --layers int4

# ---- score ------------------------------------------------------------------------------------------------------------------

# A translation scores what beam search said, unless the tokenizer cuts its text differently; that is rare.
run --n-best 2 --input "$sample" | awk 'NR % 2' >nbest
texts nbest >beam
scores nbest >said
run --score beam --input "$sample" >scored || fail '--score'
lines "$count" scored
equal=$(near said scored)
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

report

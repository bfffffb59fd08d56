#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# translate_blockwise.test.sh TRANSLATE MODEL SAMPLE: translate --search blockwise. What it counts is held against what
# --explain shows.
# shellcheck disable=SC2016,SC2086,SC2094,SC2154  # options are split on purpose; translate.sh sets the rest
# shellcheck source=tests/cli/translate.sh
. "$(dirname "$(realpath "$0")")/translate.sh"
# shellcheck source=tests/cli/blockwise.sh
. "$(dirname "$(realpath "$0")")/blockwise.sh"
awk 'NR % 6 == 5' "$sample" >few
head -n 3 "$sample" >three

# ---- refused --------------------------------------------------------------------------------------------------------------

own=('--block 3' --adaptive '--proposer ngram' '--heads x' '--draft-model x' '--accept top:2' '--minimum 2' '--branches 4' '--tree-nodes 4' '--remember x' --explain)
printf '\n\n\n' >nothing
for flag in "${own[@]}"; do
  for search in greedy beam sample; do
    refused "${flag% *} has no effect with --search $search" --search $search $flag
  done
  refused "${flag% *} has no effect with --score" --score nothing $flag
  case $flag in *' '*) refused "${flag% *}" --search blockwise ${flag% *} ;; esac
done
for flag in '--n-best 2' '--mbr chrf' '--length-penalty 1' '--width 3' '--preset marian' '--temperature 2' '--seed 3' \
  '--constraints nothing' '--glossary nothing' '--grid-base 2'; do
  refused "${flag% *} has no effect with --search blockwise" --search blockwise $flag
done
for value in 0 -1 1025 2.5 many; do
  refused '--block' --search blockwise --block $value
  refused '--minimum' --search blockwise --accept top:2 --minimum $value
done
for value in best top top: top:0 top:-1 top:2.5 top:2x top:10001 2 exactly ''; do
  refused "--accept: '$value' is neither exact nor top:N" --search blockwise --accept "$value"
done
refused "'nobody' is not one of draft, heads, ngram, ngram,draft, ngram,heads" --search blockwise --proposer nobody
refused '--proposer draft needs --draft-model' --search blockwise --proposer draft
refused '--proposer ngram,draft needs --draft-model' --search blockwise --proposer ngram,draft
refused '--draft-model has no effect with --proposer heads' --search blockwise --draft-model second
refused '--heads has no effect with --proposer ngram' --search blockwise --proposer ngram --heads x
refused '--heads has no effect with --proposer draft' --search blockwise --proposer $itself --heads x
refused '--tree-nodes 3 without --branches: a chain has none' --search blockwise --tree-nodes 3
refused '--minimum 5 is more than --block 4' --search blockwise --accept top:2 --minimum 5
refused '--minimum 2 keeps guesses that are wrong, --accept exact none: choose --accept top:N' --search blockwise --minimum 2
for mask in '--no-repeat-ngram 3' '--repetition-penalty 1.1' '--forbid nothing'; do
  refused "${mask% *} does not go with --accept top:3, which may keep" --search blockwise --accept top:3 $mask
done
refused '--projection clustered does not go with --search blockwise' --search blockwise --projection clustered
for who in heads ngram,heads; do
  translate --ensemble "$model,second" --search blockwise --proposer $who >out 2>err
  check "an ensemble with $who: exit code" [ $? -eq 2 ]
  check "an ensemble with $who: $(cat err)" \
    grep -q -E "^translate: --ensemble has no heads: --proposer must be draft or ngram, not $who\$" err
done
refused 'missing: no such file' --search blockwise --heads missing
refused 'missing: cannot be read' --search blockwise --clusters missing
refused '--clusters has no effect with --projection dense' --search blockwise --proposer ngram --clusters missing
refused '--nearest has no effect with --projection dense' --search blockwise --nearest 3
refused 'three: ' --search blockwise --heads three
refused "model.safetensors: heads: the file has no tensor 'heads.2.up.weight'" \
  --search blockwise --heads "$model/model.safetensors"
translate --model second --search blockwise >out 2>err <few
check 'heads beside the model: exit code' [ $? -eq 2 ]
check "heads beside the model: $(cat err)" grep -q '^translate: second/heads.safetensors: no such file' err
refused 'missing: no such file' --search blockwise --proposer draft --draft-model missing
refused "foreign/model.safetensors: has another vocabulary than .*: piece [0-9]+ is '.*Hvnd', not '.*Hund'" \
  --search blockwise --proposer draft --draft-model foreign

# ---- how good the guesses are ---------------------------------------------------------------------------------------------

greedy_calls() { run --search greedy --batch 100 --input "$sample" --stats stats >out && stat model_calls; }
calls=$(greedy_calls)
blockwise --proposer $itself --block 4 --batch 100 --input "$sample" --stats stats >out
check "a model drafts for itself: mean $(of_blocks mean) of 4" at_least "$(of_blocks mean)" 3.3
check "and is called $(stat model_calls) times, not $calls" [ "$(stat model_calls)" -le $((calls / 3)) ]
check 'and all its guesses are kept' [ "$(grep -o '"judged":[0-9]*' stats | cut -d : -f 2)" = "$(grep -o '"kept":[0-9]*' stats | cut -d : -f 2)" ]
blockwise --proposer $itself --block 30 --input "$sample" --stats stats >out
check "in one block: mean $(of_blocks mean)" at_least "$(of_blocks mean)" 10
for who in heads 'draft --draft-model second'; do
  blockwise --proposer $who --block 4 --input "$sample" --stats stats >out
  check "$who: mean $(of_blocks mean)" at_least "$(of_blocks mean)" 1.3
done
head -n 20 "$sample" | awk '{ print $0, $0, $0 }' >again # what repeats itself can be looked up
blockwise --proposer ngram --input again --stats stats >actual
check "ngram: mean $(of_blocks mean)" at_least "$(of_blocks mean)" 1.02
run --search greedy --input again >expected
same expected actual 'ngram, with something to say'

# ---- relaxed blocks -------------------------------------------------------------------------------------------------------

for options in '--accept top:2' '--accept top:5 --block 8 --proposer ngram,heads' '--accept top:2 --minimum 2 --block 3' \
  '--accept top:3 --adaptive --block 8'; do
  blockwise $options --input "$sample" --stats stats >relaxed || fail "$options"
  check "$options: lines" [ "$(wc -l <relaxed)" -eq "$count" ]
  check "$options: tokens" [ "$(of_blocks tokens)" -eq "$(stat tokens)" ]
  for way in '--batch 1' '--batch 3' '--schedule streaming --batch 7' '--threads 2 --batch 5 --encode-ahead 9'; do
    blockwise $options $way --input few >actual || fail "$options $way"
    same <(awk 'NR % 6 == 5' relaxed) actual "$options $way"
  done
done
mean() { blockwise "$@" --input "$sample" --stats stats >out && of_blocks mean; }
exact=$(mean) relaxed=$(mean --accept top:3) forced=$(mean --accept top:3 --minimum 3)
check "top:3 keeps more than exact: $exact, $relaxed" at_least "$relaxed" "$exact"
check "a minimum keeps more: $relaxed, $forced" at_least "$forced" "$relaxed"
check "a minimum of 3: $forced" at_least "$forced" 2.5

# ---- --explain and --stats ------------------------------------------------------------------------------------------------

# recount BLOCK: --stats from what --explain shows
recount() {
  awk -v block="$1" '
    function list(a, n,    i, s) { for (i = 0; i <= n; ++i) s = s (i ? "," : "") a[i] + 0; return s }
    { sub(/^\[[^]]*\] /, ""); if ($0 == "") next
      n = split($0, part, " [|] ")
      for (i = 1; i <= n; ++i) {
        size = split(part[i], piece, " "); ++rounds; tokens += size; ++sizes[size]; if (size > most) most = size
        looked = size < block && i < n ? size : size - 1
        for (g = 0; g < looked; ++g) { ++judged[g]; kept[g] += g < size - 1 }
        if (looked > all) all = looked
      } }
    END { printf "\"rounds\":%d,\"tokens\":%d,\"sizes\":[%s],\"guesses\":[", rounds, tokens, list(sizes, most)
      for (g = 0; g < all; ++g) printf "%s{\"judged\":%d,\"kept\":%d}", g ? "," : "", judged[g], kept[g]
      print "]" }'
}
spelled() { sed 's/^\[\([^]]*\)\]/\1/; s/ <\/s>$//; s/ [|]//g; s/ //g; s/\xe2\x96\x81/ /g; s/^ //'; }
awk 'NR % 3 == 0' "$sample" >third
awk '{ print NR % 3 == 0 ? "" : "I think" }' third >beginnings
for options in '' '--block 8 --proposer ngram' '--block 30 --proposer '"$itself" '--accept top:2' '--block 1' \
  '--batch 5 --threads 2' '--prefix beginnings' '--max-length 6'; do
  block=$(sed -n 's/.*--block \([0-9]*\).*/\1/p' <<<"$options")
  blockwise $options --input third >text || fail "$options"
  blockwise $options --input third --explain --stats stats >blocks || fail "$options --explain"
  spelled <blocks >actual
  same text actual "$options --explain"
  recount "${block:-4}" <blocks >expected
  sed -n '/^  "blocks"/s/.*{\("rounds".*\)}[^]]*$/\1/p' stats | sed 's/"mean":[0-9.]*,//' >actual
  same expected actual "$options --stats: $(cat expected actual)"
done
# What an earlier run translated is guessed in whole blocks by the next; the translations stay.
run --search greedy --input third >expected
for again in first second; do
  blockwise --block 8 --proposer ngram --remember memory --input third --stats stats >actual || fail "--remember, $again"
  same expected actual "--remember, $again"
  mv stats "stats_$again"
done
mean_of() { sed -n 's/.*"mean":\([0-9.]*\),.*/\1/p' "$1"; }
check "the second run guesses more: $(mean_of stats_first), $(mean_of stats_second)" at_least "$(mean_of stats_second)" 3
printf 'nothing' >no_memory
refused 'no_memory: suffix cache: this is no suffix cache' --search blockwise --remember no_memory
refused '--remember does not go with --accept top:N' --search blockwise --remember memory --accept top:2
blockwise --explain --input third --prefix beginnings >blocks
check 'what is forced stands in brackets' [ "$(grep -c '^\[[^]]*I [^]]*think\] ' blocks)" -eq $((count / 3 - count / 9)) ]
{ head -n 1 three; echo; tail -n 1 three; } | blockwise --explain >blocks
check 'an empty line' [ "$(sed -n 2p blocks)" = '' ]
check 'lines around it' [ "$(wc -l <blocks)" -eq 3 ]
run --search greedy --input few --stats stats >out
check 'blocks of other searches' [ "$(grep -c '"blocks"' stats)" -eq 0 ]

report

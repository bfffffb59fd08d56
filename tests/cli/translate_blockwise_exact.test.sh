#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# translate_blockwise_exact.test.sh TRANSLATE MODEL SAMPLE PROPOSER...: exact blocks give what greedy search gives, whoever
# guesses. PROPOSER: heads, ngram, itself (the model drafts), second (one that is right often and not always), ngram,second ...
# shellcheck disable=SC2016,SC2086,SC2094,SC2154  # options are split on purpose; translate.sh sets the rest
# shellcheck source=tests/cli/translate.sh
. "$(dirname "$(realpath "$0")")/translate.sh"
# shellcheck source=tests/cli/blockwise.sh
. "$(dirname "$(realpath "$0")")/blockwise.sh"
shift 3
awk 'NR % 6 == 5' "$sample" >few

# ---- exact blocks give what greedy search gives ---------------------------------------------------------------------------

run --search greedy --input "$sample" >greedy || fail '--search greedy'
run --search greedy --input few >few_greedy || fail '--search greedy'
awk '{ print NR % 3 == 0 ? "" : NR % 3 == 1 ? "I think" : "The" }' few >beginnings
printf 'the\nis\nin the\n' >words
choices=('--min-length 12' '--max-length 5' '--no-repeat-ngram 1' '--repetition-penalty 1.3' '--forbid words'
  '--projection logits' '--projection bfloat16' '--projection int8 --layers int8' '--prefix beginnings')
for i in "${!choices[@]}"; do
  run --search greedy ${choices[i]} --input few >expected.$i || fail "--search greedy ${choices[i]}"
done
run --search blockwise <few >actual || fail 'standard input, as many guesses as pay'
same few_greedy actual 'standard input'
translate --ensemble "$model,second" --search greedy --input few >ensemble || fail '--ensemble'
for who; do
  who=${who/itself/draft --draft-model $model} who=${who/second/draft --draft-model second}
  for block in 1 2 4 8 30; do
    case $block,$who in 4,heads | 4,"$itself") text=$sample expected=greedy ;; *) text=few expected=few_greedy ;; esac
    blockwise --proposer $who --block $block --input "$text" --stats stats >actual || fail "$who, $block"
    same $expected actual "$who, block $block"
    check "$who, $block: tokens" [ "$(of_blocks tokens)" -eq "$(stat tokens)" ]
    check "$who, $block: rounds" [ "$(of_blocks rounds)" -le "$(stat tokens)" ]
    check "$who, $block: mean" at_least $block "$(of_blocks mean)"
    [ $block -gt 1 ] || check "$who, 1: mean" [ "$(of_blocks mean)" = 1.0 ]
  done
  blockwise --proposer $who --adaptive --block 8 --input few >actual || fail "$who --adaptive"
  same few_greedy actual "$who --adaptive"
  blockwise --proposer $who --block 5 --branches 4 --tree-nodes 7 --input few >actual || fail "$who --branches"
  same few_greedy actual "$who --branches"
  for options in '--batch 1' '--batch 3' '--schedule streaming --batch 7 --refill-below 1' '--threads 2 --batch 5' \
    '--encode-ahead 16' '--encode-ahead 16 --schedule streaming --batch 3 --threads 2' '--accept top:1'; do
    blockwise --proposer $who $options --input few >actual || fail "$who $options"
    same few_greedy actual "$who $options"
  done
  for i in "${!choices[@]}"; do
    blockwise --proposer $who ${choices[i]} --input few >actual || fail "$who ${choices[i]}"
    same expected.$i actual "$who ${choices[i]}"
  done
  case $who in *heads) continue ;; esac # which an ensemble has not
  translate --ensemble "$model,second" --search blockwise --proposer $who --input few --stats stats >actual
  same ensemble actual "--ensemble, $who"
  check "$who: pages of draft and ensemble are given back" grep -q '"cache": {"pages":0,' stats
done

report

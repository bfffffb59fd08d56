#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# translate_language.test.sh TRANSLATE MODEL SAMPLE BUILD_NGRAM: scores of n-grams beside the model's.
# shellcheck disable=SC2016,SC2086,SC2094,SC2154  # options are split on purpose; translate.sh sets the rest
build=$(realpath "$4")
# shellcheck source=tests/cli/translate.sh
. "$(dirname "$(realpath "$0")")/translate.sh"

fewer "$sample" >few
some=$(wc -l <few)
run --input few >beam || fail 'beam search'
for i in 1 2 3 4 5 6 7; do for j in 1 2 3; do echo "The cat number $i is $j years old, I think."; done; done >text
"$build" --text text --tokenizer "$model/spm.model" --order 3 --fallback --out pieces.ng >out || fail "build_ngram: $(cat out)"
"$build" --text text --order 2 --fallback --out words.ng >out || fail "build_ngram: $(cat out)"
head -c 5000 pieces.ng >cut.ng

for flag in --language-model --language-weight --word-bonus; do refused "$flag" $flag; done
refused '--language-weight has no effect with no --language-model' --language-weight 0.3
refused '--word-bonus has no effect with no --language-model' --word-bonus 0.3
refused "--language-weight: 'inf' is not a number" --language-model pieces.ng --language-weight inf
refused '--projection has no effect with --language-model' --language-model pieces.ng --projection clustered
refused '--language-model does not go with heads' --language-model pieces.ng --search blockwise
refused '--word-bonus > 0 do not go with --search best-first' --language-model pieces.ng --word-bonus 0.5 --search best-first
refused 'absent.ng: no such file' --language-model absent.ng
refused 'text: n-grams: this is no table of n-grams' --language-model text
refused 'cut.ng: n-grams: cut off after 5000 bytes' --language-model cut.ng
refused 'words.ng: has [0-9]* of the [0-9]* pieces of spm.model: build_ngram --tokenizer' --language-model words.ng

# Without weight, the model's own output; with much, another one, whatever the batch.
run --input few --language-model pieces.ng --language-weight 0 >actual || fail '--language-weight 0'
same beam actual
run --input few --language-model pieces.ng --language-weight 0.5 --n-best 1 >fused || fail '--language-model'
texts fused >fused_texts
differ beam fused_texts
run --input few --language-model pieces.ng --language-weight 0.5 --batch 3 --threads 2 --encode-ahead 6 --schedule streaming >actual
same fused_texts actual
run --input few --language-model pieces.ng --language-weight 0.5 --score fused_texts >scored || fail '--score'
check '--score with n-grams' [ "$(near scored <(scores fused))" -ge $((some - 2)) ]
run --input few --language-model pieces.ng --language-weight 0 --word-bonus 5 >long
check '--word-bonus makes outputs longer' [ "$(wc -w <long)" -gt "$(wc -w <beam)" ]
translate --ensemble "$model,$model" --input few --language-model pieces.ng --language-weight 0.5 >actual || fail '--ensemble'
same fused_texts actual
run --input few --language-model pieces.ng --search greedy >greedy || fail '--search greedy'
run --input few --language-model pieces.ng --search blockwise --proposer ngram >actual || fail '--search blockwise'
same greedy actual 'guesses under n-grams'

report

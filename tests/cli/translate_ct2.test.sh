#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# translate_ct2.test.sh TRANSLATE_CT2 CONVERT_SHIPPED SAMPLE: what CTranslate2's own loop gives, and errors.
program=$(realpath "$1") convert=$(realpath "$2") sample=$(realpath "$3")
# shellcheck source=tests/cli/program.sh
. "$(dirname "$(realpath "$0")")/program.sh"
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

head -n 12 "$sample" >in
"$convert" model
check 'no model' [ -s model/model.bin ]

for flags in '--search beam --n-best 3' '--search greedy --batch 5 --streaming' '--search greedy --precision own'; do
  # shellcheck disable=SC2086
  "$program" model --check $flags <in >out 2>err
  check "$flags: $(cat err)" grep -q '^12 of 12 as CTranslate2' err
done
check 'other than a line for each' [ "$(wc -l <out)" -eq 12 ]
"$program" model --search greedy --input in --precision int8 >rough
check 'int8 differs much' [ "$(diff out rough | grep -c '^<')" -le 2 ]
"$program" model --search sample --n-best 2 --seed 3 <in >one
"$program" model --search sample --n-best 2 --seed 3 --batch 1 <in >other
check 'samples depend on the batch' cmp -s one other
check 'not two samples a line' [ "$(wc -l <one)" -eq 24 ]

"$program" model --search greedy --input in --precision int8 --output written >said
check '--output' cmp -s rough written
check 'says nothing else' [ ! -s said ]

# An empty line stays one.
printf '\nDer Kaffee ist schon kalt.\n' | "$program" model >out
check 'the empty line' [ "$(head -n 1 out)" = '' ]
check 'the line behind it' grep -q . out


mkdir empty
for wrong in 'empty' 'model --search wide' 'model --n-best 9' 'model --type int7' 'model --output missing/file' 'model --search greedy --n-best 2'; do
  # shellcheck disable=SC2086
  "$program" $wrong <in >out 2>err
  check "$wrong: exit code" [ $? -eq 2 ]
  check "$wrong: says nothing" grep -q '^translate_ct2: ' err
done
rm model/sentencepiece.model
"$program" model <in >out 2>err
check 'without SentencePiece: exit code' [ $? -eq 2 ]
check 'without SentencePiece: the way out' grep -q -e --pieces err

report

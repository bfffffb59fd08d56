#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# semantic_parser.test.sh SEMANTIC_PARSER MODEL: the command line of semantic_parser, and the lists and counts that the
# folder MODEL says its searches must give.
# shellcheck disable=SC2086,SC2046  # options are split on purpose
program=$(realpath "$1") folder=$(realpath "$2") name=$(basename "$2")
# shellcheck source=tests/cli/semantic_parser.sh
. "$(dirname "$(realpath "$0")")/semantic_parser.sh"

# ---- a model of zeros, but for the bias of <E> -------------------------------------------------------------------------------

# words SIZE: a list of so many
words() { seq -s ', ' -f '"w%g"' "$1"; }
tensor() { printf '"%s": {"offset": %d, "shape": %s}' "$@"; }
mkdir tiny empty
{
  printf '{"rnn_size": 1, "dec_seq_length": 3, "src_vocab": [%s], "tgt_vocab": [%s],\n"tensors": {' "$(words 4)" "$(words 5)"
  for side in encoder decoder; do
    tensor $side.embedding.weight 0 "[$([ $side = encoder ] && echo 4 || echo 5), 1]"
    for layer in i2h h2h; do
      tensor ", $side.lstm.$layer.weight" 0 '[4, 1]' | sed 's/", /, "/'
      tensor ", $side.lstm.$layer.bias" 0 '[4]' | sed 's/", /, "/'
    done
    printf ',\n'
  done
  tensor attention.linear_att.weight 0 '[1, 2]' && printf ', '
  tensor attention.linear_att.bias 0 '[1]' && printf ', '
  tensor attention.linear_out.weight 0 '[5, 1]' && printf ',\n'
  tensor attention.linear_out.bias 32 '[5]' && printf '},\n'
  printf '"test": [{"src": [3, 2], "ref": []}, {"src": [], "ref": [0]}, {"src": [0], "ref": [4]}]}\n'
} >tiny/manifest.json
zeros() { head -c "$1" /dev/zero; }
{ zeros 36 && printf '\0\0\200\77' && zeros 12; } >tiny/weights.f32 # 1.0

for schedule in batched streaming fifo; do
  run tiny --search greedy --schedule $schedule
  check "greedy $schedule ends at once" [ "$(paste -s -d ' ' lists)" = '[[]] [[]] [[]]' ]
  check "greedy $schedule: counts" [ "$(stat sentences) $(stat steps) $(stat expansions) $(stat rows)" = '3 1 3 3' ]
done
check 'accuracy' [ "$(stat accuracy) $(stat oracle_accuracy)" = '0.3333333333333333 0.3333333333333333' ]
check 'stats is one object, an entry a line' [ "$(head -n 1 stats)$(tail -n 1 stats)$(wc -l <stats)" = '{}12' ]
run tiny --search fixed --width 2 # <E>, then <S> <E>
check 'fixed: lists' [ "$(paste -s -d ' ' lists)" = '[[],[0]] [[],[0]] [[],[0]]' ]
check 'fixed: oracle' [ "$(stat oracle_accuracy)" = 0.6666666666666666 ]
"$program" --model tiny --search fixed --width 2 >out 2>err
check 'standard output' [ $? -eq 0 -a ! -s err ]
same lists out
# All the same, but <E> is rare: 4 tokens, of which the last is dropped.
{ zeros 36 && printf '\0\0\200\277' && zeros 12; } >weights && mv weights tiny/weights.f32 # -1.0
for search in greedy 'variable --width 3' 'fixed --width 1'; do
  run tiny --search $search --schedule batched
  check "$search stops at the maximum length" [ "$(paste -s -d ' ' lists)" = '[[0,0,0]] [[0,0,0]] [[0,0,0]]' ]
  check "$search takes one step more" [ "$(stat steps)" -eq 4 ]
done
run tiny --search greedy --schedule batched --size 2
check '--size' [ "$(stat steps)" -eq 8 ]
run tiny --search greedy --schedule fifo --max-rows 2
check '--max-rows, fifo' [ "$(stat steps)" -eq 8 ]
run tiny --search greedy --schedule streaming --max-rows 2
check '--max-rows, streaming' [ "$(stat steps)" -eq 8 ]

# ---- refused -----------------------------------------------------------------------------------------------------------------

refused '--model DIR is required'
refused '--frobnicate' --model tiny --frobnicate
refused "--search: 'beam' is not one of fixed, greedy, variable" --model tiny --search beam
refused "--schedule: 'lifo' is not one of batched, fifo, streaming" --model tiny --schedule lifo
for flag in --width --max-per-parent --size --max-rows; do
  for value in 0 -1 many; do refused "$flag: .*$value" --model tiny $flag $value; done
done
for value in 0 -1 nan many; do
  refused "--absolute-threshold: '$value' is not a number > 0" --model tiny --absolute-threshold $value
done
refused 'absent/manifest.json: cannot be opened' --model absent
refused 'empty/manifest.json: cannot be opened' --model empty
cp tiny/manifest.json empty/
refused 'empty/weights.f32: cannot be opened' --model empty
zeros 51 >empty/weights.f32
refused 'empty/weights.f32: has 51 bytes, no multiple of 4' --model empty
zeros 48 >empty/weights.f32
refused 'manifest.json: tensors.attention.linear_out.bias.offset = 32: the tensor has 20 bytes, .* only 48' --model empty
zeros 52 >empty/weights.f32
# broken FROM TO PATTERN: an edit of the manifest
broken() {
  sed "s/$1/$2/" tiny/manifest.json >empty/manifest.json
  refused "empty/manifest.json: $3" --model empty --output unborn
}
broken '"rnn_size": 1' '"rnn_size": 2' 'tensors.encoder.embedding.weight.shape = \[4,1\]: must be \[4,2\]'
broken '"rnn_size": 1' '"rnn_size": -5' 'rnn_size = -5: must be'
broken '"dec_seq_length": 3, ' '' 'dec_seq_length is missing'
broken '"src": \[3, 2\]' '"src": [3, 4]' 'test\[0\].src\[1\] = 4: must be'
broken '}]}' '' 'not JSON, from byte '
check 'a file was made before the folder was read' [ ! -e unborn ]
refused 'absent/out: cannot be written' --model tiny --output absent/out
refused 'absent/stats: cannot be written' --model tiny --stats absent/stats

check '--help fails' "$program" --help >help
for flag in --model --search --schedule --width --absolute-threshold --max-per-parent --size --max-rows --output --stats; do
  check "--help names $flag" grep -q -E -- "^  $flag [A-Z]" help
done
check '--help shows what the parser thinks' [ "$(grep -c -E 'value in|\{|UINT|FLOAT|TEXT' help)" -eq 0 ]
check '--help is too wide' [ "$(awk 'length > 120' help)" = '' ]
check '--version' grep -q -E '^semantic_parser \(sluice [0-9]+\.[0-9]+\.[0-9]+\)$' <("$program" --version)

# ---- the model of the example -------------------------------------------------------------------------------------------------

# cost KEY: "STEPS EXPANSIONS" of the manifest
cost() { sed -n "s/^\"cost_$1\":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2/p" <(tr -d ' ' <"$folder/manifest.json"); }

paper "$(cost greedy)" "$(cost fixed)" "$(cost var_batch)" "$(cost var_stream)" "$(cost var_fifo)"
better() { awk "BEGIN { exit !($(stat accuracy) > 0.3 && $(stat oracle_accuracy) > $(stat accuracy)) }"; }
check 'some are right, and more are in the lists' better
counts $(cost var_stream_20) --max-rows 20
counts $(cost var_fifo_20) --max-rows 20 --schedule fifo
counts $(cost var_stream_37) --max-rows 37
counts $(cost narrow_fifo_50) --width 5 --absolute-threshold 2.5 --max-per-parent 2 --schedule fifo --max-rows 50
expected out_narrow >narrow
same narrow lists
limits

report

# SPDX-License-Identifier: Apache-2.0
# What the tests of semantic_parser's command line share; $program is the program.
# shellcheck shell=bash disable=SC2086,SC2154  # options are split on purpose; program is the caller's
# shellcheck source=tests/cli/program.sh
. "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/program.sh"

# run FOLDER ARGUMENTS...: writes the files lists and stats.
run() { "$program" --model "$@" --output lists --stats stats 2>err || fail "semantic_parser --model $*: $(cat err)"; }
stat() { sed -n "s/^  \"$1\": \([0-9.e+-]*\),*$/\1/p" stats; } # stat KEY: of the file stats

# expected KEY: that list of the manifest, a sentence a line
expected() {
  tr -d ' \n' <"$folder/manifest.json" | grep -o "\"$1\":[][0-9,]*" |
    sed 's/^[^[]*\[//; s/\],*$//; s/\]\],\[\[/]]\n[[/g'
}
best() { sed 's/\].*/]]/' "$1"; }
# counts STEPS EXPANSIONS OPTION...: what they cost; the lists stay
counts() {
  local steps=$1 expansions=$2
  shift 2
  run "$folder" "$@"
  check "$name $*: $(stat steps) steps, not $steps" [ "$(stat steps)" -eq "$steps" ]
  check "$name $*: $(stat expansions) expansions, not $expansions" [ "$(stat expansions)" -eq "$expansions" ]
}

# paper GREEDY FIXED VAR-BATCH VAR-STREAM FIFO, each 'STEPS EXPANSIONS': by the lists of $folder, which is called $name
paper() {
  for key in greedy fixed var_batch var_stream var_fifo; do expected out_$key >$key; done
  counts $1 --search greedy --schedule batched
  same greedy lists
  counts $2 --search fixed --schedule batched
  same fixed lists
  counts $3 --search variable --schedule batched
  same var_stream lists # theirs is filled up with copies
  check "$name: VAR-BATCH, best" cmp -s <(best lists) <(best var_batch)
  counts $4 # the defaults
  same var_stream lists
  counts $5 --schedule fifo
  same var_fifo lists
}

# limits: what a schedule must not change, a beam of one, and outputs that are cut; after paper
limits() {
  run "$folder" --absolute-threshold 20 --max-per-parent 10
  mv lists streaming
  for way in '--schedule fifo --max-rows 11' '--schedule batched --size 7' '--schedule batched --size 1000'; do
    run "$folder" --absolute-threshold 20 --max-per-parent 10 $way
    same streaming lists
  done
  # A beam of one is greedy, whatever else is asked.
  run "$folder" --width 1
  same greedy lists
  # Cut after five tokens.
  mkdir short
  sed 's/"dec_seq_length": *[0-9]*/"dec_seq_length": 5/' "$folder/manifest.json" >short/manifest.json
  ln -s "$folder/weights.f32" short/
  run short --search greedy
  sed -E 's/^(\[\[[0-9]+(,[0-9]+){0,4}).*/\1]]/' greedy >five
  same five lists
}

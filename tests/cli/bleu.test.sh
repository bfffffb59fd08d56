#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bleu.test.sh BLEU: the command line of bleu.
# shellcheck disable=SC2034,SC2154  # what program.sh reads and sets
program=$(realpath "$1")
# shellcheck source=tests/cli/program.sh
. "$(dirname "$(realpath "$0")")/program.sh"

# rejects PATTERN INPUT ARGUMENTS...: as refused, with that input.
rejects() {
  input=$2
  refused "$1" "${@:3}"
}
# prints PATTERN INPUT ARGUMENTS...
prints() {
  local pattern=$1 input=$2
  shift 2
  if run "$@" >out 2>err <"$input" && [ ! -s err ] && grep -q -E -- "$pattern" out; then pass
  else fail "bleu $* <$input: $(cat out err)"; fi
}

printf 'The cat is on the mat.\nA dog ran home.\n' >ref
printf 'The cat sat on the mat.\nA dog ran.\n' >hyp
printf 'One line.\n' >one
printf 'fine\nGr\374n\n' >latin1
: >nothing

prints '^BLEU 100\.00  precisions 100\.0/100\.0/100\.0/100\.0  brevity penalty 1\.000  ratio 1\.000 \(12/12 words\)$' ref ref
prints '^95 % interval 100\.00 \.\. 100\.00  \(2 sentences, 1000 resamples\)$' ref ref
# 10/11, 6/9, 3/7, 1/5; 11 words against 12.
prints '^BLEU 43\.59  precisions 90\.9/66\.7/42\.9/20\.0  brevity penalty 0\.913  ratio 0\.917 \(11/12 words\)$' hyp ref
prints '"sentences": 2' hyp ref --json --resamples 10 --seed 7
prints '^against ref: 100\.00  difference -56\.41  95 % interval .* p 0\.' hyp ref --against ref
prints '"difference": 0\.0' hyp ref --against hyp --json
prints '--against' hyp --help

rejects 'REF' hyp
rejects 'absent: cannot be opened' hyp absent
rejects 'absent: cannot be opened' hyp ref --against absent
rejects 'is a directory' hyp .
rejects 'standard input has 1 lines, ref has 2' one ref
rejects 'one has 1 lines, ref has 2' hyp ref --against one
rejects 'nothing: is empty' nothing nothing
rejects 'standard input:2: not valid UTF-8' latin1 ref
rejects 'latin1:2: not valid UTF-8' hyp latin1
rejects 'latin1:2: not valid UTF-8' hyp ref --against latin1
rejects '--resamples' hyp ref --resamples 0
rejects '--resamples' hyp ref --resamples many
rejects '--seed' hyp ref --seed -1
rejects '--frobnicate' hyp ref --frobnicate
rejects 'stray' hyp ref stray

report

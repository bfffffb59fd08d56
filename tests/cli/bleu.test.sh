#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bleu.test.sh BLEU: the command line of bleu.
set -u
export LC_ALL=C

bleu=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

passed=0 failed=0
pass() { passed=$((passed + 1)); }
fail() { failed=$((failed + 1)); printf 'FAILED: %s\n' "$*"; }
# refused PATTERN INPUT ARGUMENTS...: exit code 2, one line on standard error that matches, nothing on standard output.
refused() {
  local pattern=$1 input=$2 code
  shift 2
  "$bleu" "$@" >out 2>err <"$input"
  code=$?
  if [ $code -eq 2 ] && [ "$(wc -l <err)" -eq 1 ] && grep -q -E -- "^bleu: .*$pattern" err && [ ! -s out ]; then pass
  else fail "bleu $* <$input: exit code $code: $(cat err)"; fi
}
# prints PATTERN INPUT ARGUMENTS...
prints() {
  local pattern=$1 input=$2
  shift 2
  if "$bleu" "$@" >out 2>err <"$input" && [ ! -s err ] && grep -q -E -- "$pattern" out; then pass
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

refused 'REF' hyp
refused 'absent: cannot be opened' hyp absent
refused 'absent: cannot be opened' hyp ref --against absent
refused 'is a directory' hyp .
refused 'standard input has 1 lines, ref has 2' one ref
refused 'one has 1 lines, ref has 2' hyp ref --against one
refused 'nothing: is empty' nothing nothing
refused 'standard input:2: not valid UTF-8' latin1 ref
refused 'latin1:2: not valid UTF-8' hyp latin1
refused 'latin1:2: not valid UTF-8' hyp ref --against latin1
refused '--resamples' hyp ref --resamples 0
refused '--resamples' hyp ref --resamples many
refused '--seed' hyp ref --seed -1
refused '--frobnicate' hyp ref --frobnicate
refused 'stray' hyp ref stray

printf '%d passed, %d failed\n' $passed $failed
[ $failed -eq 0 ]

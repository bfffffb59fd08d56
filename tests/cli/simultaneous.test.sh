#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# simultaneous.test.sh SIMULTANEOUS TRANSLATE MODEL SAMPLE: words are written before their line has ended, and none is taken back.
# shellcheck disable=SC2016  # awk
program=$(realpath "$1") translate=$(realpath "$2") model=$(realpath "$3") sample=$(realpath "$4")
# shellcheck source=tests/cli/program.sh
. "$(dirname "$(realpath "$0")")/program.sh"
always=(--model "$model")

head -n 12 "$sample" >in
head -n 12 "${sample%.de}.en" >reference

# Who waits for the end translates as translate does; so does wait-k with a k that no line reaches.
run --policy whole --beam 5 <in >out
check 'exit code' [ $? -eq 0 ]
"$translate" --model "$model" --width 5 --input in >expected
same out expected 'whole'
run --policy wait-k --k 1000 --beam 5 in >out
same out expected 'wait-k that waits for ever'
run --policy local-agreement --n 1000 --beam 5 in >out
same out expected 'outputs that never are enough'

# What is written of a line is what its steps have written, some of it before the end.
for policy in 'local-agreement --n 2' 'wait-k --k 2' 'hold --n 3'; do
  # shellcheck disable=SC2086  # name and option
  run --policy $policy <in >out
  # shellcheck disable=SC2086
  run --policy $policy --steps <in >steps
  awk -F '|' '{ n = $1 + 0; if (n == 1 && NR > 1) print ""; printf "%s", substr($0, index($0, "|") + 1) } END { print "" }' \
    steps >joined
  same out joined "$policy, steps"
  check "$policy: a step for each word" [ "$(wc -l <steps)" -eq "$(wc -w <in)" ]
  check "$policy: nothing written early" awk -F '|' '
    $1 + 0 == 1 { last = ""; } last != "" { early = 1 } { last = $2 } END { exit !early }' steps
  # The same all at once, in any batch.
  for size in 1 5; do
    # shellcheck disable=SC2086
    run in --policy $policy --report reference --output texts --size $size >figures
    same out texts "$policy, $size at once"
  done
  check "$policy: the report" grep -q -E '^ *-?[0-9.]+ +-?[0-9.]+ +[0-9.]+ +-?[0-9.]+ +[0-9.]+ +[0-9.]+$' figures
done
run in --policy whole --report reference >out
says '^12 sentences, 0 of them empty; decoded 12 times'
check 'whole reads everything first' awk 'NR == 3 { exit !($3 == 1 && $1 == $2 && $1 == $4) }' out
run in --policy whole --report reference --first 5 >out
says '^5 sentences'

# Words are written while more may come.
mkfifo pipe
run --policy wait-k --k 1 <pipe >out &
exec 3>pipe
printf 'Ich habe heute ' >&3
for _ in $(seq 300); do [ -s out ] && break; sleep 0.1; done
check 'nothing before the end of the line' [ -s out ]
cp out early
printf 'meinen Bruder gesehen.\n' >&3
exec 3>&-
wait
lines 1 out
check 'what was written was taken back' [ "$(head -c "$(wc -c <early)" out)" = "$(cat early)" ]

# Odd lines.
printf 'Danke.  \n\n  Guten   Tag.\r\nJa' | run >out
lines 4 out
check 'an empty line stays empty' [ -z "$(line out 2)" ]
check 'the last line counts without its end' [ -n "$(line out 4)" ]
printf 'Guten Tag.\nGr\374n ist es.\nGuten Tag.\n' | run >out 2>err
check 'invalid UTF-8: exit code' [ $? -eq 1 ]
check 'invalid UTF-8: message' grep -q -F 'simultaneous: line 2: not valid UTF-8' err
lines 3 out
check 'invalid UTF-8: the others' [ "$(line out 1)" = "$(line out 3)" ]

refused '--policy' --policy never
refused '--k' --k 0
refused '--n' --n none
refused '--n: has no effect with --policy wait-k' --policy wait-k --n 5
refused '--k: has no effect with --policy hold' --policy hold --k 5
refused '--first' in --report reference --first 0
refused 'cannot be written' in --report reference --output nowhere/texts
refused '--width' --width 0
refused 'frobnicate' --frobnicate
refused 'nowhere' nowhere
refused 'INPUT' --report reference
refused '--report' --output texts
refused '11 lines for 12' in --report <(head -n 11 reference)
"$program" "${always[@]}" in >/dev/full 2>err
check 'a full disk: exit code' [ $? -eq 1 ]
check 'a full disk: message' grep -q -F 'standard output cannot be written' err
always=()
refused 'nowhere' --model nowhere
report

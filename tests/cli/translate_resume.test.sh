#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# translate_resume.test.sh TRANSLATE MODEL SAMPLE: --resume after kill -9 and after lost bytes, --shard, gzip and zstd.
# shellcheck disable=SC2154  # translate.sh sets the rest
# shellcheck source=tests/cli/translate.sh
. "$(dirname "$(realpath "$0")")/translate.sh"
always+=(--search greedy --batch 4)

cat "$sample" "$sample" "$sample" >text
# known JOURNAL: how many lines are done, written or waiting for their turn. Records are lines; so are the translations.
known() {
  awk '$2 == "written" { written = $3 } $2 == "ahead" { ahead[$3] = 1 }
    END { for (line in ahead) more += line + 0 > written; print written + more }' "$1" 2>/dev/null || echo 0
}
size() { if [ -e "$1" ]; then wc -c <"$1"; else echo 0; fi; }
begin() { "$program" "${always[@]}" "$@" 2>err & process=$!; } # run, in the background
# kill_after LINES JOURNAL: kills it as soon as it has done so many, unless it has ended before.
kill_after() {
  while kill -0 $process 2>/dev/null && [ "$(known "$2")" -lt "$1" ]; do sleep 0.01; done
  kill -9 $process 2>/dev/null
  wait $process 2>/dev/null
}
is_beginning() { cmp -s -n "$(size "$1")" "$1" "$2"; }
check 'a plain run fails' run --input text --output whole

# ---- killed at ten random moments ---------------------------------------------------------------------------------------

RANDOM=17
killed=0 tries=0
while [ $killed -lt 10 ] && [ $tries -lt 60 ]; do
  tries=$((tries + 1))
  was=$(size made.journal)
  begin --input text --output made --resume
  # Once it has done something, at any moment.
  while kill -0 $process 2>/dev/null && [ "$(size made.journal)" -le $((was + 2000)) ]; do sleep 0.01; done
  sleep 0.0$((RANDOM % 60 + 10))
  if kill -9 $process 2>/dev/null; then
    killed=$((killed + 1))
    wait $process 2>/dev/null
    check "what is there after kill $killed is no beginning" is_beginning made whole
  else # it was faster: from the beginning again
    wait $process 2>/dev/null
    rm -f made made.journal
  fi
done
check "it was killed $killed times only, of $tries" [ $killed -ge 5 ]
before=$(known made.journal)
check "$before lines after $killed kills" [ "$before" -gt 0 ]
check 'the run that goes on fails' run --input text --output made --resume --stats stats
same made whole 'killed and resumed'
check "$before lines were done, $(stat resumed) not done again" [ "$(stat resumed)" -eq "$before" ]
check 'all lines are done once' [ $(($(stat resumed) + $(stat sentences))) -eq "$(wc -l <text)" ]
check 'a finished run is finished' run --input text --output made --resume --stats stats
check 'nothing is done again' [ "$(stat sentences)" -eq 0 ]
same made whole 'finished, again'

# ---- lost bytes ---------------------------------------------------------------------------------------------------------

# A machine that loses its power: output and journal end anywhere, and neither knows of the other.
head -n 60 text >short
check 'a plain run of the short text fails' run --input short --output expected
begin --input short --output out60 --resume
kill_after 30 out60.journal
for cut in 'output 40' 'journal 17' 'journal 300' 'both 25' 'more'; do
  cp out60 lost && cp out60.journal lost.journal
  by=${cut#* }
  case $cut in output* | both*) truncate -s -"$(($(size lost) < by ? $(size lost) : by))" lost ;; esac
  case $cut in journal* | both*) truncate -s -"$by" lost.journal ;; esac
  [ "$cut" != more ] || { printf 'half a li' >>lost && printf '0123456789abcdef written 59 99' >>lost.journal; }
  check "resuming fails after a loss of $cut" run --input short --output lost --resume
  same lost expected "a loss of $cut"
done

# ---- refused ------------------------------------------------------------------------------------------------------------

refused 'made.journal: is of another run: --min-length was not there and is .2.; remove it to begin anew' \
  --input text --output made --resume --min-length 2
sed '3s/.*/Guten Tag./' text >changed
refused 'made.journal: is of another run: input was .180 lines, [0-9a-f]*. and is .180 lines' \
  --input changed --output made --resume
cp -r "$model" other && printf x >>other/heads.safetensors
always=(--search greedy)
refused 'made.journal: is of another run: model \(heads.safetensors\) was' --model other --input text --output made --resume
check 'speed may change' run --model "$model" --input text --output made --resume --batch 9 --threads 2 --schedule streaming
refused 'whole: is there, without the journal of a run with --resume; remove it' --input text --output whole --resume
cp whole edited && cp made.journal edited.journal && sed -i 's/the/teh/' edited
refused 'edited: is not what its journal says was finished; remove edited.journal' --input text --output edited --resume
cp whole strange && echo hello >strange.journal
refused 'strange.journal: is no journal of translate' --input text --output strange --resume
refused '--resume needs --input' --resume --output x
refused '--resume needs --output' --resume --input text
refused '/dev/null: --resume needs a file' --resume --input text --output /dev/null
refused '/dev/null: --resume needs a file, which can be read again' --resume --input /dev/null --output x
always=(--model "$model")
refused '--resume does not go with --explain without --block' --search blockwise --explain --input text --output x --resume
always+=(--search greedy --batch 4)
check 'something refused has changed what is there' cmp -s made whole

# ---- messages, codes, hypotheses ------------------------------------------------------------------------------------------

printf '{}\n{"all": 1}\n{}\n' >wishes
head -n 3 text >three
list=(--search beam --width 2 --n-best 2 --constraints wishes --input three)
always=(--model "$model")
run "${list[@]}" >listed 2>said
run "${list[@]}" --output list.out --resume 2>err
check 'the code of a faulty line' [ $? -eq 2 ]
same err said
same list.out listed
run "${list[@]}" --output list.out --resume 2>err
check 'the code stays when nothing is left' [ $? -eq 2 ]
always+=(--search greedy --batch 4)

# ---- shards -------------------------------------------------------------------------------------------------------------

for n in 1 3; do
  : >joined
  for ((i = 0; i < n; ++i)); do
    check "shard $i/$n" run --input short --output part --shard $i/$n
    cat part >>joined
  done
  same joined expected "$n shards"
done
head -n 2 text >two
head -n 1 text >one
for i in 0 1 2; do run --input one --shard $i/3; done >joined
head -n 1 expected >expected1
same joined expected1 'more shards than lines'
sampled=(--search sample --n-best 2)
always=(--model "$model")
run "${sampled[@]}" --input two >sampled
for i in 0 1; do run "${sampled[@]}" --input two --shard $i/2; done >joined
same joined sampled 'samples and indices of shards'
always+=(--search greedy --batch 4)
for bad in 3/3 -1/3 1 1/0 a/b 1/3x; do refused "--shard: '$bad' is not I/N with I from 0 to N - 1" --input two --shard=$bad; done
refused '--shard needs --input' --shard 0/2

# ---- compressed files -----------------------------------------------------------------------------------------------------

if run --input short --output short.gz 2>err; then
  if command -v gzip >/dev/null; then
    gzip -dc short.gz >plain
    same plain expected 'gzip'
    gzip -c short >short.de.gz
    run --input short.de.gz >plain
    same plain expected 'gzip in'
    { head -n 20 short | gzip -c && tail -n +21 short | gzip -c; } >members # by its bytes
    for i in 0 1 2; do run --input members --shard $i/3; done >plain
    same plain expected 'members, without a name, in shards'
    head -c 700 short.de.gz >cut.gz
    refused 'cut.gz: ends too early: it was cut off' --input cut.gz
    { head -c 300 short.de.gz && head -c 400 "$model/spm.model"; } >broken.gz
    refused 'broken.gz: (is damaged|ends too early)' --input broken.gz
  fi
  for ending in gz zst; do
    run --input short --output "again.$ending" 2>err || continue
    # What was translated, once more: reading what we wrote.
    run --input "again.$ending" >twice
    run --input expected >twice.plain
    same twice twice.plain "$ending out and in"
    begin --input short --output "killed.$ending" --resume
    kill_after 20 "killed.$ending.journal"
    check "resuming $ending fails" run --input short --output "killed.$ending" --resume --stats stats
    check "$ending: $(stat resumed) lines were kept" [ "$(stat resumed)" -ge 20 ]
    run --input short --output "whole.$ending"
    same "killed.$ending" "whole.$ending" "compressed bytes of $ending"
    : >nothing
    run --input nothing --output "nothing.$ending"
    run --input "nothing.$ending" >none
    same none nothing "no lines as $ending"
    cp text "text.$ending"
    refused "text.$ending: is no (gzip|zstd) file, though its name says so" --input "text.$ending"
  done
else
  check 'gzip is refused without saying why' grep -q 'short.gz: this program was built without zlib' err
fi

# ---- progress -----------------------------------------------------------------------------------------------------------

run --input two --progress >none 2>err
check "progress: $(cat err)" grep -q -E '2/2 sentences, [0-9.]+/s, in 0:0[0-9]' err

report

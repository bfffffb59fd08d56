#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# train_clusters.test.sh TRAIN_CLUSTERS MODEL SAMPLE: the command line of train_clusters.
# shellcheck disable=SC2016,SC2034,SC2086,SC2154  # options are split on purpose; what program.sh reads and sets
program=$(realpath "$1") model=$(realpath "$2") sample=$(realpath "$3")
# shellcheck source=tests/cli/program.sh
. "$(dirname "$(realpath "$0")")/program.sh"
unborn=(new.bin new.bin.part)

# trains OUTPUT ARGUMENTS...: exit code 0, a report in the file out.
trains() {
  local output=$1
  shift
  if "$program" --model "$model" --input few --output "$output" "$@" >out 2>err && [ ! -s err ] && [ -s "$output" ] &&
    [ ! -e "$output.part" ]; then pass
  else fail "train_clusters $*: $(cat out err)"; fi
}

awk 'NR % 6 == 5 && NR < 59' "$sample" >few # short ones
sentences=$(wc -l <few)
printf 'Guten Tag.\nGr\374n\n' >latin1
printf ' \n\n' >blank
printf 'this is no model\n' >broken.safetensors
mkdir empty half

# ---- refused before any work ------------------------------------------------------------------------------------------

good="--model $model --input few --output new.bin"
refused '--model is required' --output new.bin
refused '--output is required' --model "$model"
refused '--frobnicate' $good --frobnicate
refused 'stray' $good stray
for flag in --model --input --output --direction --clusters --likely --search --width --samples --points --iterations \
  --seed --k-means; do refused "$flag" $flag; done
for flag in --clusters --likely --samples --points; do
  for value in 0 -3 many 2.5 99999999999; do refused "$flag: '$value' is not a number from 1 to" $good $flag $value; done
done
for flag in --iterations --seed; do
  for value in -1 many 2.5 18446744073709551616; do refused "$flag: '$value' is not a number from 0" $good $flag $value; done
done
refused "--width: '0' is not a number from 1 to 10000" $good --search beam --width 0
refused '--width has no effect with --search greedy' $good --width 3
refused "--search: 'deepest' is not one of greedy, beam" $good --search deepest
refused "--k-means: 'mine' is not one of lloyd, faiss" $good --k-means mine

cp "$model/model.safetensors" half/
refused 'empty/model.safetensors: no such file' --model empty --input few --output new.bin
refused 'broken.safetensors' --model broken.safetensors --input few --output new.bin
refused 'half/spm.model: cannot be opened' --model half --input few --output new.bin
refused 'absent: cannot be opened' --model "$model" --input absent --output new.bin
refused 'empty: is a directory' --model "$model" --input empty --output new.bin
refused 'latin1:2: not valid UTF-8' --model "$model" --input latin1 --output new.bin
refused 'blank: has no sentences' --model "$model" --input blank --output new.bin
refused 'standard input: has no sentences' --model "$model" --output new.bin
refused 'empty: is a directory' --model "$model" --input few --output empty
refused 'nowhere/new.bin: cannot be written' --model "$model" --input few --output nowhere/new.bin
cp "$sample" text.bin
refused 'text.bin: clusters: this is not a file of clusters' --model "$model" --input few --output text.bin --append
same text.bin "$sample"

# ---- what it does -----------------------------------------------------------------------------------------------------

trains a.bin --clusters 9
says "^sentences: $sentences, 0 failed$"
says '^vectors: [1-9][0-9]*, [1-9][0-9]* kept$'
says '^mean squared distance of [0-9]+ vectors: [0-9.]+ [0-9. ]+$'
says '^clusters: 9, and 0 without vectors$'
says '^tokens of a cluster: [0-9.]+ \([0-9.]+ % of 8000\), at most [0-9]+ \([0-9.]+ %\)$'
says "^a.bin: $(wc -c <a.bin) bytes, 1 direction$"
vectors=$(sed -n 's/^vectors: \([0-9]*\),.*/\1/p' out)
trains b.bin --clusters 9
same a.bin b.bin
trains b.bin --clusters 9 --seed 2
differ a.bin b.bin
trains b.bin --clusters 9 --iterations 0
differ a.bin b.bin
trains b.bin --clusters 9 --likely 3
check '--likely 3 makes a larger file' [ "$(wc -c <b.bin)" -gt "$(wc -c <a.bin)" ]
trains b.bin --clusters 9 --points 2
says '^mean squared distance of 18 vectors: '
trains b.bin --clusters 9 --samples 20
says "^vectors: $vectors, 20 kept$"
trains b.bin --clusters 9 --search beam --width 3
check 'a beam sees more vectors' [ "$(sed -n 's/^vectors: \([0-9]*\),.*/\1/p' out)" -gt "$vectors" ]
trains b.bin --clusters 9 --search beam --width 1
same a.bin b.bin
check 'text from standard input' [ "$("$program" --model "$model" --output b.bin --clusters 9 <few | wc -l)" -eq 6 ]
same a.bin b.bin

trains b.bin --clusters 9 --direction en-de
differ a.bin b.bin
trains b.bin --clusters 9 --append
says 'b.bin: [0-9]+ bytes, 2 directions$'
trains b.bin --clusters 9 --append --direction en-de
says 'b.bin: [0-9]+ bytes, 2 directions$'
trains b.bin --clusters 9
same a.bin b.bin
trains c.bin --clusters 9 --append # a file that is not there yet
same a.bin c.bin

# A failure leaves the old file alone.
"$program" --model "$model" --input few --output a.bin --clusters 99999 >out 2>err
check 'too many clusters: exit code 2' [ $? -eq 2 ]
check "too many clusters: $(cat err)" grep -q '^train_clusters: .*clusters = 99999: is more than there are samples' err
same a.bin c.bin
# A sentence that is too long for the model fails alone.
{
  cat few
  for _ in $(seq 300); do printf 'Donnerstag und '; done
  echo
} >long
"$program" --model "$model" --input long --output b.bin --clusters 9 >out 2>err
check 'a sentence too long: exit code 1' [ $? -eq 1 ]
check "a sentence too long: $(cat err)" grep -q '^train_clusters: 1 sentences failed: ' err
same a.bin b.bin

if "$program" $good --clusters 9 --k-means faiss >out 2>err; then
  says '^clusters: [0-9], and [0-9] without vectors$'
  check 'something on standard error' [ ! -s err ]
else
  check "without Faiss: $(cat err)" grep -q '^train_clusters: --k-means: this program was built without Faiss' err
fi

check '--help' grep -q -- '--clusters N' <("$program" --help)
check '--version' grep -q '^train_clusters (sluice [0-9.]*)$' <("$program" --version)

report

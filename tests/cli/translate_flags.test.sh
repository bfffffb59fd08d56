#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# translate_flags.test.sh TRANSLATE MODEL SAMPLE: what translate refuses before any work, and its help.
# shellcheck disable=SC2016,SC2086,SC2094,SC2154  # options are split on purpose; translate.sh sets the rest
# shellcheck source=tests/cli/translate.sh
. "$(dirname "$(realpath "$0")")/translate.sh"

always=()
sed 's/.*/I think/' "$sample" >prefix
head -n 1 prefix >short
printf 'Guten Tag.\nGr\374n\n' >latin1
printf 'this is no model\n' >broken.safetensors
mkdir empty half
cp "$model/model.safetensors" half/

# ---- refused before any work ------------------------------------------------------------------------------------------

refused '--frobnicate' --frobnicate
refused 'stray' stray
for flag in --model --ensemble --input --output --search --n-best --mbr --min-length --max-length --preset --width \
  --absolute-threshold --relative-threshold --max-per-parent --length-penalty --temperature --top-k --top-p --seed \
  --no-repeat-ngram --repetition-penalty --forbid --bias --prefix --score --schedule --batch --window --encode-ahead \
  --refill-below --order --max-rows --drain-after --threads --stats --trace; do
  refused "$flag" $flag
done
for flag in --width --n-best --max-length --max-per-parent --top-k --no-repeat-ngram --batch --threads; do
  for value in 0 -3 many 2.5; do refused "$flag" $flag $value; done
done
for value in -1 many 2.5; do
  refused '--min-length' --min-length $value
  refused '--seed' --seed $value
done
refused '--seed' --seed 18446744073709551616
for flag in --length-penalty --absolute-threshold --relative-threshold --temperature --top-p --repetition-penalty; do
  for value in long nan inf; do refused "$flag" $flag $value; done
done
for flag in --absolute-threshold --relative-threshold --temperature --top-p --repetition-penalty; do
  for value in 0 -0.5; do refused "$flag" $flag $value; done
done
refused "--relative-threshold: '1' is not a number between 0 and 1" --relative-threshold 1
refused "--top-p: '1.5' is not a number in \(0, 1\]" --top-p 1.5
refused "--search: 'deepest' is not one of beam, best-first, blockwise, greedy, sample" --search deepest
refused "--preset: 'opennmt' is not one of ctranslate2, fairseq, huggingface, marian, sockeye, varstream" --preset opennmt
refused "--mbr: 'meteor' is not one of bleu, chrf" --mbr meteor
refused "--schedule: 'tomorrow' is not one of batched, streaming" --schedule tomorrow
refused "--order: 'newest' is not one of oldest_first, shortest_only" --schedule streaming --order newest
for value in -0.1 1.1 nan half; do refused "--refill-below: '$value'" --schedule streaming --refill-below $value; done
for flag in --window --encode-ahead --max-rows --drain-after; do
  for value in -1 many 2.5; do refused "$flag" --schedule streaming $flag $value; done
done
for flag in --search --preset --mbr --schedule; do # the numbers behind the names are nobody's business
  for value in 0 1; do refused "$flag: '$value' is not one of" $flag $value; done
done

# useless WITH OPTION...: refused with the arguments WITH, each on its own.
useless() {
  local with=$1 option
  shift
  for option; do refused "${option%% *} has no effect with $with" ${with/--score/--score prefix} $option; done
}
beam=('--preset marian' '--width 3' '--absolute-threshold 1' '--relative-threshold 0.1' '--max-per-parent 2')
sampling=('--temperature 2' '--top-k 3' '--top-p 0.5' '--seed 2' '--min-p 0.1' '--top-n-sigma 1' '--dry-multiplier 1')
useless '--search greedy' "${beam[@]}" "${sampling[@]}" '--n-best 1' '--length-penalty 1' '--mbr chrf'
useless '--search beam' "${sampling[@]}"
useless '--search sample' "${beam[@]}" '--length-penalty 1'
useless '--score' "${beam[@]}" "${sampling[@]}" '--n-best 2' '--mbr bleu' '--min-length 2' '--max-length 3' \
  '--prefix prefix' '--search greedy' '--search beam' '--no-repeat-ngram 3' '--repetition-penalty 2' '--forbid prefix' \
  '--bias prefix'
useless '--schedule batched' '--refill-below 1' '--order oldest_first' '--max-rows 9' '--drain-after 9'
refused "--samplers: there is no 'taste'" --search sample --samplers top_k,taste
refused "--samplers: 'top_k' comes twice" --search sample --samplers top_k,top_k
refused 'order = temperature: is a sampler that is on, but not in the order' --search sample --temperature 2 --samplers top_k
refused 'xtc.probability' --search sample --xtc-probability 2
refused 'dry.base' --search sample --dry-multiplier 1 --dry-base 0.5
for pair in '--dry-base 2|--dry-multiplier' '--dry-allowed-length 3|--dry-multiplier' \
  '--dry-penalty-last-n 9|--dry-multiplier' '--xtc-threshold 0.2|--xtc-probability' '--dynatemp-exp 2|--dynatemp-range' \
  '--mirostat-lr 0.2|--mirostat-ent' '--adaptive-decay 0.5|--adaptive-target' \
  '--repeat-last-n 9|--repeat-penalty, --frequency-penalty or --presence-penalty'; do
  option=${pair%%|*}
  refused "${option%% *} has no effect without ${pair#*|}" --search sample $option
done
refused '--xtc-probability has no effect with --xtc-threshold above 0.5' \
  --search sample --xtc-probability 0.5 --xtc-threshold 0.6
for option in '--branches 2' '--tree-nodes 3'; do
  refused "${option%% *} has no effect with --block 1" --search blockwise --block 1 $option
done
refused '--model has no effect with --ensemble' --model "$model" --ensemble "$model,second"
refused '--n-best 6 is more than --width 5' --n-best 6
refused '--n-best 6 is more than --width 5' --n-best 6 --mbr chrf
refused '--mbr has no effect with one candidate: --n-best must be 2 or more' --mbr chrf --n-best 1
refused '--mbr has no effect with one candidate: --n-best must be 2 or more' --mbr chrf --n-best 1 --search sample
refused '--mbr has no effect with one candidate: --width must be 2 or more' --mbr chrf --width 1
refused '--min-length 9 leaves no room for the end in --max-length 9' --min-length 9 --max-length 9

refused 'missing/model.safetensors: no such file' --model missing/model.safetensors
refused 'empty/model.safetensors: no such file' --model empty
refused 'half/spm.model' --model half
refused 'broken.safetensors' --model broken.safetensors
refused "'$model' must name two models or more" --ensemble "$model"
refused 'missing/model.safetensors: no such file' --ensemble "$model,missing/model.safetensors"
refused "foreign/model.safetensors: has another vocabulary than .*: piece [0-9]+ is '.*Hvnd', not '.*Hund'" \
  --ensemble "$model,foreign"
refused 'nowhere.txt: cannot be opened' --model "$model" --input nowhere.txt
refused 'empty: is a directory' --model "$model" --input empty
refused 'latin1:2: not valid UTF-8' --model "$model" --input latin1
for flag in --prefix --score --forbid --bias; do
  refused 'latin1:2: not valid UTF-8' --model "$model" --input "$sample" $flag latin1
  refused 'nowhere.txt: cannot be opened' --model "$model" --input "$sample" $flag nowhere.txt
done
printf '# names\n\n\t3\n' >unnamed
printf 'Ann\tnan\n' >unequal
printf 'Ann\tmuch\n' >unmeasured
refused 'unnamed:3: the phrase is empty' --model "$model" --input "$sample" --bias unnamed
refused "unequal:1: the boost of 'Ann' is no number of at most a million" --model "$model" --input "$sample" --bias unequal
refused "unmeasured:1: 'much' is not a number: phrase, tab, boost" --model "$model" --input "$sample" --bias unmeasured
refused '--bias-once has no effect without --bias' --bias-once
refused '--bias does not go with --search best-first' --search best-first --bias prefix
refused "short has 1 lines, .* has $count" --model "$model" --input "$sample" --prefix short
refused "short has 1 lines, .* has $count" --model "$model" --input "$sample" --score short
refused 'absent/out: cannot be written' --model "$model" --input "$sample" --output absent/out
refused "--trace: 'trace.txt' ends in neither .html nor .jsonl" --trace trace.txt
refused '--trace follows one decoder: --threads must be 1, not 2' --trace trace.html --threads 2
refused 'absent/trace.html: cannot be written' --model "$model" --input "$sample" --trace absent/trace.html
refused 'absent/stats: cannot be written' --model "$model" --input "$sample" --stats absent/stats
cp "$sample" copy
refused 'copy: is the input' --model "$model" --input copy --output copy
same copy "$sample"
refused 'latin1:2' --model "$model" --input latin1 --output unborn
check 'an output was made before any work' [ ! -e unborn ]

# ---- help ---------------------------------------------------------------------------------------------------------------

check '--help fails' translate --help >help
for flag in "${beam[@]}" "${sampling[@]}" --ensemble --mbr --min-length --no-repeat-ngram --repetition-penalty --forbid --bias; do
  check "--help names ${flag%% *}" grep -q -E -- "^  ${flag%% *} [A-Z]" help
done
check '--help shows what the parser thinks' [ "$(grep -c -E 'value in|\{|UINT|FLOAT|TEXT' help)" -eq 0 ]
check '--help is too wide' [ "$(awk 'length > 120' help)" = '' ]
check '--version fails' translate --version >version
check '--version' grep -q -E '^translate \(sluice [0-9]+\.[0-9]+\.[0-9]+\)$' version

report

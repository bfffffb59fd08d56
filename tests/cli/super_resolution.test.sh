#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# super_resolution.test.sh SUPER_RESOLUTION MODEL: the command line of super_resolution.
# shellcheck disable=SC2016,SC2034,SC2086,SC2154  # options are split on purpose; what program.sh reads and sets
program=$(realpath "$1") model=$(realpath "$2")
# shellcheck source=tests/cli/program.sh
. "$(dirname "$(realpath "$0")")/program.sh"
unborn=(new)

# enlarges ARGUMENTS...: exit code 0, a table in the file out.
enlarges() {
  if "$program" --model "$model" "$@" >out 2>err && [ ! -s err ]; then pass
  else fail "super_resolution $*: $(cat out err)"; fi
}
# column BLOCK RULE N: a number of the table in the file out.
column() { awk -v block="$1" -v rule="$2" -v n="$3" '$1 == block { sub(/distance /, "distance-"); if ($2 == rule) print $n }' out; }
# pgm FILE WIDTH HEIGHT BYTES: an image of zeros.
pgm() { { printf 'P5\n%d %d\n255\n' "$2" "$3"; head -c "$4" /dev/zero; } >"$1"; }

# ---- refused before any work ------------------------------------------------------------------------------------------

refused '--frobnicate' --frobnicate
refused 'stray' stray
for flag in --model --input --images --block --epsilon --batch --output; do refused "$flag" $flag; done
for flag in --images --block --batch; do
  for value in 0 -3 many 2.5 99999999999; do refused "$flag: '$value' is not a number from 1 to" $flag $value; done
done
for value in -1 256 many 2.5; do refused "--epsilon: '$value' is not a number from 0 to 255" --epsilon $value; done
refused "--block: '0' is not a number from 1" --block 4,0
refused '--block: 100: the heads of this model allow blocks of at most [0-9]+' --model "$model" --block 2,100
refused '--images: 1000: .*samples.pgm holds 32' --model "$model" --images 1000 --output new

mkdir empty damaged
refused 'empty/model.safetensors: no such file' --model empty
printf 'this is no model\n' >damaged/model.safetensors
refused 'damaged/model.safetensors: has 17 bytes|damaged/model.safetensors: ' --model damaged
cp "$model/model.safetensors" damaged/
printf 'these are no heads\n' >damaged/heads.safetensors
refused 'damaged/heads.safetensors: ' --model damaged
rm damaged/heads.safetensors
refused '--block: 2: the heads of this model allow blocks of at most 1' --model damaged --block 1,2
cp "$model/heads.safetensors" damaged/model.safetensors
refused "damaged/model.safetensors: .*metadata name no 'heads'" --model damaged
translation=$model/../../translate/model/model.safetensors
if [ -e "$translation" ]; then
  cp "$translation" damaged/model.safetensors
  refused 'damaged/model.safetensors: is no model of images' --model damaged
fi

with() { refused "$1" --model "$model" --input "$2" --output new; }
with 'absent: cannot be opened' absent
with 'empty: is a directory' empty
printf 'P2\n4 4\n255\n' >bad && with 'bad: is no binary PGM file' bad
printf '' >bad && with 'bad: is no binary PGM file' bad
printf 'P5\n4\n' >bad && with 'bad: its header must be: P5, width, height, 255' bad
pgm bad 5 5 25 && with 'bad: is 5 pixels wide, must be 4 \(images to enlarge\) or 16 \(originals\)' bad
pgm bad 4 6 24 && with 'bad: is 6 pixels high, must be a multiple of its width, 4' bad
pgm bad 4 0 0 && with 'bad: is 0 pixels high' bad
pgm bad 4 -4 0 && with 'bad: is -4 pixels high' bad
pgm bad 16 16 255 && with 'bad: holds 255 pixels, its header says 16 x 16' bad
pgm bad 16 16 257 && with 'bad: holds 257 pixels, its header says 16 x 16' bad
pgm bad 16 922337203685477568 256 && with 'bad: holds 256 pixels' bad
printf 'P5\n4 4\n15\n0123456789abcdef' >bad && with 'bad: white is 15, must be 255' bad
touch file
refused 'file: cannot be made a folder' --model "$model" --images 1 --output file
refused 'file/sub: cannot be made a folder' --model "$model" --images 1 --output file/sub

# ---- what it does -----------------------------------------------------------------------------------------------------

enlarges --images 3 --block 1,2,5,8 --output a
says '^images: 3, in batches of 64'
says '^interpolated: PSNR [0-9]+\.[0-9]+$'
says '^greedy: 256 calls, [0-9.]+ s, PSNR [0-9]+\.[0-9]+$'
check 'a table of four blocks' [ "$(grep -c '^ *[0-9]* *exact' out)" -eq 4 ]
check 'enlarged images are like the originals' [ "$(sed -n 's/^greedy.*PSNR \([0-9]*\)\..*/\1/p' out)" -ge 23 ]
for block in 1 2 5 8; do
  same a/greedy.pgm a/exact-$block.pgm
  check "block $block: exact is equal" [ "$(column $block exact 6)" = 3 ]
  check "block $block: a block has 1 to $block tokens" \
    awk -v a="$(column $block exact 3)" -v k=$block 'BEGIN { exit !(a >= 1 && a <= k) }'
done
same a/greedy.pgm a/distance-2-1.pgm
differ a/greedy.pgm a/distance-2-8.pgm
check 'a distance allows longer blocks' \
  awk -v a="$(column 8 exact 3)" -v b="$(column 8 distance-2 3)" 'BEGIN { exit !(b > a) }'
check 'blocks save calls' [ "$(column 8 distance-2 4)" -lt 256 ]
check 'what comes out can go in' [ "$(head -c 12 a/greedy.pgm | head -2 | tail -1)" = '16 48' ]
check 'a PNG begins as one' [ "$(head -c 8 a/sheet.png | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a ]
check 'a PNG ends as one' [ "$(tail -c 8 a/sheet.png | od -An -tx1 | tr -d ' \n')" = 49454e44ae426082 ]
check 'the sheet: four columns, three rows of 128 pixels, and gaps of 8' \
  [ "$(od -An -tx1 -j16 -N8 a/sheet.png | tr -d ' \n')" = "$(printf '%08x%08x' $((4 * 136 + 8)) $((3 * 136 + 8)))" ]

enlarges --images 3 --block 5 --epsilon 0 --output b
same a/greedy.pgm b/distance-0-5.pgm
enlarges --images 3 --block 5 --epsilon 255 --output b
check 'every guess is kept' [ "$(column 5 distance-255 4)" -eq 52 ]
for batch in 1 4; do
  enlarges --images 3 --block 8 --batch $batch --output b
  same a/distance-2-8.pgm b/distance-2-8.pgm
  same a/greedy.pgm b/greedy.pgm
done

# Small images: nothing to compare with.
pgm small 4 8 32
enlarges --input small --block 4 --output c
says '^greedy: 256 calls, [0-9.]+ s, PSNR -$'
check 'three columns without originals' \
  [ "$(od -An -tx1 -j16 -N4 c/sheet.png | tr -d ' \n')" = "$(printf '%08x' $((3 * 136 + 8)))" ]
check 'images of one colour' [ "$(wc -c <c/greedy.pgm)" -eq $((13 + 512)) ]

check '--help' grep -q -- '--epsilon E' <("$program" --help)
check '--version' grep -q '^super_resolution (sluice [0-9.]*)$' <("$program" --version)

report

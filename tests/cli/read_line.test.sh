#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# read_line.test.sh READ_LINE FOLDER BUILD_NGRAM: the command line of read_line, over the pictures that ship.
# shellcheck disable=SC2034,SC2154  # what program.sh reads and sets
program=$(realpath "$1") folder=$(realpath "$2") build_ngram=$(realpath "$3")
# shellcheck source=tests/cli/program.sh
. "$(dirname "$(realpath "$0")")/program.sh"
pictures=$folder/pictures
ngram=$folder/model/characters.ng

text() { awk -F'\t' -v name="$1.png" '$1 == name { print $2 }' "$pictures/texts.tsv"; }
# reads NAME ARGUMENTS...: the text of the picture.
reads() {
  local name=$1
  shift
  "$program" "$@" "$pictures/$name.png" >out 2>err
  check "$name $*: $(cat out err)" [ "$(cat out)" = "$(text "$name")" ]
}

# ---- refused before any work ------------------------------------------------------------------------------------------

some=$pictures/clean-0003.png
refused '--frobnicate' --frobnicate "$some"
refused 'picture' --beam 3
refused 'no-such.png: no such file' no-such.png
echo text >note.png
refused 'note.png: is no PNG' note.png
refused "--beam: '0' is not a number from 1" --beam 0 "$some"
refused '--n-best: 40: the beam has 32' --n-best 40 "$some"
refused 'best-path' --search worst "$some"
for flag in --lexicon --ngram --bias; do refused 'no-such.*: ' $flag no-such "$some"; done
refused '--regex need --search beam' --search exact --regex a "$some"
refused '--n-best: 2: --search best-path finds one text' --search best-path --n-best 2 "$some"
refused 'have no effect without --ngram' --ngram-weight 1 "$some"
echo 'a b c' >letters
"$build_ngram" --text letters --order 1 --fallback --out words.ng >/dev/null
refused 'n-grams of 3 of the characters' --ngram words.ng "$some"
printf 'day\n12\n' >lexicon
refused "lexicon:2: '12'" --lexicon lexicon "$some"
printf 'Gerber\tmany\n' >bias
refused 'bias' --bias bias "$some"
refused 'regex' --regex '(' "$some"

# ---- what stands there ------------------------------------------------------------------------------------------------

for search in best-path beam exact; do reads clean-0003 --search $search; done
for name in worn-0022 fax-0015 scan-0005; do reads $name --ngram "$ngram"; done
printf 'Judith\t3\nGerber\t3\n' >names
reads fax-0065 --ngram "$ngram" --bias names
reads worn-0022 --regex 'Rechnung vom [0-9]{2}\.[0-9]{2}\.[0-9]{4} ist bezahlt\.'
printf 'every\nfolder\nshows\nwhat\nusers\nwrite\nand\nkeeps\nthe\n' >words
reads fax-0015 --lexicon words

# The exact search proves what the beam finds; n-best lists are sorted.
"$program" --search exact --n-best 3 "$pictures/clean-0003.png" >exact 2>err
"$program" --n-best 3 "$pictures/clean-0003.png" >beam
same exact beam
lines 3 beam
check 'n-best lists are sorted' sort -c -g -r beam

# All pictures at once are those one by one; a trace changes nothing.
"$program" --ngram "$ngram" "$pictures"/*.png >all
for one in "$pictures"/*.png; do "$program" --ngram "$ngram" "$one"; done >one
same all one
"$program" --ngram "$ngram" --trace trace.html "$pictures"/*.png >traced
same all traced
check 'the trace is a page' grep -q '<html' trace.html
report

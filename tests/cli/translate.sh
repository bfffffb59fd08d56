# SPDX-License-Identifier: Apache-2.0
# What the tests of translate's command line share: sourced with TRANSLATE MODEL SAMPLE.
# shellcheck shell=bash disable=SC2034  # what is set here is theirs
program=$(realpath "$1") model=$(realpath "$2") sample=$(realpath "$3")
# shellcheck source=tests/cli/program.sh
. "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/program.sh"
always=(--model "$model")
translate() { "$program" "$@"; } # without a model
plainly() { local always=() && "$@"; } # what runs it, without a model

texts() { awk -F ' [|][|][|] ' '{ print $2 }' "$1"; }
scores() { awk -F ' [|][|][|] ' '{ print $3 }' "$1"; }
stat() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" stats; } # stat KEY: of the file stats
# How many numbers of two files differ by rounding only.
near() { paste "$1" "$2" | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d <= 2e-5) ++n } END { print n + 0 }'; }

count=$(wc -l <"$sample")
# The same text, with other pieces: another model. And one that has lost some weights.
mkdir foreign second
ln -s "$model/model.safetensors" foreign/
sed 's/Hund/Hvnd/' "$model/spm.model" >foreign/spm.model
cp "$model/spm.model" "$model/model.safetensors" second/
dd if=/dev/zero of=second/model.safetensors bs=1000 seek=9000 count=20 conv=notrunc 2>/dev/null
check 'second is the same model' [ "$(cmp "$model/model.safetensors" second/model.safetensors 2>&1)" ]

fewer() { awk 'NR % 6 == 5 && NR < 59 || NR == 56' "$1"; } # short ones and a long one

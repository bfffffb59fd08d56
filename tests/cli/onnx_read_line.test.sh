#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# onnx_read_line.test.sh ONNX_READ_LINE PPOCR SAMPLES: the command line of onnx_read_line, with what tools/fetch-ppocr has put into the
# folder PPOCR, and pictures of read_line. What it finds is compared with what is written there, and with best path and sum of all
# alignments as Python computes them from the frames alone.
# shellcheck disable=SC2034,SC2154  # what program.sh reads and sets
program=$(realpath "$1") folder=$(realpath "$2") samples=$(realpath "$3")
# shellcheck source=tests/cli/program.sh
. "$(dirname "$(realpath "$0")")/program.sh"
unborn=(new)
characters=$folder/characters.txt recogniser=$folder/recogniser.onnx date=$samples/4-fax.png
always=(--characters "$characters" "$recogniser")

# reads TEXT ARGUMENTS...: exit code 0, and this output.
reads() {
  local expected=$1
  shift
  if run "$@" >out 2>err && [ ! -s err ] && [ "$(cat out)" = "$expected" ]; then pass
  else fail "onnx_read_line $*: $(cat out err)"; fi
}

# ---- refused before any work ------------------------------------------------------------------------------------------

refused 'PICTURE is required'
refused "--beam: '0' is not a number from 1 to 10000" "$date" --beam 0
refused '--n-best: 33: the beam has 32' "$date" --n-best 33
refused 'missing.png: no such file' missing.png
printf 'this is no picture\n' >broken.png
refused 'broken.png: is no PNG' broken.png
printf 'a\001b\n' >words
refused "words: 'a.b' has a character that this model does not read" "$date" --lexicon words
: >words
refused 'words: holds no word' "$date" --lexicon words
refused 'missing: cannot be opened' "$date" --bias missing
always=(--characters "$characters" broken.onnx)
printf 'this is no graph\n' >broken.onnx
run "$date" >out 2>err
check 'exit code of a broken graph' [ $? -eq 1 ]
check 'names it' grep -q '^onnx_read_line: onnxruntime: broken.onnx: ' err
head -n 100 "$characters" >few
always=(--characters few "$recogniser")
run "$date" >out 2>err
check 'exit code of other characters' [ $? -eq 1 ]
check 'says how many' grep -q 'gives 6625 labels, and the characters, blank and space are 102' err
always=(--characters "$characters" "$recogniser")

# ---- what is written there ----------------------------------------------------------------------------------------------

clean=$samples/1-clean.png sentence='Dear Mrs Quarzberg, thank you for your letter.'
for search in '' '--beam 1' '--beam 32' '--beam 32 --threads 2'; do
  # shellcheck disable=SC2086
  reads "$sentence"$'\n12.03.1984' "$clean" "$date" $search
done
# Its alphabet has neither U with two dots nor the German sharp s, and it leaves out spaces; words and phrases help.
reads 'RechnungNr.48-2213vom 12.03.1984' "$samples/2-scan.png"
printf 'Rechnung\nNr\nvom\n' >words
reads 'Rechnung Nr.48-2213vom 12.03.1984' "$samples/2-scan.png" --lexicon words
printf 'Rechnung Nr. \t6\n' >phrases
reads 'Rechnung Nr.48-2213vom 12.03.1984' "$samples/2-scan.png" --bias phrases

# ---- against the frames alone -------------------------------------------------------------------------------------------

cat >check.py <<'END'
import array, math, sys
labels = [""] + open(sys.argv[1], encoding="utf-8").read().removesuffix("\n").split("\n") + [" "]
frames, size = array.array("f", open("frames", "rb").read()), len(labels)
frames = [frames[i:i + size] for i in range(0, len(frames), size)]
path, before = "", 0
for line in frames:
    best = max(range(size), key=lambda v: line[v])
    if best != before: path += labels[best]
    before = best
def add(*logs):
    most = max(logs)
    return most if most == -math.inf else most + math.log(sum(math.exp(x - most) for x in logs))
def probability(text):
    states = [0]
    for c in text: states += [labels.index(c, 1), 0]
    now = [0.0] + [-math.inf] * (len(states) - 1)
    for line in frames:
        now = [add(now[s], now[s - 1] if s else -math.inf,
                   now[s - 2] if s > 2 and states[s] and states[s] != states[s - 2] else -math.inf) + line[states[s]]
               for s in range(len(states))]
    return add(now[-1], now[-2]) if text else now[0]
assert path == open("path", encoding="utf-8").read()[:-1], (path, "the best path")
scores = []
for one in open("texts", encoding="utf-8").read().split("\n")[:-1]:
    score, text = one.split("\t")
    exact = probability(text)  # of which a beam loses some alignments where it can hardly read
    assert exact - 0.3 < float(score) < exact + 1e-3, (text, score, exact)
    scores.append(float(score))
assert len(scores) == 3 and scores == sorted(scores, reverse=True)
END
for picture in "$samples"/*.png; do
  run "$picture" --frames frames >path
  run "$picture" --beam 300 --n-best 3 >texts
  if python3 check.py "$characters" 2>err; then pass; else fail "$picture: $(tail -n 1 err)"; fi
done
report

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
refused 'missing: cannot be opened' "$date" --hotwords missing
refused 'missing: cannot be opened' "$date" --ngrams missing
printf 'no table\n' >words
refused 'words: ' "$date" --ngrams words
refused "--ngrams-of: 'labels' is not one of words, characters" "$date" --ngrams words --ngrams-of labels
refused "--weight: '-1' is not a number >= 0" "$date" --ngrams words --weight -1
refused "--bonus: 'nan' is not a number that is finite" "$date" --ngrams words --bonus nan
printf '%s\n' '\data\' 'ngram 1=4' '' '\1-grams:' $'-1\tRechnung' $'-1\t<s>' $'-1\t</s>' $'-3\t<unk>' '' '\end\' >words.arpa
refused 'words.arpa: has n-grams of 0 of the characters' "$date" --ngrams words.arpa --ngrams-of characters
mkdir twice && cp "$date" twice/
refused '--frames: frames/4-fax.npy would be written twice' "$date" twice/4-fax.png --frames frames
refused '/dev/null/frames/4-fax.npy: cannot be written' "$date" --frames /dev/null/frames
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
reads 'Rechnung Nr.48-2213vom 12.03.1984' "$samples/2-scan.png" --hotwords phrases

# ---- against the frames alone -------------------------------------------------------------------------------------------

# Two ARPA files: words with signs at their ends, as build_ngram counts them, and characters with _ for the space.
cat >make.py <<'END'
import random
random.seed(5)
def arpa(name, words):
    pairs = [(a, b) for a in ["<s>", *words] for b in words if random.random() < 0.3]
    with open(name, "w", encoding="utf-8") as file:
        file.write(f"\\data\\\nngram 1={len(words) + 3}\nngram 2={len(pairs)}\n\n\\1-grams:\n")
        for word in ["<s>", "</s>", "<unk>", *words]:
            file.write(f"{-random.uniform(1, 3):.4f}\t{word}\t{-random.uniform(0, 1):.4f}\n")
        file.write("\n\\2-grams:\n" + "".join(f"{-random.uniform(0.1, 1):.4f}\t{a} {b}\n" for a, b in pairs) + "\n\\end\\\n")
arpa("words.arpa", "Rechnung Nr. 48-2213 vom Dear Mrs Quarzberg, thank you for your letter. 12.03.1984".split())
arpa("characters.arpa", [*"abcdefghijklmnopqrstuvwxyzDMNQR0123489.,-", "_"])
END
python3 make.py

# check.py CHARACTERS PICTURE TEXTS [words|characters WEIGHT BONUS UNKNOWN]
cat >check.py <<'END'
import array, ast, math, struct, sys
labels = [""] + open(sys.argv[1], encoding="utf-8").read().removesuffix("\n").split("\n") + [" "]
matrix = open(f"frames/{sys.argv[2]}.npy", "rb").read()
assert matrix[:8] == b"\x93NUMPY\x01\x00", matrix[:8]
begin = 10 + struct.unpack("<H", matrix[8:10])[0]
header = ast.literal_eval(matrix[10:begin].decode())
assert begin % 64 == 0 and header["descr"] == "<f4" and not header["fortran_order"] and header["shape"][1] == len(labels), header
frames, size = array.array("f", matrix[begin:]), len(labels)
frames = [frames[i:i + size] for i in range(0, len(frames), size)]
assert len(frames) == header["shape"][0], header
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
def language(text):
    if len(sys.argv) == 4: return 0
    of, (weight, bonus, unknown) = sys.argv[4], map(float, sys.argv[5:])
    grams, back = {}, {}
    for line in open(of + ".arpa", encoding="utf-8"):
        fields = line.rstrip("\n").split("\t")
        if len(fields) > 1: grams[fields[1]] = float(fields[0])
        if len(fields) > 2: back[fields[1]] = float(fields[2])
    parts = text.split() if of == "words" else list(text.replace(" ", "_"))
    log10, before = 0, "<s>"
    for part in parts + ["</s>"]:
        if part not in grams:
            part = "<unk>"
            log10 += unknown / math.log(10)
        log10 += grams.get(before + " " + part, back.get(before, 0) + grams[part])
        before = part
    return weight * math.log(10) * log10 + bonus * len(parts)
assert len(sys.argv) > 4 or path == open("path", encoding="utf-8").read()[:-1], (path, "the best path")
scores = []
for one in open(sys.argv[3], encoding="utf-8").read().split("\n")[:-1]:
    score, text = one.split("\t")
    exact = probability(text) + language(text)  # of which a beam loses some alignments where it can hardly read
    assert exact - 0.5 < float(score) < exact + 2e-3, (text, score, exact)
    scores.append(float(score))
assert len(scores) == 3 and scores == sorted(scores, reverse=True)
END
run "$samples"/*.png --frames frames >out
lines "$(find frames -name '*.npy' | wc -l)" out
for picture in "$samples"/*.png; do
  name=$(basename "$picture" .png)
  run "$picture" >path
  run "$picture" --beam 300 --n-best 3 >texts
  if python3 check.py "$characters" "$name" texts 2>err; then pass; else fail "$picture: $(tail -n 1 err)"; fi
  for of in words characters; do
    run "$picture" --beam 300 --n-best 3 --ngrams $of.arpa --ngrams-of $of --weight 0.4 --bonus 1.5 --unknown -2 >texts
    if python3 check.py "$characters" "$name" texts $of 0.4 1.5 -2 2>err; then pass; else fail "$picture, n-grams of $of: $(tail -n 1 err)"; fi
  done
done

# What the network leaves out, a language model knows.
reads 'RechnungNr.48-2213vom 12.03.1984' "$samples/2-scan.png" --ngrams words.arpa --weight 0
reads 'Rechnung Nr. 48-2213 vom 12.03.1984' "$samples/2-scan.png" --language-model words.arpa --weight 0.5 --bonus 3 --unknown -10
report

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ctc_decode.test.sh CTC_DECODE: the command line of ctc_decode, against all texts of small matrices, which Python counts one by one.
# shellcheck disable=SC2034,SC2154  # what program.sh reads and sets
program=$(realpath "$1")
# shellcheck source=tests/cli/program.sh
. "$(dirname "$(realpath "$0")")/program.sh"

cat >make.py <<'END'
import math, random, struct
random.seed(4)
labels = ["", "a", "b", " "]
def npy(name, rows, kind="<f4", order="C"):
    T, V = len(rows), len(rows[0])
    header = f"{{'descr': '{kind}', 'fortran_order': {order == 'F'}, 'shape': ({T}, {V}), }}".encode()
    header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
    flat = [rows[t][v] for t in range(T) for v in range(V)] if order == "C" else [rows[t][v] for v in range(V) for t in range(T)]
    code = {"<f4": "f", "<f8": "d", "<f2": "e", "<i4": "i"}[kind]
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack(f"<{len(flat)}{code}", *map(int if code == "i" else float, flat)))
for i in range(3):
    rows = [[round(random.gauss(0, 2) * 8) / 8 for _ in labels] for _ in range(6)]  # exact in 16 bits, too
    for kind in "<f4", "<f8", "<f2":
        npy(f"{i}{kind[1:]}.npy", rows, kind)
    npy(f"{i}.npy", rows)
    npy(f"{i}F.npy", rows, order="F")
    open(f"{i}.csv", "w").write("".join(",".join(map(str, row)) + "\n" for row in rows))
    open(f"{i}probs.csv", "w").write("".join(" ".join(repr(math.exp(x) / sum(map(math.exp, row))) for x in row) + "\r\n" for row in rows))
npy("whole.npy", rows, "<i4")
npy("narrow.npy", [row[:3] for row in rows])
open("cut.npy", "wb").write(open("0.npy", "rb").read()[:-1])
open("ragged.csv", "w").write("1,2,3,4\n1,2,3\n")
open("words.csv", "w").write("1,2,3,4\n1,2,three,4\n")
open("labels", "w").write("\n".join(labels) + "\n")
open("list", "w").write("1.npy\n2.csv\n")
open("lexicon", "w").write("ab\nbb b b\n")
open("hotwords", "w").write("ab\t3\n")
open("lm.arpa", "w").write("\\data\\\nngram 1=5\n\n\\1-grams:\n-99\t<s>\n-0.9\t</s>\n-1.5\t<unk>\n-0.4\tab\n-1.1\tbb\n\n\\end\\\n")
open("letters.arpa", "w").write("\\data\\\nngram 1=6\n\n\\1-grams:\n-99\t<s>\n-1.2\t</s>\n-2\t<unk>\n-0.3\ta\n-0.9\tb\n-0.6\t_\n\n\\end\\\n")
END
python3 make.py

# What the program answers, against all 4^6 alignments: check.py NUMBER OUTPUT RULE [WEIGHT BONUS UNKNOWN]
cat >check.py <<'END'
import collections, itertools, json, math, sys
number, answer, rule = sys.argv[1:4]
weight, bonus, unknown = map(float, sys.argv[4:7] or (0, 0, 0))
labels = ["", "a", "b", " "]
rows = [list(map(float, line.split(","))) for line in open(f"{number}.csv")]
rows = [[x - math.log(sum(map(math.exp, row))) for x in row] for row in rows]
sums, best = collections.defaultdict(float), {}
for path in itertools.product(range(4), repeat=len(rows)):
    text = "".join(labels[v] for v, _ in itertools.groupby(path))
    log_prob = sum(row[v] for row, v in zip(rows, path))
    sums[text] += math.exp(log_prob)
    best[text] = max(best.get(text, (-math.inf, ())), (log_prob, path))
logs = {"ab": -0.4, "bb": -1.1, "</s>": -0.9, None: -1.5}
def score(text):
    words = text.split(" ")
    if rule == "lexicon" and not all(word in ("ab", "bb", "") for word in words):
        return -math.inf
    added = 3 * words.count("ab") if rule == "hotwords" else 0
    if rule == "language":
        words = [word for word in words if word]
        added = weight * math.log(10) * (sum(logs.get(word, logs[None]) for word in words) + logs["</s>"]) + bonus * len(words)
        added += weight * unknown * sum(word not in logs for word in words)
    if rule == "letters":
        added = weight * math.log(10) * (sum({"a": -0.3, "b": -0.9, " ": -0.6}[letter] for letter in text) - 1.2) + bonus * len(text)
    return math.log(sums[text]) + added
if rule == "align":
    text = "ab a"
    found = json.loads(open(answer).read())
    log_prob, path = best[text]
    assert abs(found["log_prob"] - log_prob) < 1e-3, (found, log_prob)
    assert [one["label"] for one in found["labels"]] == list(text)
    runs, at = [], 0
    for v, run in itertools.groupby(path):
        count = len(list(run))
        if v: runs.append([at, at + count])
        at += count
    assert [[one["start"], one["end"]] for one in found["labels"]] == runs, (found, path)
    sys.exit()
found = json.loads(open(answer).read())
assert found["frames"] == len(rows)
wanted = sorted(sums, key=score, reverse=True)
its = found["hypotheses"]
assert len(its) == 5
for one, text in zip(its, wanted):
    assert abs(one["score"] - score(text)) < 2e-3, (one, text, score(text))  # near ties may change places
    log_prob = max(math.log(sums[other]) for other in wanted if other.strip(" ") == one["text"] and abs(score(other) - one["score"]) < 2e-3)
    assert abs(one["log_prob"] - log_prob) < 2e-3, (one, log_prob)
    assert [word["word"] for word in one["words"]] == one["text"].split(), one
    assert all(0 <= word["start"] < word["end"] <= 6 and 0 < word["confidence"] <= 1 for word in one["words"]), one
END
# finds NUMBER RULE "WEIGHT BONUS UNKNOWN" ARGUMENTS...
finds() {
  local number=$1 rule=$2 weights=$3
  shift 3
  # shellcheck disable=SC2086
  if run "$number.npy" --beam 200 --json --n-best 5 "$@" >out 2>err && [ ! -s err ] && python3 check.py "$number" out "$rule" $weights 2>err; then pass
  else fail "$number $rule $*: $(cat out err)"; fi
}

# ---- refused before any work ------------------------------------------------------------------------------------------

refused '--labels is required' 0.npy
always=(--labels labels)
refused 'MATRIX: is missing'
refused "--beam: '0' is not a number from 1 to 100000" 0.npy --beam 0
refused '--n-best: 33: the beam has 32' 0.npy --n-best 33
refused "--kind: 'odds' is not one of logits, log_probs, probs" 0.npy --kind odds
refused "--sweep: 'x' is not a number" 0.npy --sweep 0,x
refused '--sweep: needs --references and --ngrams' 0.npy --sweep 0,1
refused 'missing.npy: cannot be opened' missing.npy
refused "whole.npy: has numbers of type '<i4'" whole.npy
refused 'cut.npy: ends before its last number' cut.npy
refused 'narrow.npy: has 3 columns, --labels 4' narrow.npy
refused 'ragged.csv:2: has 3 numbers, lines before it 4' ragged.csv
refused "words.csv:2: 'three' is not a number" words.csv
refused "--blank: '<none>' is not among the 4 labels" 0.npy --blank '<none>'
refused "--align: 'abc': no label is 'c'" 0.npy --align abc
refused 'has a number that is no probability' 0.npy --kind probs
printf 'one\n' >one
refused 'one has 1 lines, and there are 2 matrices' 0.npy 1.npy --references one

# ---- all texts --------------------------------------------------------------------------------------------------------

for number in 0 1 2; do
  finds $number plain ''
  finds $number lexicon '' --lexicon lexicon
  finds $number hotwords '' --hotwords hotwords
  finds $number language '0.5 0.7 -2' --ngrams lm.arpa --weight 0.5 --bonus 0.7 --unknown -2
  finds $number letters '0.5 0.7 0' --ngrams letters.arpa --ngrams-of labels --weight 0.5 --bonus 0.7
  run $number.npy --align 'ab a' --json >out 2>err
  check "$number aligned: $(cat out err)" python3 check.py $number out align
done

# ---- files ------------------------------------------------------------------------------------------------------------

run 0.npy 1.npy 2.npy --n-best 3 >wanted
lines 9 wanted
for kind in f4 f8 f2 F; do
  run 0$kind.npy 1$kind.npy 2$kind.npy --n-best 3 >out
  same out wanted $kind
done
run 0.csv --list list --n-best 3 --threads 2 >out
same out wanted 'CSV, and a list'
run 0probs.csv 1probs.csv 2probs.csv --n-best 3 --kind probs >out
same out wanted probabilities
run 0.npy --align 'ab a' >out
lines 4 out
run 0.npy --align 'ab a' --frame 0.02 >seconds
# shellcheck disable=SC2016
check 'in seconds' awk -F '\t' 'NR == FNR { begin[FNR] = $1; next } $1 - begin[FNR] * 0.02 > 1e-9 || begin[FNR] * 0.02 - $1 > 1e-9 { exit 1 }' out seconds
run 0.npy --align 'ab ab ab ab' >out 2>err
check 'no alignment' [ $? -eq 1 ]
check 'says so' grep -q "0.npy: its 6 frames cannot be 'ab ab ab ab'" err

# ---- error rates ------------------------------------------------------------------------------------------------------

printf 'ab\nbb\nab bb\n' >references
run 0.npy 1.npy 2.npy --references references --ngrams lm.arpa --sweep 0,0.5,2 --sweep-bonus 0,1 >out 2>err
check "sweep: $(cat err)" [ $? -eq 0 ]
lines 8 out
while read -r weight bonus characters _ words _; do
  [ "$weight" = weight ] && continue
  [ "$weight" = best: ] && continue
  run 0.npy 1.npy 2.npy --references references --ngrams lm.arpa --weight "$weight" --bonus "$bonus" >texts 2>err
  check "weight $weight, bonus $bonus: $(cat err)" grep -q "errors: $characters % of 9 characters, $words % of 4 words" err
done <out
best=$(awk -F '\t' 'NR > 1 && NF == 4 { print $3 + 0, $4 + 0, NR, $1, $2 }' out | sort -n -k1,1 -k2,2 -k3,3 | awk 'NR == 1 { print "best: --weight " $4 " --bonus " $5 }')
check "the best is not '$best': $(cat out)" [ "$(tail -n 1 out)" = "$best" ]
check 'weights differ' [ "$(awk -F '\t' 'NF == 4 { print $3 }' out | sort -u | wc -l)" -gt 2 ]
run 0.npy 1.npy --progress >out 2>err
check 'progress' grep -q '2/2 matrices' err
report

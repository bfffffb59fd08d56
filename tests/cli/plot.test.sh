#!/usr/bin/env bash
# The plots of benchmarks/tables/plot.py: XML, with the numbers of the tables they are drawn from.   plot.test.sh ROOT PYTHON
set -euo pipefail
root=$1 python=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }
draw() { "$python" "$root/benchmarks/tables/plot.py" "$@"; }

# What an SVG says beside its points, a line each: series, point: number. Fails unless it is XML of which the points are
# where their numbers belong on the axis.
cat >"$work/points.py" <<'P'
import math
import sys
import xml.etree.ElementTree as tree

spaces = "{http://www.w3.org/2000/svg}"
root = tree.parse(sys.argv[1]).getroot()
assert root.tag == spaces + "svg" and root.find(spaces + "title").text and root.find(spaces + "desc").text
assert "prefers-color-scheme: dark" in root.find(spaces + "style").text
least, most, logarithmic = float(sys.argv[2]), float(sys.argv[3]), len(sys.argv) > 4
for circle in root.iter(spaces + "circle"):
    said = circle.find(spaces + "title").text
    value = float(said.rsplit(": ", 1)[1])
    if logarithmic:
        value, low, high = math.log(value), math.log(least), math.log(most)
    else:
        low, high = least, most
    assert abs(198 - 170 * (value - low) / (high - low) - float(circle.get("cy"))) < 0.06, said
    print(said)
P
points() { "$python" "$work/points.py" "$@"; }

cat >"$work/page.md" <<'M'
Another table:

| batch | something |
| --- | --- |
| 1 | 2 |

| batch | greedy | beam 5 | ratio |
| --- | ---: | ---: | --- |
| 1 | 125 | 110 | 1.00 |
| 2 & more | 1,040.5 | | 2.00 |
M
draw batches "$work/page.md" "$work/page.svg"
printf '%s\n' 'greedy, 1: 125' 'greedy, 2 & more: 1,040.5' 'beam 5, 1: 110' >"$work/expected"
"$python" - "$work/page.svg" >"$work/said" <<'P'
import sys
import xml.etree.ElementTree as tree
for circle in tree.parse(sys.argv[1]).getroot().iter("{http://www.w3.org/2000/svg}circle"):
    print(circle[0].text)
P
diff "$work/expected" "$work/said" || fail "other points than the table's"
for number in 125 1,040.5 110; do grep -q "<text[^>]*>$number</text>" "$work/page.svg" || fail "$number cannot be read"; done

for wrong in 's/| 125 |/| fast |/' 's/beam 5/beam/' 's/ | 110 | 1.00//'; do
  sed "$wrong" "$work/page.md" >"$work/wrong.md"
  ! draw batches "$work/wrong.md" "$work/wrong.svg" 2>"$work/errors" || fail "drawn after $wrong"
  grep -q 'wrong.md: ' "$work/errors" || fail "no message about the page after $wrong"
  [ ! -e "$work/wrong.svg" ] || fail "a file after $wrong"
done
! draw pies "$work/page.md" "$work/x.svg" 2>"$work/errors" || fail "a kind that there is not"
sed 's/ 0.99, 0.93 / 0.99 /' "$root/docs/watermarks.md" >"$work/wrong.md"
! draw power "$work/wrong.md" "$work/wrong.svg" 2>"$work/errors" || fail "drawn without a share"
grep -q 'wrong.md: a cell of gumbel' "$work/errors" || fail "no message about a cell without a share"

# The pictures that the pages show are those of their tables.
while read -r kind page; do
  draw "$kind" "$root/docs/$page" "$work/$kind.svg"
  cmp "$work/$kind.svg" "$root/docs/benchmarks/$kind.svg" ||
    fail "draw it again: benchmarks/tables/plot.py $kind docs/$page docs/benchmarks/$kind.svg"
  grep -Eq "\((benchmarks/)?$kind.svg\)" "$root/docs/$page" || fail "$page does not show $kind.svg"
done <<'L'
blocks benchmarks/blockwise.md
batches benchmarks/cpu.md
masks benchmarks/structure.md
power watermarks.md
substituted watermarks.md
L
# Five schemes at two levels: over six lengths of four entropies, and over six shares of replaced tokens.
for count in power:240 substituted:60; do
  [ "$(grep -c '<circle' "$work/${count%:*}.svg")" = "${count#*:}" ] || fail "${count%:*} has other points"
done
half=$(awk -F ' *[|] *' '$2 == "gumbel" && $3 == "0.5" { split($9, at, /[, ]+/); print at[2]; exit }' "$root/docs/watermarks.md")
grep -q "<title>gumbel, 800: $half</title>" "$work/power.svg" || fail "another share of 800 tokens"
points "$work/masks.svg" 0.01 1e6 logarithmic >"$work/said"
median=$(awk -F ' *[|] *' '$2 == "tree" { print $6; exit }' "$root/docs/benchmarks/structure.md")
grep -qx "first median, tree: $median" "$work/said" || fail "another median of tree"
[ "$(wc -l <"$work/said")" = 48 ] || fail "other masks than 12 grammars in 4 columns"
echo "plot: all as promised"

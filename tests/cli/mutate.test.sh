#!/usr/bin/env bash
# scripts/mutate over a header of a few lines and a test that knows too little: who is killed, who survives, who is never reached,
# who is explained; what is known is not run again.   mutate.test.sh ROOT PYTHON
set -euo pipefail
root=$1 python=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }
command -v clang++-19 >/dev/null || { echo "SKIPPED: needs clang++-19"; exit 0; }

example=$root/tests/mutation/example
mutate() { "$python" "$root/scripts/mutate" --root "$example" --plan "$example/plan.json" --build "$work" --sample 0 "$@"; }
mutate --list >"$work/list"
case $(cat "$work/list") in SKIPPED*) cat "$work/list"; exit 0;; esac
mutate >"$work/out" 2>"$work/err" || { cat "$work/err" >&2; fail "it ends with $?"; }
says() { grep -qxF -- "$1" "$work/out" || { cat "$work/out" >&2; fail "it does not say: $1"; }; }
silent() { if grep -qF -- "$1" "$work/out"; then cat "$work/out" >&2; fail "it says: $1"; fi; }

says 'tiny/steps.hpp:16: survived: length > 0 -> >='
says 'tiny/steps.hpp:26: not reached: x == 3 -> !='
silent 'length > 0 -> <='     # never goes round
silent 'length -= size'       # goes round for ever, dropped or turned round: killed
silent 'a - b'                # 5 - 5 is not 5 + 5
silent 'swapped'              # explained in equivalent.txt
silent 'tiny/steps.hpp:20'    # in a static_assert
says '| `tiny/` | 15 | 15 | 7 | 1 | 3 | 4 | 50.0 % |'

[ "$(wc -l <"$work/tiny/results.jsonl")" -eq 15 ] || fail "not one line for each mutant"
mutate >"$work/second" 2>"$work/err"
cmp -s "$work/out" "$work/second" || fail "what is known differs from what was found"
grep -q '; 0 to run$' "$work/err" || fail "what is known is run again: $(cat "$work/err")"
echo "mutate: 15 mutants"

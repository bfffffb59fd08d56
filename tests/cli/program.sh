# SPDX-License-Identifier: Apache-2.0
# What the tests of command lines share; $program is the one they run. Works in a folder of its own.
# shellcheck shell=bash disable=SC2034,SC2154  # program is the caller's, what is set here theirs
set -u
export LC_ALL=C
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} # waiting threads would cost more than they bring

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

always=()       # arguments of every call
unborn=()       # files that nothing that is refused may leave
input=/dev/null # of what is refused

passed=0 failed=0
pass() { passed=$((passed + 1)); }
fail() { failed=$((failed + 1)); printf 'FAILED: %s\n' "$*"; }
check() { # check WHAT COMMAND...
  local what=$1
  shift
  if "$@"; then pass; else fail "$what"; fi
}
run() { "$program" "${always[@]}" "$@"; }

# refused PATTERN ARGUMENTS...: exit code 2, one line on standard error that matches, nothing on standard output.
refused() {
  local pattern=$1 name=${program##*/} code file
  shift
  "$program" "${always[@]}" "$@" >out 2>err <"$input"
  code=$?
  for file in "${unborn[@]}"; do
    [ ! -e "$file" ] || { fail "$name $* left $file" && return; }
  done
  if [ $code -ne 2 ]; then fail "exit code $code, not 2: $name $*"
  elif [ "$(wc -l <err)" -ne 1 ] || ! grep -q -E -- "^$name: .*$pattern" err; then fail "message of $name $*: $(cat err)"
  elif [ -s out ]; then fail "output of $name $*"
  else pass; fi
}

same() { check "${3:+$3: }$1 and $2 differ" cmp -s "$1" "$2"; } # same A B [WHAT]
differ() { check "$1 and $2 are the same" [ "$(cmp "$1" "$2" 2>&1)" ]; }
lines() { check "$2 has $(wc -l <"$2") lines, not $1" [ "$(wc -l <"$2")" -eq "$1" ]; }
line() { sed -n "$2p" "$1"; }
says() { check "the report says no $1: $(cat out)" grep -q -E -- "$1" out; }

# Says what came of it; the last line of a test.
report() {
  printf '%d passed, %d failed\n' $passed $failed
  [ $failed -eq 0 ]
}

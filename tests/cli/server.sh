# SPDX-License-Identifier: Apache-2.0
# What the tests of servers share, behind program.sh; $program is the server, $clients the script of clients.
# shellcheck shell=bash disable=SC2034,SC2154  # program, always and clients are the caller's, what is set here theirs
for tool in curl python3; do
  command -v $tool >/dev/null || { echo "SKIPPED: $tool was not found"; exit 0; }
done

pids=()
trap 'kill "${pids[@]}" 2>/dev/null; rm -rf "$work"' EXIT
# start OPTION...: a server; sets $pid, $port.
start() {
  : >log # of the one before
  "$program" "${always[@]}" --port 0 "$@" >log 2>err &
  pid=$! port=
  pids+=($pid)
  for _ in $(seq 600); do
    port=$(sed -n 's|.*http://[^:]*:\([0-9]*\)/$|\1|p' log)
    [ "$port" ] && return
    sleep 0.05
  done
  fail "no server: $(cat err)"
  report
  exit 1
}
stop() { kill -TERM "$pid" && wait "$pid"; }
client() { python3 "$clients" "$1" "$port" "${@:2}"; }
url() { printf 'http://127.0.0.1:%s%s' "$port" "$1"; }
ask() { curl -s -m 60 -H 'Content-Type: application/json' "$(url "$1")" -d "$2" "${@:3}"; }
code() { curl -s -m 60 -o /dev/null -w '%{http_code}' "$@"; }

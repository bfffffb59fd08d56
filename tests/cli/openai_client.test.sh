#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# openai_client.test.sh SERVE_LLAMA DRAW_LLAMA CLIENT: serve_llama as OpenAI's client sees it, from the folder that tools/fetch-openai has made.
program=$(realpath "$1") draw=$(realpath "$2") python=${3:-}/bin/python
here=$(dirname "$(realpath "$0")")
[ -x "$python" ] || { echo "SKIPPED: needs OPENAI_ROOT, from tools/fetch-openai"; exit 0; }
# shellcheck source=tests/cli/program.sh
. "$here/program.sh"
# shellcheck source=tests/cli/server.sh
. "$here/server.sh"
"$draw" json.gguf 2 1 monarch json || exit 1
always=(-m json.gguf --threads 1)
start --special --exact
check "OpenAI's client" "$python" -B "$here/openai_client.py" "$port"
stop
report

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# llama_attack.test.sh SERVE_LLAMA DRAW_LLAMA: what malice does to serve_llama, with a model that is drawn.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder" # so that another user, whose processes can be limited, reads the model
"$2" "$folder/json.gguf" 2 1 monarch json
"$(dirname "$0")/../../scripts/attack" --slack 6 --llama "$1" "$folder/json.gguf"

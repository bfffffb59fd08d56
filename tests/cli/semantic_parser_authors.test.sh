#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# semantic_parser_authors.test.sh SEMANTIC_PARSER MODEL: the counts and lists of VAR-STREAM's authors over their own models, in
# the folders jobs and geo; skipped without.
# shellcheck disable=SC2086  # options are split on purpose
program=$(realpath "$1") folder=$(realpath -m "$2") name=$(basename "$2")
if [ ! -d "$folder" ]; then
  printf 'SKIPPED: %s is missing: not compared with the authors\n' "$folder"
  exit 0
fi
# shellcheck source=tests/cli/semantic_parser.sh
. "$(dirname "$(realpath "$0")")/semantic_parser.sh"

# The counts of the limits on rows and of other beams are those of the authors' rules restated, not of their programs.
if [ "$name" = jobs ]; then
  paper '83 2527' '542 26268' '498 3946' '75 3946' '79 3946'
  check 'accuracy of jobs' [ "$(stat accuracy) $(stat oracle_accuracy)" = '0.8928571428571429 0.8928571428571429' ]
  counts 248 3946 --max-rows 20
  counts 252 3946 --max-rows 20 --schedule fifo
  counts 142 3946 --max-rows 37
  counts 275 17716 --width 50 --absolute-threshold 15 --max-per-parent 5
  counts 259 17716 --width 50 --absolute-threshold 15 --max-per-parent 5 --schedule fifo
  counts 89 2749 --width 5 --absolute-threshold 2.5 --max-per-parent 2 --schedule fifo --max-rows 50
else
  paper '144 5050' '1267 52073' '1148 10798' '186 10798' '157 10798'
  check 'accuracy of geo' [ "$(stat accuracy) $(stat oracle_accuracy)" = '0.8071428571428572 0.8428571428571429' ]
  check 'trees of geo' [ "$(stat tree_accuracy) $(stat oracle_tree_accuracy)" = '0.8357142857142857 0.8678571428571429' ]
  counts 784 10798 --max-rows 20
  counts 732 10798 --max-rows 20 --schedule fifo
  counts 429 10798 --max-rows 37
  counts 712 46265 --absolute-threshold 20 --max-per-parent 10
  limits
fi

report

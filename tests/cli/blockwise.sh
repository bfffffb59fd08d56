# SPDX-License-Identifier: Apache-2.0
# What the tests of translate --search blockwise share, after translate.sh.
# shellcheck shell=bash disable=SC2034,SC2154  # what is set here, and there
# Blocks of a fixed size, unless told otherwise: what is printed and counted must not depend on a clock.
blockwise() { case " $* " in *' --block '*) run --search blockwise "$@" ;; *) run --search blockwise --block 4 "$@" ;; esac; }
of_blocks() { sed -n "/^  \"blocks\"/s/.*\"$1\":\([0-9.]*\).*/\1/p" stats; } # of_blocks KEY
stat() { sed -n "s/^  \"$1\": \([0-9]*\).*/\1/p" stats; }              # stat KEY, not of the blocks
at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'; }
itself="draft --draft-model $model"

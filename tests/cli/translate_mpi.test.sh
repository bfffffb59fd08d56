#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# translate_mpi.test.sh TRANSLATE MODEL SAMPLE [TRANSLATE_MPI]: four ranks give the bytes of one, also after one was killed.
# shellcheck disable=SC2154  # translate.sh sets the rest
if [ $# -lt 4 ] || ! command -v mpirun >/dev/null; then
  echo "SKIPPED: no MPI (Debian: libopenmpi-dev, openmpi-bin)"
  exit 0
fi
mpi=$(realpath "$4")
# shellcheck source=tests/cli/translate.sh
. "$(dirname "$(realpath "$0")")/translate.sh"
always+=(--search greedy --batch 4)

# Ranks on this machine alone: no other one is asked for, and waiting takes no processor from who works.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_plm=isolated OMPI_MCA_btl=self,vader OMPI_MCA_pml=ob1
export OMPI_MCA_btl_vader_single_copy_mechanism=none
ranks() { # ranks N ARGUMENTS...
  local n=$1
  shift
  mpirun --oversubscribe -n "$n" "$mpi" "${always[@]}" "$@"
}
refused_by() { # refused_by N PATTERN ARGUMENTS...
  local n=$1 pattern=$2
  shift 2
  ranks "$n" "$@" >stdout 2>err && fail "not refused: $*"
  check "$(grep -c '^translate_mpi: ' err) messages of $*: $(cat err)" [ "$(grep -c '^translate_mpi: ' err)" -eq 1 ]
  check "message of $*: $(cat err)" grep -q -E -- "^translate_mpi: .*$pattern" err
}
known() { # parts that are finished
  grep -l -a ' done$' made.parts/*/*.journal 2>/dev/null | wc -l
}

cat "$sample" "$sample" "$sample" >text
run --input text --output whole

# ---- the same bytes -------------------------------------------------------------------------------------------------------

check 'one rank fails' ranks 1 --input text --output one --shard-size 700
same one whole 'one rank'
check 'four ranks fail' ranks 4 --input text --output four --shard-size 300 --stats statistics
same four whole 'four ranks'
check 'parts were left' [ ! -e four.parts ]
total() { grep -o "\"$1\": [0-9]*" statistics | awk '{ sum += $2 } END { print sum }'; }
check "$(total sentences) sentences" [ "$(total sentences)" -eq "$(wc -l <text)" ]
check 'ranks in the statistics' [ "$(grep -c '"shards"' statistics)" -eq 4 ]
check 'a finished run is finished' ranks 4 --input text --output four --shard-size 300 --resume
same four whole 'a finished run'
check 'large shards fail' ranks 2 --input text --output large
same large whole 'shards larger than the text'
head -n 2 text >two
: >nothing
check 'more ranks than lines fail' ranks 4 --input two --output few --shard-size 1
run --input two >expected
same few expected 'more ranks than lines'
check 'no lines fail' ranks 2 --input nothing --output none
same none nothing 'no lines'

# ---- one rank is killed -----------------------------------------------------------------------------------------------------

cat text text text >long
cat whole whole whole >whole.long
mpirun --oversubscribe -n 4 "$mpi" "${always[@]}" --input long --output made --shard-size 300 --resume >stdout 2>err &
job=$!
while kill -0 $job 2>/dev/null && [ "$(known)" -lt 3 ]; do sleep 0.01; done
victim=$(awk -v job=$job '/^Pid/ { pid = $2 } /^PPid/ && $2 == job { print pid }' /proc/[0-9]*/status 2>/dev/null | sed -n 3p)
check 'a rank to kill' kill -9 "$victim"
wait $job
check 'the job went on without a rank' [ $? -ne 0 ]
check 'all was done already' [ ! -e made ]
before=$(known)
check "only $before parts were done" [ "$before" -ge 3 ]
check 'the job that goes on fails' ranks 3 --input long --output made --shard-size 300 --resume --stats statistics
same made whole.long 'with a rank killed'
check 'all lines are done once' [ $(($(total sentences) + $(total resumed))) -eq "$(wc -l <long)" ]
check "only $(total resumed) lines were not done again" [ "$(total resumed)" -ge $((2 * before)) ]

# ---- shards of an array of jobs -----------------------------------------------------------------------------------------------

for i in 0 1 2; do run --input text --shard $i/3 --output part.$i --resume; done
cat part.0 part.1 part.2 >joined
same joined four 'an array of jobs'

# ---- refused ------------------------------------------------------------------------------------------------------------

printf 'Guten Tag.\nGr\374n\n' >latin1
refused_by 2 'latin1:2: not valid UTF-8' --input latin1 --output x --shard-size 4
refused_by 2 'not expected: 0/2 --shard' --input text --output x --shard 0/2
refused_by 2 'translate_mpi needs --input' --output x
refused_by 2 'translate_mpi needs --output' --input text
refused_by 2 'nowhere: cannot be opened' --input nowhere --output x
refused_by 2 'absent/x: cannot be written' --input text --output absent/x
refused_by 2 'whole: is there, without the journal' --input text --output whole --resume
refused_by 2 'made.journal: is of another run: --shard-size was .300. and is .301.' \
  --input long --output made --shard-size 301 --resume
mkdir two.parts
exec 9<two.parts
flock -n 9
refused_by 2 'two.parts: another run is at work on it' --input text --output two
exec 9<&-
check 'help' ranks 2 --help >help
check 'help comes once' [ "$(grep -c -- '--shard-size' help)" -eq 1 ]

report

# shellcheck shell=bash disable=SC2154,SC2089,SC2090
# The parts of scripts/gpu-check, each run in its own shell; to be sourced. It uses variables of that script; budget is
# the part's time in seconds.

# Prints the version of PyTorch and, after a tab, the folder of its CMake files, if it is built for CUDA.
import_torch='
import torch
print(torch.__version__, torch.utils.cmake_prefix_path if torch.version.cuda else "", sep="\t")
'

machine() {
  python3 - "$build/machine.json" <<'PYTHON'
import json, os, platform, re, subprocess, sys, time
def run(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
smi = run("nvidia-smi", "-i", "0", "--query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.mem,power.limit",
          "--format=csv,noheader")
model = re.search(r"model name\s*: (.*)", run("cat", "/proc/cpuinfo"))
record = {
    "date": time.strftime("%Y-%m-%d", time.gmtime()),
    "gpu": smi,
    "driver": smi.split(", ")[1] if smi.count(", ") else "",
    "nvcc": (re.search(r"release [^,]*, (V[\d.]+)", run(os.environ["nvcc"], "--version")) or [None, ""])[1],
    "compiler": run(os.environ.get("CXX", "g++"), "--version").split("\n")[0],
    "cpu": f"{model[1] if model else platform.machine()}, {os.cpu_count()} threads",
    "torch": "",
    "commit": os.environ["GPU_CHECK_COMMIT"],
    "command": os.environ["GPU_CHECK_COMMAND"],
}
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump(record, file, indent=1)
print(json.dumps(record, indent=1))
PYTHON
}

# The folder of PyPI's nvidia-cublas, in case the toolkit has no cuBLAS.
find_cublas() {
  python3 - <<'PYTHON'
import glob, importlib.util, os
spec = importlib.util.find_spec("nvidia")
for root in spec.submodule_search_locations if spec else []:
    for folder in sorted(glob.glob(os.path.join(root, "cu1[0-9]")), reverse=True) + [os.path.join(root, "cublas")]:
        header, library = (os.path.join(folder, part) for part in ("include/cublas_v2.h", "lib/libcublas.so*"))
        if os.path.exists(header) and glob.glob(library):
            print(folder)
            raise SystemExit
PYTHON
}

# configure <folder> <CMake argument>...: warnings are not errors here, so that an unknown compiler does not prevent
# measurements.
configure() {
  local folder=$1 cublas flags=
  shift
  cublas=$(find_cublas)
  # What travels should be small: kernels take a third of the bytes. Older releases do not know the option.
  if [ -n "$target" ]; then case $("$nvcc" --help) in *--compress-mode*) flags=--compress-mode=size ;; esac fi
  cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CUDA_COMPILER="$nvcc" \
    -DCUDAToolkit_ROOT="$(dirname "$(dirname "$(readlink -f "$nvcc")")")" ${cublas:+-DSLUICE_CUBLAS_ROOT="$cublas"} \
    -DCMAKE_CUDA_ARCHITECTURES="$capability" ${flags:+-DCMAKE_CUDA_FLAGS="$flags"} ${deps:+-DCMAKE_PREFIX_PATH="$deps"} \
    -DSLUICE_CUDA=ON -DSLUICE_CUDA_STRICT=OFF -DSLUICE_NATIVE="$([ -n "$target" ] && echo OFF || echo ON)" -DSLUICE_BUILD_TESTS=ON -DSLUICE_BUILD_BENCHMARKS=AUTO \
    -DSLUICE_TORCH=OFF -DSLUICE_BUILD_EXAMPLES=OFF -DSLUICE_INSTALL=OFF -DSLUICE_TEST_FILTER='^$' "$@"
}

# compile <folder> <target>...: everything that can be built, whatever cannot.
compile() { cmake --build "$1" --parallel "$jobs" --target "${@:2}" -- -k 0; }

# For another machine: without symbols, with the libraries that are not the C library's, the driver's or CUDA's own (of
# which it must have cuBLAS; without, what needs it does not start, and counts as failed).
pack() {
  local program library
  mkdir -p "$bin/lib"
  for program in "$bin"/sluice.*; do
    strip "$program" || return
    ldd "$program" | awk '/=> \// { print $3 }'
  done | sort -u | grep -vE '/(libc|libm|ld-linux.*|libpthread|libdl|librt|libcuda|libcublas(Lt)?|libcudart)\.so' |
    while read -r library; do cp -L "$library" "$bin/lib/"; done
  say "packed  $bin: $(du -sm "$bin" | cut -f 1) MiB"
}
# Builds only translate_torch of the examples. The kernels are those of the first build.
build_libtorch() {
  local torch=$1 kernels
  shift
  kernels=$(printf '%s;' "$PWD/$build"/c/cuda/CMakeFiles/sluice.cuda.instances.dir/instances_*.o)
  [ -e "${kernels%%;*}" ] || kernels=''
  set -- ${kernels:+-DSLUICE_TORCH_KERNELS="${kernels%;}"} "$@"
  configure "$build/libtorch" -DCMAKE_PREFIX_PATH="${deps:+$deps;}$torch" -DSLUICE_TORCH=ON -DSLUICE_BUILD_EXAMPLES=AUTO "$@" &&
    compile "$build/libtorch" sluice.libtorch sluice.bench.torch translate_torch
}

smoke() { "$bin/sluice.bench.cuda.top_k" --shapes smoke; }

# A skipped test does not count as passed, since there is a device.
one_test() {
  local program=$1 from=$SECONDS status=0 log
  shift
  log=$build/${program##*/}.$$.log
  "$program" "$@" >"$log" 2>&1 || status=$?
  if [ "$status" -eq 0 ] && grep -q '^SKIPPED: ' "$log"; then status=99; fi
  if [ "$status" -eq 0 ] && ! grep -q 'All tests passed\|[0-9] passed, 0 failed$' "$log"; then status=98; fi # such as: no test has that name
  printf '== %s %s: exit code %s, %s s\n%s\n' "${program##*/}" "$*" "$status" "$((SECONDS - from))" "$(tail -n 60 "$log")"
  rm -f "$log"
  return "$status"
}

# each <processes> <function>: runs it with arguments from standard input; fails if one of the runs fails.
each() { xargs -r -L 1 -P "$1" bash -c 'set -uo pipefail; "$@"' gpu-check "$2"; }

# The lines' tests spend most of their time with references on one core of the host: each type by itself.
tests() {
  local program types=(float __half __nv_bfloat16)
  for program in "$bin"/sluice.test.cuda.*; do
    if [ "${program##*.}" = log_softmax_top_k ]; then
      printf "$program \"%s\"\n" "${types[@]/#/*- }" '~[types]'
    else
      printf '%s\n' "$program"
    fi
  done | each "$jobs" one_test
}

# one_sanitized <tool> <program>: 4 if its time is over before it is.
one_sanitized() {
  local tool=$1 program=$2 from=$SECONDS status=0 log left=$((sanitized_until - $(date +%s))) without=()
  log=$build/${program##*/}.$tool.log
  if [ "$left" -le 0 ]; then echo "== $tool, ${program##*/}: not run, no time was left" && return 4; fi
  # initcheck does not see the bulk stores (TMA) by which cuBLAS writes products of 16-bit numbers: see docs/cuda.md#measured.
  if [ "$tool" = initcheck ] && [ "${program##*.}" = projection ] && "$sanitizer" --help | grep -q -- --kernel-name-exclude; then
    without=(--kernel-name-exclude kns=line_kernel)
  fi
  SLUICE_FEWER=200 timeout -k 2 "$left" "$sanitizer" --tool "$tool" --report-api-errors no --error-exitcode 9 "${without[@]}" \
    "$program" >"$log" 2>&1 || status=$?
  # A program that does not use the device: success if its tests pass.
  if grep -q 'terminated before first instrumented API call' "$log" && grep -q 'All tests passed' "$log"; then
    status=0 && echo 'SUMMARY: 0 errors' >>"$log"
  fi
  case $status in 124 | 137) status=4 ;; esac
  grep -q 'SUMMARY: 0 errors\|RACECHECK SUMMARY: 0 hazards' "$log" || [ "$status" -ne 0 ] || status=98
  if grep -q '^SKIPPED: ' "$log"; then status=99; fi # the tool hides the device
  printf '== %s, %s: exit code %s, %s s\n%s\n' "$tool" "${program##*/}" "$status" "$((SECONDS - from))" "$(tail -n 40 "$log")"
  return "$status"
}

# Four at a time: the tool shadows the device's memory. xargs says 123 whatever failed, so what was cut is
# read from the log.
sanitize() {
  [ -n "$sanitizer" ] || { say "compute-sanitizer was not found: nothing was run under it" && return 1; }
  local tool program said status=0
  export sanitized_until=$(($(date +%s) + budget - 3))
  said=$(for tool in memcheck racecheck initcheck; do
    for program in "$bin"/sluice.test.cuda.*; do
      # The C interface's long decodings take minutes, and its kernels are those of the other tests.
      [ "$tool" = memcheck ] || [ "${program##*.}" != c ] || continue
      printf '%s %s\n' "$tool" "$program"
    done
  done | each 4 one_sanitized) || status=$?
  say "$said"
  [ "$status" -ne 0 ] || return 0
  ! grep -E '^== .*: exit code [0-9]+,' <<<"$said" | grep -qvE ': exit code (0|4),' || return 1
  return 4
}

# Every program of benchmarks/cuda, in turn, with an equal share of the time left; each writes lines of JSON, and says 4
# where time ends it.
benchmarks() {
  local program one status=0 end=$((SECONDS + budget - budget / 10)) programs=("$bin"/sluice.bench.cuda.*) left
  left=${#programs[@]}
  : >"$figures/1-benchmarks.jsonl"
  for program in "${programs[@]}"; do
    "$program" --shapes "$shapes" --seconds "$(((end - SECONDS) / left))" >>"$figures/1-benchmarks.jsonl" ||
      { one=$? && say "$program: exit code $one" && [ "$status" -ne 0 ] && [ "$one" -eq 4 ] || status=$one; }
    echo >>"$figures/1-benchmarks.jsonl" # the last line may be incomplete
    left=$((left - 1))
  done
  return "$status"
}

torch_tests() { one_test "$build/libtorch/bin/sluice.test.libtorch.torch_transformer" '[libtorch-gpu]'; }

decodings() {
  local status=0
  "$build/libtorch/bin/sluice.bench.torch" --device cuda --shapes "$shapes" --seconds "$((budget - budget / 10))" \
    >"$figures/2-decodings.jsonl" || status=$?
  echo >>"$figures/2-decodings.jsonl"
  return "$status"
}

# The example's model, float, beam 5: on the GPU, and on a CPU, on this machine unless gather-deps brought translations.
translations() {
  local tokens=tests/libtorch/sample.tokens expected='' text='60 sentences of the tests'
  local translate=$build/libtorch/bin/translate_torch
  if [ -n "$deps" ] && [ -s "$deps/text/tokens" ]; then
    tokens=$deps/text/tokens
    text=$(cat "$deps/text/name")
    [ ! -s "$deps/text/expected" ] || expected=$deps/text/expected
  fi
  "$translate" --device cuda --input "$tokens" --time >"$build/on_gpu" || return
  if [ -z "$expected" ]; then
    expected=$build/on_cpu
    "$translate" --device cpu --input "$tokens" --time >"$expected" || return
  fi
  python3 - "$build/on_gpu" "$expected" "$text" >"$figures/3-translations.jsonl" <<'PYTHON'
import json, sys
ours, expected = (open(path, encoding="utf-8").read().splitlines() for path in sys.argv[1:3])
if len(ours) != len(expected) or not ours:
    sys.exit(f"{len(ours)} translations, but {len(expected)} of the CPU")
equal = sum(a == b for a, b in zip(ours, expected))
print(json.dumps({"name": "translate_torch", "experiment": "translations", "text": sys.argv[3], "type": "float32",
                  "sentences": len(ours), "equal": equal, "percent": 100 * equal / len(ours)}))
PYTHON
}

# PyTorch, for the shapes measured.
peers() {
  local status=0
  python3 tools/gpu_peers.py --measured "$figures/1-benchmarks.jsonl" --seconds "$((budget - budget / 10))" \
    >"$figures/4-peers.jsonl" || status=$?
  echo >>"$figures/4-peers.jsonl"
  return "$status"
}

page() {
  python3 - "$build/machine.json" "$build/torch" <<'PYTHON'
import json, os, sys
with open(sys.argv[1], encoding="utf-8") as file:
    record = json.load(file)
if os.path.exists(sys.argv[2]):
    with open(sys.argv[2], encoding="utf-8") as file:
        record["torch"] = file.read().strip().split("\n")[-1].split("\t")[0]
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump(record, file, indent=1)
PYTHON
  cat "$figures"/*.jsonl >"$build/measured.jsonl" &&
    python3 tools/gpu-page --machine "$build/machine.json" "$build/measured.jsonl" >"$build/page.md" &&
    cp "$build/page.md" "$out/$page_file" && cp "$build/page.md" "docs/benchmarks/$page_file"
}

export import_torch
export -f say machine find_cublas configure compile pack build_libtorch smoke one_test each tests one_sanitized sanitize
export -f benchmarks torch_tests decodings translations peers page

# Shared by scripts: finds and installs what is missing, times stages, makes folders. To be sourced.

export LC_ALL=C # numbers with a point, whatever the user's language

say() { printf '%s\n' "$*"; }
die() { printf '%s\n' "$*" >&2; exit 1; }

# stage <title> <command>...: runs the command and says how long it took.
stage() {
  local title=$1 began=$SECONDS
  shift
  printf '\n== %s\n' "$title"
  "$@"
  printf -- '-- %s: %s minutes\n' "$title" "$(minutes_since "$began")"
}

minutes_since() { awk -v s="$((SECONDS - $1))" 'BEGIN { printf "%.1f", s / 60 }'; }

cores() { nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 2; }

# How many files of a test program are compiled as one: few units take a quarter less time in all, and up to 2 GB of memory each;
# many keep more processors busy.
tests_in_a_unit() {
  local kilobytes limit
  kilobytes=$(awk '/^MemTotal/ { print $2 }' /proc/meminfo 2>/dev/null || true)
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || true) # of a container; "max": none
  case $limit in
    '' | *[!0-9]*) ;;
    *) if [ $((limit / 1024)) -lt "${kilobytes:-0}" ]; then kilobytes=$((limit / 1024)); fi ;;
  esac
  if [ "$(cores)" -le 4 ] && [ "${kilobytes:-0}" -ge $(($(cores) * 3000000)) ]; then echo 24; else echo 8; fi
}

# has <package>: whether what a package of Debian brings is there, wherever it came from.
has() {
  case $1 in
    g++) command -v "${CXX:-g++}" ;;
    cmake | clang-19 | clang-22) command -v "${1/clang/clang++}" ;;
    ninja-build) command -v ninja ;;
    git | curl | pkg-config | chromium | clang-format-14 | clang-tidy-14) command -v "$1" ;;
    libeigen3-dev) has_header eigen3/Eigen/Core ;;
    nlohmann-json3-dev) has_header nlohmann/json.hpp ;;
    libcli11-dev) has_header CLI/CLI.hpp ;;
    libpng-dev) has_header png.h ;;
    libcpp-httplib-dev) has_header httplib.h ;;
    zlib1g-dev) has_header zlib.h ;;
    libzstd-dev) has_header zstd.h ;;
    libsentencepiece-dev) has_header sentencepiece_processor.h ;;
    libbenchmark-dev) has_header benchmark/benchmark.h ;;
    catch2) has_header catch2/catch.hpp || has_header catch2/catch_test_macros.hpp ;;
    *) dpkg-query -W -f '${Status}' "$1" | grep -q 'ok installed' ;;
  esac >/dev/null 2>&1
}

has_header() {
  local prefix
  for prefix in /usr /usr/local /opt/homebrew ${CMAKE_PREFIX_PATH:+${CMAKE_PREFIX_PATH//[:;]/ }}; do
    [ -e "$prefix/include/$1" ] && return 0
  done
  return 1
}

# need <package>...: installs what is missing with apt-get. Elsewhere it names the packages and goes on: CMake has the last word.
need() {
  local package root=() missing=()
  for package in "$@"; do
    has "$package" || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0

  if ! command -v apt-get >/dev/null; then
    say "Not found, by their Debian names: ${missing[*]}"
    say "If CMake does not find them either, install what it asks for, for example all of it:"
    say "  Fedora    dnf install gcc-c++ cmake ninja-build pkgconf eigen3-devel json-devel cli11-devel sentencepiece-devel catch-devel google-benchmark-devel"
    say "  Arch      pacman -S gcc cmake ninja pkgconf eigen nlohmann-json cli11 catch2 benchmark; sentencepiece from the AUR"
    say "  Homebrew  brew install cmake ninja pkgconf eigen nlohmann-json cli11 sentencepiece catch2 google-benchmark"
    return 0
  fi

  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "Missing: ${missing[*]}. Neither root nor sudo: please install them with apt-get."
    root=(sudo)
  fi
  say "Installing ${missing[*]}"
  "${root[@]}" apt-get -qq update
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
    -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "${missing[@]}" >/dev/null
}

# The oldest tools that do.
check_tools() {
  local tool version
  for tool in "${CXX:-g++}" cmake ninja; do
    command -v "$tool" >/dev/null || die "$tool was not found."
  done
  version=$(cmake --version | awk 'NR == 1 { print $3 }')
  printf '3.25\n%s\n' "$version" | sort -V -C || die "CMake 3.25 or newer is needed, this is $version (pip install cmake has a new one)."
}

# The version of include/sluice/version.hpp. Called in the repository's root.
version_of_headers() { sed -nE 's/.*_VERSION_(MAJOR|MINOR|PATCH) ([0-9]+)$/\2/p' include/sluice/version.hpp | paste -sd.; }

# emptied <folder> <caller's folder>: makes it, or empties it, and prints its whole path. A folder that is not below build/ may
# hold files of the user: it must be empty. Called in the repository's root.
emptied() {
  local folder=$1
  case $folder in
    /*) ;;
    *) folder=$2/$folder ;;
  esac
  # Said step by step: bash forgets set -e in $(...).
  mkdir -p "$folder" && folder=$(cd "$folder" && pwd) || return 1
  case $folder in
    "$PWD"/build/*) rm -rf "$folder" && mkdir "$folder" || return 1 ;;
    *)
      if [ -n "$(ls -A "$folder")" ]; then
        echo "$folder is not empty: choose another folder, or empty it" >&2
        return 1
      fi
      ;;
  esac
  printf '%s\n' "$folder"
}

# ---- what tools/fetch-* share ----

# fetch_from <what> <way>...: calls these functions until one does not set why_not, the reason why what it needs is not to be had; if
# all do, says SKIPPED and each reason. To be called as a plain command, as what they do is: set -e holds then.
fetch_from() {
  local what=$1 way reasons=
  shift
  for way in "$@"; do
    why_not=
    "$way"
    if [ -z "$why_not" ]; then return 0; fi
    reasons+="${reasons:+; }$why_not"
  done
  say "SKIPPED: $what: $reasons"
}

# find_tools <tool>...: false, and why_not, if one is missing.
find_tools() {
  local tool
  for tool in "$@"; do
    command -v "$tool" >/dev/null || { why_not="$tool was not found" && return 1; }
  done
}

# pip_download <folder> <package==version> <option>...: one archive; else false, and why_not.
pip_download() {
  find_tools pip3 || return 1
  pip3 download --quiet --disable-pip-version-check --retries 1 --timeout 30 --no-deps --dest "$1" "${@:3}" "$2" \
    >/dev/null 2>"$1/error" && return 0
  why_not="pip download $2: $(grep -v '^ *$' "$1/error" | tail -n 1)"
  return 1
}

# pip_environment <folder> <what> <package==version>...: an environment of Python with these packages; says SKIPPED if they are not to be
# had, and does nothing if it is already there.
pip_environment() {
  local folder=$1 what=$2 python=python3
  shift 2
  if [ -e "$folder/of" ] && [ "$(cat "$folder/of")" = "$*" ]; then return 0; fi
  rm -rf "$folder"
  "$python" -I -c 'import pip' 2>/dev/null || python=/usr/bin/python3
  if "$python" -m venv --without-pip "$folder" 2>/dev/null && "$python" -m pip --python "$folder/bin/python" install --quiet \
    --disable-pip-version-check --retries 1 --timeout 30 "$@" >/dev/null 2>"$folder/error"; then
    printf '%s\n' "$*" >"$folder/of"
  else
    say "SKIPPED: $what: $(tail -n 1 "$folder/error" 2>/dev/null || printf 'no pip')"
  fi
}

# npm_pack <folder> <package@version>: $npm_archive; else false, and why_not.
npm_pack() {
  find_tools npm || return 1
  if (cd "$1" && npm pack --loglevel=error --fetch-retries=1 "$2" >name 2>error); then
    npm_archive=$1/$(tail -n 1 "$1/name")
    return 0
  fi
  why_not="npm pack $2: $(head -n 1 "$1/error")"
  return 1
}

# same_as <SHA-256> <file>: what came must be the file that was looked at once.
same_as() {
  printf '%s  %s\n' "$1" "$2" | sha256sum --check --status || die "${0##*/}: $(basename "$2") is not the archive that it was"
}

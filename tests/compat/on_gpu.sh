#!/usr/bin/env bash
# Runs the compatibility suite on a machine with a GPU and nvcc, from a checkout with a build directory that was made
#   elsewhere: tests/compat/on_gpu.sh [--build-dir DIR] [--limit-s N] [--out DIR] [STEP...] [-- OPTION...]
# Steps (default: build matrix starts): build (compiles the programs only; what is up to date stays), matrix (both
# modes), sliced and mps (the matrix in one mode), starts, faults, endings, frameworks. --limit-s: for all of them
# together (default: 560). Options behind -- go to run.py (--only, --builds, --runs, --jobs). The build directory needs
# src/gpuctl/gpuctl, src/gpuctld/gpuctld and src/libgpuslice/libgpuslice.so. The tables, and JSON of each step, are left
# in DIR (default: compat/results of the build directory); the tables are printed last.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

build=build
limit_s=560
out=
steps=()
options=()
while (($#)); do
  case $1 in
    --build-dir) build=$2; shift 2 ;;
    --limit-s) limit_s=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --) shift; options=("$@"); break ;;
    build | matrix | sliced | mps | starts | faults | endings | frameworks) steps+=("$1"); shift ;;
    *) echo "usage: on_gpu.sh [--build-dir DIR] [--limit-s N] [--out DIR] [STEP...] [-- OPTION...]" >&2; exit 2 ;;
  esac
done
((${#steps[@]})) || steps=(build matrix starts)
build=$(cd "$build" && pwd) || exit 2
out=${out:-$build/compat/results}
mkdir -p "$out"
if ! "$build/src/gpuctl/gpuctl" --version >&2; then
  echo "on_gpu.sh: $build/src/gpuctl/gpuctl does not run here" >&2
  exit 2
fi

# step NAME COMMAND...: with an equal share of the time that is left for each step to come, and a limit that holds.
end=$((SECONDS + limit_s))
status=0
step() {
  local name=$1 seconds=$(((end - SECONDS) / left)) result
  shift
  left=$((left - 1))
  if ((seconds < 10)); then echo "== $name: no time left" >"$out/$name.txt"; status=1; return; fi
  echo "== $name: $seconds s at most" >&2
  timeout -k 45 $((seconds + 15)) "$@" --build-dir "$build" --limit-s "$seconds" >"$out/$name.txt"
  result=$?
  ((result == 0 || result == 77)) || status=1
  ((result == 0)) || echo "== exit status $result" >>"$out/$name.txt"
}

left=${#steps[@]}
for name in "${steps[@]}"; do
  case $name in
    build) step build "$here/run.py" --build-only ${options[@]+"${options[@]}"} ;;
    matrix) step matrix "$here/run.py" --both-modes --json "$out/matrix.json" ${options[@]+"${options[@]}"} ;;
    sliced) step sliced "$here/run.py" --no-mps --json "$out/sliced.json" ${options[@]+"${options[@]}"} ;;
    mps) step mps "$here/run.py" --mps --json "$out/mps.json" ${options[@]+"${options[@]}"} ;;
    starts) step starts "$here/starts.py" --both-modes 100 ;;
    faults) step faults "$here/faults.py" --both-modes --at-once 2 100 ;;
    endings) step endings "$here/endings.py" --both-modes 3 ;;
    frameworks)
      step frameworks "$here/run.py" --frameworks --both-modes --jobs 3 --runs slice-cold,slice,storm \
        --json "$out/frameworks.json" ;;
  esac
done
for name in "${steps[@]}"; do
  echo "== $name"
  cat "$out/$name.txt"
done
exit "$status"

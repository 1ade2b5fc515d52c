#!/usr/bin/env bash
# Fuzzes the code that reads untrusted bytes: scripts/fuzz.sh [--minutes N] [TARGET...]. Each target of tests/fuzz gets
# N CPU minutes (default 10; 0 only runs the existing inputs), with address and undefined-behaviour checks, in
# build-fuzz/. Each run continues from the inputs that earlier runs found: build-fuzz/corpus/TARGET. An input that makes
# a target fail is kept in build-fuzz/crashes, and the end of its output is shown. The last line: "fuzz: N targets, N
# runs, N crashes". Exit status 1 if there was a crash.
set -euo pipefail
# shellcheck source=scripts/bootstrap.sh
source "$(dirname "${BASH_SOURCE[0]}")/bootstrap.sh"

tree=$root/build-fuzz
all_targets=(ptx fatbin image varlink manager state stub config workload)
# Further inputs to start from, and the words of the format.
declare -A seeds=([ptx]=tests/ptx [fatbin]=tests/ptx/fatbin [image]=tests/ptx/fatbin [config]=etc
                  [workload]=tests/workloads)
declare -A words=([ptx]=ptx [varlink]=json [manager]=json [state]=json [config]=toml [workload]=toml)
longest=4096         # bytes of an input: longer ones take time and seldom show more
slow_s=20            # an input that takes longer is a failure
memory_mb=2048       # so is one that takes more

minutes=10
targets=()
while (($#)); do
  case $1 in
    --minutes) [[ ${2-} =~ ^[0-9]+$ ]] || fail "--minutes needs a number"; minutes=$2; shift ;;
    *) [[ " ${all_targets[*]} " == *" $1 "* ]] || fail "unknown target $1; known: ${all_targets[*]}"; targets+=("$1") ;;
  esac
  shift
done
((${#targets[@]})) || targets=("${all_targets[@]}")

build_fuzzers() {
  if [[ ! -f $tree/build.ninja ]]; then
    CC=clang CXX=clang++ meson setup "$tree" "$root" "-Dtoolkit_root=$toolkit" -Dfuzz=true \
      -Db_sanitize=address,undefined -Db_lundef=false -Dbuildtype=plain -Doptimization=2 -Dcpp_args=-g1 >/dev/null
  fi
  say "building"
  ninja -C "$tree" "${targets[@]/#/tests/fuzz/fuzz-}" >"$tree/last-build.log" 2>&1 ||
    { tail -n 60 "$tree/last-build.log" >&2; fail "the build failed"; }
}

# unpack TARGET: writes the inputs to start from, as bytes. Those in the tree are text; NAME.hex is hexadecimal.
unpack() {
  rm -rf "$tree/seeds/$1"
  mkdir -p "$tree/seeds/$1" "$tree/corpus/$1" "$tree/crashes"
  python3 - "$tree/seeds/$1" "$root/tests/fuzz/corpus/$1" ${seeds[$1]:+"$root/${seeds[$1]}"} <<'PYTHON'
import pathlib, sys
target, *sources = map(pathlib.Path, sys.argv[1:])
files = [path for source in sources for path in sorted(source.rglob("*")) if path.is_file()]
for number, path in enumerate(files):
    data = path.read_bytes()
    (target / f"{number}-{path.stem}").write_bytes(bytes.fromhex(data.decode()) if path.suffix == ".hex" else data)
PYTHON
}

# limit_cpu PID SECONDS: asks a fuzzer to end in an orderly way once it has used that much CPU time.
limit_cpu() {
  local stat ticks
  while stat=$(cat "/proc/$1/stat" 2>/dev/null); do
    read -ra stat <<<"${stat##*) }"
    ticks=$((stat[11] + stat[12]))
    if ((ticks >= $2 * $(getconf CLK_TCK))); then kill -USR1 "$1" 2>/dev/null || true; fi
    sleep 1
  done
}

# fuzz TARGET: runs the target, and adds to `runs` and `crashes`.
fuzz() {
  local log=$tree/$1.log pid status=0 count
  local options=("-max_len=$longest" "-timeout=$slow_s" "-rss_limit_mb=$memory_mb" -print_final_stats=1
                 "-artifact_prefix=$tree/crashes/$1-")
  if [[ -n ${words[$1]-} ]]; then options+=("-dict=$root/tests/fuzz/${words[$1]}.dict"); fi
  if ((minutes == 0)); then options+=(-runs=0); fi
  # What the checker keeps of freed memory, 256 MB by itself, would count as the target's, which may have a bound.
  ASAN_OPTIONS=quarantine_size_mb=16 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
    "$tree/tests/fuzz/fuzz-$1" "${options[@]}" "$tree/corpus/$1" "$tree/seeds/$1" >"$log" 2>&1 &
  pid=$!
  if ((minutes)); then limit_cpu "$pid" $((minutes * 60)) & fi  # with -runs=0 it ends by itself
  wait "$pid" || status=$?
  wait
  count=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  runs=$((runs + ${count:-0}))
  if ((status != 0)); then
    crashes=$((crashes + 1))
    tail -n 40 "$log" >&2
  fi
  say "$1: ${count:-0} runs, $(sed -n 's/.* \(cov: [0-9]* ft: [0-9]* corp: [^ ]*\).*/\1/p' "$log" | tail -n 1)"
}

bootstrap
install_packages clang
build_fuzzers
runs=0
crashes=0
for target in "${targets[@]}"; do
  unpack "$target"
  fuzz "$target"
done
printf 'fuzz: %d targets, %d runs, %d crashes\n' "${#targets[@]}" "$runs" "$crashes"
((crashes == 0))

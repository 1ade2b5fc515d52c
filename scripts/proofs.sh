#!/usr/bin/env bash
# Runs on a machine with a GPU what no software GPU can prove, in parts of nine minutes each.
#   scripts/proofs.sh [--build DIR] [--out DIR] [--limit-s N] [--list] PART...
# --build: a build directory, or what scripts/pack.sh made of one (default: build). --out: where tables, JSON and logs
# go (default: proofs in the build directory). --limit-s: for each part (default: 540). --list: print the parts and
# their commands.
# The tables are printed last. Exit status 0: all that was run is right; what there was no time for is listed.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
compat=tests/compat

other_builds=cubin,rdc,shared

short_train=mps-stream,mps-90,mps-75,ours-strict,ours-max-75
short_compute=alone,mps-stream,mps-90,ours-priority,ours-strict,ours-strict:reserve_by_parts=false,ours-active,ours-hpf
as_90=ours-strict:reserve=0.106,ours-active:reserve=0.106  # as many SMs as MPS's 90 % leaves LS
short_compute+=,$as_90
decode_train=mps-client,mps-stream,ours-priority,ours-priority-own-high,mps-stream-75,ours-priority-max-75
decode_sides=mps-stream-75,ours-max-75,ours-priority-max-75,ours-max-75-ls-plain,ours-priority-batch-plain-75
decode_sliced=sliced,ours-sliced,ours-sliced-priority
decode_sliced+=,ours-sliced-priority:second_time_slice_us=1,ours-sliced-priority:second_time_slice_us=200
resnet_sliced=sliced,ours-sliced-priority,ours-sliced-priority:second_time_slice_us=200
resnet_reserve=alone,mps-90,mps-75,ours-strict,ours-active
for part in 0.12 0.18; do resnet_reserve+=,ours-strict:reserve=$part,ours-active:reserve=$part; done
cells=mps,mps-stream,ours,ours-priority  # one LS beside each batch program
cells_reserve=mps-90,mps-stream-90,$as_90
# Several batch programs: what leaves as many SMs is a percentage for each.
eight_reserve=mps-stream-90,mps-stream-90-of-eight,$as_90
two_reserve=mps-stream-90,mps-stream-90-of-two,$as_90
two_ls=short,decode,resnet
max_train=mps-stream-75,ours-priority-max-75
max_eight=mps-stream-75-of-eight,$max_train
decode_first=compute-10us,compute-100us,compute-5ms,memory-bound,train  # nine minutes are not enough for all
decode_rest=matmul,triton,eight
levels_batch=compute-10us,compute-100us,memory-bound,triton
levels=mps-stream,mps-stream-middle,ours-own-high,ours-priority,ours-priority-own-high,ours-priority-batch-plain

# Part, share of its time, name, command. OUT stands for --out. corun: three rounds in one start of the programs.
# corun-starts: each in a start of its own, for programs that differ by start more than by round.
proofs=$(cat <<TABLE
survive 1 storms-sliced    compat/run.py --no-mps --jobs 12 --builds $other_builds --runs storm
survive-mps 1 storms-mps   compat/run.py --mps --jobs 12 --builds $other_builds,ptx --runs storm
survive-runs 1 runs-sliced  compat/run.py --no-mps --jobs 14 --builds $other_builds --runs slice-cold,slice,storm-pair
survive-runs-mps 1 runs-mps compat/run.py --mps --jobs 10 --builds $other_builds --runs slice-cold,slice,storm-pair
ptx 4     ptx-mps          compat/run.py --mps --jobs 10 --builds ptx --runs storm-pair,slice
ptx 2     frameworks-mps   compat/run.py --mps --jobs 3 --frameworks --runs storm-pair,slice
exec 1    exec-mps         compat/run.py --mps --jobs 3 --only exec_self --builds both,rdc,shared --runs storm-pair
day 1     day-sliced       compat/day.py --modes time-sliced
day-mps 1 day-mps          compat/day.py --modes mps --only [!f]*,fork*
day-faults-mps 1 day-faults compat/day.py --modes mps --only fault_*
faults 2  endings          compat/endings.py --both-modes 3
faults 4  faults-mps       compat/faults.py --mps 50
faults 6  faults-late      compat/faults.py --no-mps --at-once 1 --only fault_* 40
faults 4  starts           compat/starts.py --both-modes 300
short 5   short-train      corun --only-ls short --only-batch train --configurations $short_train
short 5   short-compute    corun --only-ls short --only-batch compute-100us --configurations $short_compute
levels 1  levels           corun --seconds 2 --only-ls short --only-batch $levels_batch --configurations $levels
decode 9  decode-train     corun-starts --seconds 10 --only-ls decode --only-batch train --configurations $decode_train
sides 1   decode-sides     corun --only-ls decode --only-batch train --configurations $decode_sides
sliced 5  decode-sliced    corun --only-ls decode --only-batch train --configurations $decode_sliced
sliced 4  resnet-sliced    corun --only-ls resnet --only-batch matmul --configurations $resnet_sliced
resnet 4  resnet-reserve   corun --only-ls resnet --only-batch matmul --configurations $resnet_reserve
cells-short 1  cells-short   corun --seconds 2 --only-ls short --configurations $cells
cells-fill 1   cells-fill    corun --seconds 2 --only-ls fill --configurations $cells
cells-memory 1 cells-memory  corun --seconds 2 --only-ls memory --configurations $cells
cells-decode 1 cells-decode  corun --seconds 4 --only-ls decode --only-batch $decode_first --configurations $cells
cells-decode-rest 1 decode-rest corun --seconds 4 --only-ls decode --only-batch $decode_rest --configurations $cells
cells-resnet 1 cells-resnet  corun --seconds 2 --only-ls resnet --configurations $cells
reserve-short 1 reserve-short corun --seconds 2 --only-ls short --configurations $cells_reserve
reserve-fill 1 reserve-fill corun --seconds 2 --only-ls fill --configurations $cells_reserve
reserve-memory 1 reserve-memory corun --seconds 2 --only-ls memory --configurations $cells_reserve
reserve-decode 1 reserve-decode corun --seconds 4 --only-ls decode --configurations $cells_reserve
reserve-resnet 1 reserve-resnet corun --seconds 2 --only-ls resnet --configurations $cells_reserve
reserve-eight 1 reserve-eight corun --seconds 2 --only-batch eight --configurations $eight_reserve
reserve-two 1 reserve-two corun --seconds 4 --only-batch two-train --only-ls $two_ls --configurations $two_reserve
max-eight 1 max-eight corun --seconds 2 --only-ls fill,decode --only-batch eight --configurations $max_eight
max-train 1 max-train corun --seconds 4 --only-ls fill,decode,resnet --only-batch train --configurations $max_train
TABLE
)

build=$root/build
out=
limit_s=540
parts=()
while (($#)); do
  case $1 in
    --build) build=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --limit-s) limit_s=$2; shift 2 ;;
    --list) echo "$proofs"; exit 0 ;;
    -*) echo "usage: proofs.sh [--build DIR] [--out DIR] [--limit-s N] [--list] PART..." >&2; exit 2 ;;
    *)
      if ! cut -d ' ' -f 1 <<<"$proofs" | grep -qxF -- "$1"; then
        echo "proofs.sh: no part $1; there are $(cut -d ' ' -f 1 <<<"$proofs" | uniq | paste -sd ' ')" >&2
        exit 2
      fi
      parts+=("$1"); shift ;;
  esac
done
((${#parts[@]})) || { echo "proofs.sh: which part? --list prints them" >&2; exit 2; }
build=$(cd "$build" && pwd) || exit 2
out=${out:-$build/proofs}
mkdir -p "$out"
if ! "$build/src/gpuctl/gpuctl" --version >&2; then
  echo "proofs.sh: $build/src/gpuctl/gpuctl does not run here" >&2
  exit 2
fi

# proof NAME SECONDS COMMAND...: with a limit that holds.
status=0
proof() {
  local name=$1 seconds=$2 result
  shift 2
  if ((seconds < 15)); then echo "no time left" >"$out/$name.txt"; status=1; return; fi
  echo "== $name: $seconds s at most: $*" >&2
  case $1 in
    compat/*)
      local program=$root/tests/$1
      shift
      timeout -k 45 $((seconds + 15)) "$program" --build-dir "$build" --limit-s "$seconds" "$@" >"$out/$name.txt"
      ;;
    corun | corun-starts)
      local quick=(--quick)
      [[ $1 == corun ]] || quick=()
      shift
      timeout -k 45 $((seconds + 15)) "$root/bench/corun.sh" --build-dir "$build" --limit-s "$seconds" \
        ${quick[@]+"${quick[@]}"} --rounds 3 --seconds 3 --out "$out/$name" "$@" >"$out/$name.txt"
      ;;
  esac
  result=$?
  ((result == 0 || result == 77)) || { status=1; echo "exit status $result" >>"$out/$name.txt"; }
}

for part in "${parts[@]}"; do
  end=$((SECONDS + limit_s))
  left=$(awk -v part="$part" '$1 == part { sum += $2 } END { print sum }' <<<"$proofs")
  [[ $part != survive* ]] || "$root/$compat/run.py" --build-dir "$build" --build-only --builds "$other_builds,ptx" \
    --limit-s 150 >"$out/build.txt"
  while read -r -a row; do
    [[ ${row[0]} == "$part" ]] || continue
    command=("${row[@]:3}")
    proof "${row[2]}" $(((end - SECONDS) * row[1] / left)) "${command[@]//OUT/$out}"
    left=$((left - row[1]))
  done <<<"$proofs"
done
for part in "${parts[@]}"; do
  while read -r of _ name _; do
    [[ $of == "$part" ]] || continue
    echo "== $name"
    cat "$out/$name.txt"
  done <<<"$proofs"
done
exit "$status"

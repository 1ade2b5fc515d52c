#!/usr/bin/env bash
# Measures what docs/measurements.md reports, on the GPU there is, under MPS: both sides of each figure in one run.
#   scripts/measure.sh [--build DIR] [--out DIR] [--steps NAME,...] [--seconds N] [--no-mps] [--rehearse]
# One after the other: evict, latency, overhead, launch, identical; about four minutes in all on an H200. With --steps
# suite,suitealone,storms overhead and storms of all benchmark kernels; with --steps opaque, which needs PyTorch, beside
# cuBLAS; with --steps programs real programs (docs/compatibility.md), with --steps starts how soon one of PyTorch is
# there; with --steps guard, which needs Triton, a kernel that can only be guarded; with --steps schedulers policies for
# jobs, with --steps sidebyside pairs under sim (docs/policies.md);
# with --steps random the kernels of tests/random, new ones for so many seconds (120);
# with --steps byhand a kernel that is preemptible by hand; with --steps sizes some kernels at several sizes;
# with --steps crowd, also --no-mps, all of them, eight programs at a time;
# with --no-mps --steps timeslice, beside cuBLAS where programs take turns; with --no-mps --steps memcheck under
# compute-sanitizer. Each step has a gpuctld of its own and a time limit; one that fails leaves its rows
# so far, and the next goes on.
# --build: binaries that are built already (default: build, built now). --out: raw.jsonl (every result as it was
# printed), table.txt, log.txt and gpuctld.log go there (default: build/measurements). --steps: some of those that
# --steps help lists.
# --no-mps: leave MPS as it is. --rehearse: small sizes on the software GPU, a minute or two, to try the script; its
# figures mean nothing.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/bootstrap.sh
source "$here/bootstrap.sh"

binaries=
out=
mps=yes
options=()
while (($#)); do
  case $1 in
    --build) binaries=$(cd "$2" && pwd); shift 2 ;;
    --out) out=$2; shift 2 ;;
    --steps | --seconds) options+=("$1" "$2"); shift 2 ;;
    --no-mps) mps=; shift ;;
    --rehearse) options+=(--rehearse); mps=; shift ;;
    *) fail "usage: measure.sh [--build DIR] [--out DIR] [--steps NAME,...] [--seconds N] [--no-mps] [--rehearse]" ;;
  esac
done
if [[ -z $binaries ]]; then
  bootstrap
  build_tree
  build_tree tests/cuda/vector_add_static tests/cuda/matrix_mul_static tests/cuda/reduction_static \
    tests/cuda/preemptible tests/random/random-kernels real-programs
  binaries=$build
fi
# shellcheck source=scripts/instance.sh
source "$here/instance.sh"

out=${out:-$build/measurements}
mkdir -p "$out"
[[ -z $mps ]] || start_mps
export PYTHONPATH=$root${PYTHONPATH:+:$PYTHONPATH} PYTHONDONTWRITEBYTECODE=1
python3 -u -m bench.measure --build "$binaries" --out "$out" --scratch "$scratch" "${options[@]}" \
  2> >(stdbuf -oL tee "$out/log.txt" >&2)

#!/usr/bin/env bash
# Measures the figures of docs/engineering-notes.md on the machine's GPU, under MPS. Both sides of each figure are measured
# in one run.
#   scripts/measure.sh [--build DIR] [--out DIR] [--steps NAME,...] [--seconds N] [--no-mps] [--rehearse]
# The default steps, one after the other: evict, latency, overhead, launch, identical; about four minutes in all on an
# H200. Other steps, with --steps:
#   suite,suitealone,storms   overhead and storms of all benchmark kernels
#   killed       LS beside batch while gpuctld is killed once a second, for five minutes; some seven in all
#   opaque       LS beside cuBLAS; needs PyTorch
#   programs     real programs (docs/compatibility.md)
#   starts       how long a PyTorch program takes to start
#   schedulers   policies for jobs (docs/policies.md)
#   handover     where the time between two programs' kernels goes, from their agents' traces
#   effisha      EffiSha's kernels under both of its policies
#   evictions    EffiSha's kernels launched again and again: evictions by priority; some three minutes
#   curve,curvebytime   overhead against the delay of an eviction, by chunk length; some four minutes and one
#   factors,effisha10   overhead of chunks of a fixed number of block-tasks; some five and two minutes
#   flep         FLEP's delays, triplets and spatial preemption; up to nine minutes
#   reorder      FLEP's triplets, the shortest first without preemption; some two minutes
#   smguard      SMGuard's pairs, beside MPS; up to nine minutes
#   smguard17    wall time of whole programs with rewritten kernels, and without gpuctl; some three minutes
#   remapping    SMGuard's kernels that lose SMs while they run; some three minutes
#   frs          FRS's applications under all of its policies; up to nine minutes
#   occupancy    registers, threads and shared memory of an SM in use, by kernel (SiM, SMGuard); a minute or two
#   slots        issue slots in use, by kernel (SiM); with --no-mps; needs Nsight Compute; a minute
#   sidebyside   pairs of kernels under sim (docs/policies.md)
#   simpairs     SiM's pairs under sim, beside MPS; three rounds, more than ten minutes
#   cpubound     loops that are bound by their CPU, of C++, PyTorch, JAX and CuPy, as far as Python has these: what a
#                slice costs them, sixty rounds by turns, all variants of a program on the same processors, for
#                --seconds in all (240 or more is good); also with --no-mps.
#                CPU_BOUND_PROGRAMS=launch_loop,unet: only these of launch_loop, unet, jax_steps, cupy_elementwise
#   random       the kernels of tests/random, new ones for --seconds (120)
#   sizes        some kernels at several sizes
#   crowd        all kernels, eight programs at a time; also with --no-mps
#   timeslice    LS beside cuBLAS where programs take turns; with --no-mps
#   quotas,weights,freeze,memory,accounts   what slices are set to beside what programs get; with --no-mps; some seven
#                minutes in all
#   devices,admission   one program on two GPUs; what is refused as it cannot be kept; with --no-mps; two minutes
#   swap,kept,energy   memory of frozen programs on the host, memory kept for a slice, energy; with --no-mps; need
#                PyTorch; up to four minutes
#   screen       the screen of README.md; with --no-mps
#   memcheck     all kernels under compute-sanitizer; with --no-mps
# Each step has its own gpuctld and a time limit. If a step fails, its rows so far stay, and the next step runs.
# --build: binaries that are built already (default: build, built now). --out: directory for raw.jsonl (every result as
# it was printed), table.txt, log.txt and gpuctld.log (default: build/measurements). --steps: names from the list that
# --steps help prints.
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
    tests/random/random-kernels real-programs bench/launch-loop
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

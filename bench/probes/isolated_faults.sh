#!/usr/bin/env bash
# What faults of other programs do to one that is isolated from them (docs/design/isolation.md): by time-slicing, in a
# stock MPS beside which it is, and as gpuctl isolates it. On a machine with a GPU, nvcc and MPS's programs, in compute
# mode DEFAULT, in some five minutes. It changes no setting of the GPU.
#   isolated_faults.sh BUILD [FAULTS]     FAULTS of each kind in each way; 100 if it is left out
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
each=$(((${2:-100} + 3) / 4))
scratch=$(mktemp -d)
pids=()
end() {
  ((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true
  wait
  rm -rf "$scratch"
}
trap end EXIT
nvcc -arch=native -o "$scratch/fault" "$here/isolated_faults.cu" 2>/dev/null
mkdir "$scratch/none" "$scratch/mps"
nvidia-smi --query-gpu=name,driver_version,compute_mode --format=csv,noheader || true

ls_run() { # COMMAND...: LS, started by it, until it is told to end
  exec "$@" "$build/kernels/gpuslice-bench" run work --blocks 132 --calibrate-us 300 --arrival poisson \
    --period-us 4000 --check last --seconds 600 --announce
}
faults() { # KIND COMMAND...: one after the other, each started by the command
  local kind=$1
  shift
  for _ in $(seq "$each"); do
    local status=0
    timeout 30 "$@" "$scratch/fault" "$kind" >/dev/null 2>&1 || status=$?
    echo "$status"
  done
}
# NAME, command before LS -- command before the others
beside() {
  local name=$1 before=()
  shift
  while [[ $1 != -- ]]; do
    before+=("$1")
    shift
  done
  shift
  for kind in clean address misaligned trap assert kill clean; do
    ls_run "${before[@]}" >"$scratch/ls" 2>"$scratch/begun" &
    local ls=$! workers=()
    until grep -q started "$scratch/begun"; do sleep 0.1; done
    for worker in 1 2 3 4; do
      faults "$kind" "$@" >"$scratch/statuses.$worker" 2>/dev/null &
      workers+=($!)
    done
    wait "${workers[@]}"
    kill -INT "$ls" 2>/dev/null || echo "$name, $kind: LS had ended before the others"
    local status=0
    wait "$ls" || status=$?
    echo "$name, $kind: LS status $status; $(grep -E '^(latency|response)' "$scratch/ls" | tr -s ' ' | tr '\n' ';')" \
      "others' statuses $(cat "$scratch"/statuses.? | sort -n | uniq -c | awk '{printf "%s%d x %s", s, $1, $2; s = ", "}')"
  done
}

echo "LS: columns are p50, p90, p99, max, mean in us; response: from the time at which a request was due"
beside time-sliced env "CUDA_MPS_PIPE_DIRECTORY=$scratch/none" -- env "CUDA_MPS_PIPE_DIRECTORY=$scratch/none"
CUDA_MPS_PIPE_DIRECTORY=$scratch/mps CUDA_MPS_LOG_DIRECTORY=$scratch/mps setsid nvidia-cuda-mps-control -f >/dev/null 2>&1 &
pids+=($!)
until [[ -e $scratch/mps/control ]]; do sleep 0.1; done
beside "stock MPS, LS outside" env "CUDA_MPS_PIPE_DIRECTORY=$scratch/none" -- env "CUDA_MPS_PIPE_DIRECTORY=$scratch/mps"
echo quit | CUDA_MPS_PIPE_DIRECTORY=$scratch/mps nvidia-cuda-mps-control >/dev/null
export GPUCTL_SOCKET=$scratch/socket
gpuctl=$build/src/gpuctl/gpuctl
"$build/src/gpuctld/gpuctld" --config /dev/null --state "$scratch/state" >"$scratch/log" 2>&1 &
pids+=($!)
until "$gpuctl" status >/dev/null 2>&1; do sleep 0.1; done
"$gpuctl" create-slice ls --isolation isolated --priority 50
"$gpuctl" create-slice batch
beside "gpuctl, LS isolated" "$gpuctl" run --slice ls -- "$gpuctl" run --slice batch

#!/usr/bin/env bash
# How long does an LS of greater priority wait under hpf, by hardware queues of its programs? On the software GPU.
#   hpf_queues.sh BUILD QUEUES      BUILD: a build directory
# Two batch programs have one priority, so all take turns: one runs all the time, the other is idle. Prints the LS's
# times from launch to end in us, of 40 launches.
set -euo pipefail
build=$(cd "$1" && pwd)
queues=$2
scratch=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$scratch"' EXIT
export PATH=$build/src/gpuctl:$build/src/gpuctld:$PATH LD_LIBRARY_PATH=$build/softgpu GPUCTL_SOCKET=$scratch/socket
export SOFTGPU_TABLE=$scratch/table SOFTGPU_SMS=8 SOFTGPU_MPS_QUEUES=120
gpuctld --software-gpu --socket "$GPUCTL_SOCKET" --state "$scratch/state" >"$scratch/log" 2>&1 &
until gpuctl status >/dev/null 2>&1; do sleep 0.05; done
gpuctl set / policy=hpf
gpuctl create-slice ls --priority 50
gpuctl create-slice batch
export CUDA_DEVICE_MAX_CONNECTIONS=$queues
bench=$build/kernels/gpuslice-bench
batch=(gpuctl run --slice batch "$bench" run work --iterations 4)
"${batch[@]}" --blocks 8 --arrival periodic --period-us 60000000 --count 2 >/dev/null &
"${batch[@]}" --blocks 1600 --depth 2 --seconds 12 >/dev/null &
gpuctl run --slice ls "$bench" run work --blocks 32 --iterations 4 --arrival periodic --period-us 250000 --seconds 10 \
  --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["latency_us"])'

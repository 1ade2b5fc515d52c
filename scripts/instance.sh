# shellcheck shell=bash
# Sourced by demo.sh and measure.sh: starts a private gpuctld in a scratch directory and, if asked, a private MPS. Ends
# both, and every program started here, on every exit of the script.
#
# Sets: scratch (a directory that is removed at the end), started (process ids to end). Expects: binaries (a build
# directory) and say/fail.

scratch=$(mktemp -d "${TMPDIR:-/tmp}/gpuctl.XXXXXX")
started=()
mps_running=
export GPUCTL_SOCKET=$scratch/io.gpuctl

end_instance() {
  trap - EXIT INT TERM HUP
  local pid
  for pid in "${started[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
  for pid in "${started[@]}"; do end_process "$pid"; done
  [[ -z $mps_running ]] || echo quit | timeout 20 nvidia-cuda-mps-control >/dev/null 2>&1 || true
  rm -rf "$scratch"
}

# end_process PID: waits two seconds for the process to end, then kills it.
end_process() {
  local tries
  for ((tries = 0; tries < 40; ++tries)); do
    kill -0 "$1" 2>/dev/null || return 0
    sleep 0.05
  done
  kill -KILL "$1" 2>/dev/null || true
}

trap end_instance EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# start_mps: starts a private MPS for all programs started later. Does nothing without the control program of MPS.
start_mps() {
  if ! command -v nvidia-cuda-mps-control >/dev/null; then
    say "no nvidia-cuda-mps-control here: going on without MPS"
    return 0
  fi
  mkdir -p "$scratch/mps" "$scratch/mps-log"
  export CUDA_MPS_PIPE_DIRECTORY=$scratch/mps CUDA_MPS_LOG_DIRECTORY=$scratch/mps-log
  setsid timeout 20 nvidia-cuda-mps-control -d >/dev/null 2>&1 || fail "MPS does not start"
  mps_running=yes
}

# start_gpuctld [OPTION...]: starts a private daemon and returns when it answers. Sets gpuctld_pid.
start_gpuctld() {
  # shellcheck disable=SC2154  # the sourcing script sets binaries
  "$binaries/src/gpuctld/gpuctld" --socket "$GPUCTL_SOCKET" --state "$scratch/state" "$@" >"$scratch/gpuctld.log" 2>&1 &
  gpuctld_pid=$!
  started+=("$gpuctld_pid")
  local tries
  for ((tries = 0; tries < 600; ++tries)); do
    if gpuctl status >/dev/null 2>&1; then return 0; fi
    kill -0 "$gpuctld_pid" 2>/dev/null || break
    sleep 0.05
  done
  cat "$scratch/gpuctld.log" >&2
  fail "gpuctld does not start"
}

stop_gpuctld() {
  kill -TERM "$gpuctld_pid" 2>/dev/null || true
  end_process "$gpuctld_pid"
  wait "$gpuctld_pid" 2>/dev/null || true
}

gpuctl() { "$binaries/src/gpuctl/gpuctl" "$@"; }

# field FILE EXPRESSION: a value of a JSON file, by a Python expression: field run.json 'd["latency_us"]["p99"]'
field() {
  python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"
}

# soon SECONDS: the time that far from now, by CLOCK_MONOTONIC, in nanoseconds, for --start-at.
soon() { python3 -c 'import sys, time; print(time.monotonic_ns() + int(float(sys.argv[1]) * 1e9))' "$1"; }

#!/usr/bin/env bash
# Builds with address and undefined-behaviour checks, then with thread checks, and runs the unit tests in both:
# scripts/sanitize.sh [--system|--all-system] [address|thread]. With --system also some of the system tests: gpuctl,
# gpuctld, libgpuslice and the software GPU together; with --all-system all that can pass so, which takes hours. Build
# directories: build-address, build-thread. Errors found in programs of a system test are in their sanitizer-reports.
set -euo pipefail
# shellcheck source=scripts/bootstrap.sh
source "$(dirname "${BASH_SOURCE[0]}")/bootstrap.sh"

declare -A checks=([address]="address,undefined" [thread]=thread)
# public_api watches running kernels by copying half a megabyte that they write: with thread checks that takes minutes,
# as 1,000 launches of a graph in graph_parts do.
both="identical streams daemon_restart graphs graph_levels ioctl cooperative confine cubin defects ways_in
  background_forms resize shared_memory in_flight_limit opaque durations joining told"
declare -A system_tests=([address]="$both public_api graph_parts" [thread]="$both")
# Of --all-system. With address checks all but these: boot passes no options on, starved takes malloc away from the
# sanitizer as well, and the others have limits of time and memory that only programs without checks keep.
not_with_address="boot starved budgets"
# With thread checks only these besides: no program that nvcc built loads a library with thread checks without their
# runtime, and in other tests kernels race or are watched on purpose.
thread_too="children client_death devices disobey hostile_daemon hostile_program in_force mps_queues no_gpu programs
  reserve reserve_by_parts storm-histogram storm-reduction storm-vectorAdd top upgrade waiting_streams"
declare -A runtimes=([address]=libasan.so [thread]=libtsan.so)

address_options="detect_stack_use_after_return=1"
undefined_options="halt_on_error=1:print_stacktrace=1"
thread_options="halt_on_error=1:second_deadlock_stack=1"

# check NAME: builds and runs the unit tests under that sanitizer, then the system tests if requested.
check() {
  local tree=$root/build-$1
  if [[ ! -f $tree/build.ninja ]]; then
    # A report needs only line numbers; full debug information doubles the compile time. With precompiled headers GCC 12
    # crashes where it optimizes the software GPU under thread checks.
    meson setup "$tree" "$root" "-Dtoolkit_root=$toolkit" "-Db_sanitize=${checks[$1]}" -Db_lundef=false \
      -Db_pch=false -Dbuildtype=plain -Doptimization=1 -Dcpp_args=-g1 >/dev/null
  fi
  say "$1: building"
  ninja -C "$tree" >"$tree/last-build.log" 2>&1 || { tail -n 60 "$tree/last-build.log" >&2; fail "the build failed"; }
  say "$1: unit tests"
  export ASAN_OPTIONS=$address_options UBSAN_OPTIONS=$undefined_options TSAN_OPTIONS=$thread_options
  meson test -C "$tree" --no-rebuild --no-suite system --print-errorlogs --timeout-multiplier 5 || status=1
  python3 "$root/scripts/count_tests.py" "$tree/meson-logs" || status=1
  if [[ -n $system ]]; then check_system "$1" "$tree"; fi
}

# check_system NAME TREE: sanitizers write their reports to files, since a test may not check the exit status of each
# program. gpuctl run puts libgpuslice in front of the sanitizer's runtime, which wants to be first and is told not to
# insist. libgpuslice defines none of the functions that the runtime intercepts, except dlsym
# (src/libgpuslice/base/dlsym.cc). A program that is built without the sanitizer needs the runtime preloaded as well:
# the tests take it from GPUCTL_SANITIZER_RUNTIME.
check_system() {
  local reports=$2/sanitizer-reports
  rm -rf "$reports" && mkdir "$reports"
  say "$1: system tests"
  local programs=(tests/driver/{defects,graph_levels,graph_storm,graphs,image_shell,ioctls,shared_memory}
    tests/driver/{slice_shell,sm_watch,streams,told_linked,ways_in}
    tests/cuda/{cubin_program,cubin_program_linked,libcubin_plugin.so,told,devices}
    tests/cuda/{long_image.fatbin,long_image_with_variable.fatbin})
  if [[ $system == all ]]; then programs=(meson-test-prereq); fi
  ninja -C "$2" "${programs[@]}" >>"$2/last-build.log" 2>&1 || fail "the system tests' programs cannot be built"
  # Leaks are checked in the unit tests only. At the end of these programs the leak checker itself crashes while it
  # walks their thread-local storage (signal 11). If it skips that, it reports memory as lost that only a thread holds.
  export ASAN_OPTIONS=$address_options:detect_leaks=0:verify_asan_link_order=0:log_path=$reports/address
  export UBSAN_OPTIONS=$undefined_options:log_path=$reports/undefined
  export TSAN_OPTIONS=$thread_options:log_path=$reports/thread
  GPUCTL_SANITIZER_RUNTIME=$(c++ "-print-file-name=${runtimes[$1]}")
  export GPUCTL_SANITIZER_RUNTIME
  local tests
  read -rd '' -a tests < <(chosen_tests "$1" "$2") || true  # of all its lines
  meson test -C "$2" --no-rebuild --print-errorlogs --timeout-multiplier 5 "${tests[@]}" || status=1
  python3 "$root/scripts/count_tests.py" "$2/meson-logs" || status=1
  local found=("$reports"/*)
  [[ -e ${found[0]} ]] || return 0
  head -n 60 "${found[0]}" >&2
  say "$1: ${#found[@]} reports in $reports"
  status=1
}

# chosen_tests NAME TREE: the names of the system tests to run.
chosen_tests() {
  if [[ $system == some ]]; then
    echo "${system_tests[$1]}"
  elif [[ $1 == thread ]]; then
    echo "${system_tests[$1]} $thread_too"
  else
    meson test -C "$2" --no-rebuild --list --suite system | sed -n 's|.* / ||p' |
      grep -vxFf <(tr ' ' '\n' <<<"$not_with_address")
  fi
}

system=
names=()
for argument in "$@"; do
  case $argument in
    --system) system=some ;;
    --all-system) system=all ;;
    *) names+=("$argument") ;;
  esac
done
((${#names[@]})) || names=(address thread)
for name in "${names[@]}"; do [[ -v checks[$name] ]] || fail "unknown check $name: address or thread"; done
bootstrap
status=0
for name in "${names[@]}"; do check "$name"; done
exit "$status"

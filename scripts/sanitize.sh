#!/usr/bin/env bash
# Builds with address and undefined-behaviour checks, then with thread checks, and runs the unit tests in both:
# scripts/sanitize.sh [address|thread]. Build directories: build-address, build-thread.
set -euo pipefail
# shellcheck source=scripts/bootstrap.sh
source "$(dirname "${BASH_SOURCE[0]}")/bootstrap.sh"

declare -A checks=([address]="address,undefined" [thread]=thread)
export ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1

# check NAME: builds and runs the unit tests under that sanitizer.
check() {
  local tree=$root/build-$1
  if [[ ! -f $tree/build.ninja ]]; then
    # Line numbers are all that a report needs, and half of the time the compiler would take.
    meson setup "$tree" "$root" "-Dtoolkit_root=$toolkit" "-Db_sanitize=${checks[$1]}" -Db_lundef=false \
      -Dbuildtype=plain -Doptimization=1 -Dcpp_args=-g1 >/dev/null
  fi
  say "$1: building"
  ninja -C "$tree" >"$tree/last-build.log" 2>&1 || { tail -n 60 "$tree/last-build.log" >&2; fail "the build failed"; }
  say "$1: unit tests"
  meson test -C "$tree" --no-rebuild --no-suite system --print-errorlogs --timeout-multiplier 5 || status=1
  python3 "$root/scripts/count_tests.py" "$tree/meson-logs" || status=1
}

names=("$@")
((${#names[@]})) || names=(address thread)
for name in "${names[@]}"; do [[ -v checks[$name] ]] || fail "unknown check $name: address or thread"; done
bootstrap
status=0
for name in "${names[@]}"; do check "$name"; done
exit "$status"

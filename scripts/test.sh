#!/usr/bin/env bash
# Builds everything and runs every test. The last line has the counts: "N passed, N failed", and ", N skipped" if some
# need something that this machine lacks. Arguments go to meson test: scripts/test.sh --suite system
# MESON_TESTTHREADS says how many tests run at a time. By default that is one more than there are processors: system
# tests wait for the software GPU part of their time. With more beside them, on a slow machine, kernels end before a test
# has seen what it waits for.
set -euo pipefail
# shellcheck source=scripts/bootstrap.sh
source "$(dirname "${BASH_SOURCE[0]}")/bootstrap.sh"

bootstrap
install_tools
build_tree
export MESON_TESTTHREADS=${MESON_TESTTHREADS:-$(($(nproc) + 1))}
tests_status=0
# A limit is there for what hangs: on a slow machine all else takes several times as long.
meson test -C "$build" --no-rebuild --print-errorlogs --timeout-multiplier 4 "$@" || tests_status=$?
python3 "$root/scripts/count_tests.py" "$build/meson-logs" || exit
exit "$tests_status"

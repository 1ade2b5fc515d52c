#!/usr/bin/env bash
# Builds everything and runs every test. The last line says how many ran: "N passed, N failed", and ", N skipped" when
# some need what this machine does not have. Arguments go to meson test: scripts/test.sh --suite system
set -euo pipefail
# shellcheck source=scripts/bootstrap.sh
source "$(dirname "${BASH_SOURCE[0]}")/bootstrap.sh"

bootstrap
build_tree
tests_status=0
meson test -C "$build" --no-rebuild --print-errorlogs "$@" || tests_status=$?
python3 "$root/scripts/count_tests.py" "$build/meson-logs" || exit
exit "$tests_status"

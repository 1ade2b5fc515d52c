#!/usr/bin/env bash
# Accidents for the daemon and its clients, on the software GPU: scripts/chaos.sh [--minutes N] [--seed S]. Builds what
# is needed, then lets accidents befall them in random order for N minutes (default 5), and checks after each that all
# is well (tests/system/daemon/chaos_test.py says what that means). Prints how often each kind happened and how long it
# took until all was well again. Exit status 1 if something was not.
set -euo pipefail
# shellcheck source=scripts/bootstrap.sh
source "$(dirname "${BASH_SOURCE[0]}")/bootstrap.sh"
# shellcheck source=scripts/long_test.sh
source "$root/scripts/long_test.sh"

long_test daemon.chaos_test accidents "$@"

#!/usr/bin/env bash
# Hostile users for the daemon, on the software GPU: scripts/hostile.sh [--minutes N] [--seed S]. Needs root, to be
# others. Builds what is needed, then lets users attack the daemon in random order for N minutes (default 5) while
# root's calls are timed and other programs run (tests/system/daemon/hostile_user_test.py says what is checked). Prints
# what was sent, root's waits under attack and at rest, and what the daemon used. Exit status 1 if something was not
# well.
set -euo pipefail
# shellcheck source=scripts/bootstrap.sh
source "$(dirname "${BASH_SOURCE[0]}")/bootstrap.sh"
# shellcheck source=scripts/long_test.sh
source "$root/scripts/long_test.sh"

long_test daemon.hostile_user_test attacks "$@"

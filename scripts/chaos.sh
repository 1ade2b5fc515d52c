#!/usr/bin/env bash
# Accidents for the daemon and its clients, on the software GPU: scripts/chaos.sh [--minutes N] [--seed S]. Builds what
# is needed, then lets accidents befall them in random order for N minutes (default 5), and checks after each that all
# is well (tests/system/chaos_test.py says what that means). Prints how often each kind happened and how long it took
# until all was well again. Exit status 1 if something was not.
set -euo pipefail
# shellcheck source=scripts/bootstrap.sh
source "$(dirname "${BASH_SOURCE[0]}")/bootstrap.sh"

minutes=5
seed=$RANDOM
while (($#)); do
  case $1 in
    --minutes) [[ ${2-} =~ ^[0-9]+$ ]] || fail "--minutes needs a number"; minutes=$2; shift ;;
    --seed) [[ ${2-} =~ ^[0-9]+$ ]] || fail "--seed needs a number"; seed=$2; shift ;;
    *) fail "unknown argument $1; known: --minutes N, --seed S" ;;
  esac
  shift
done

bootstrap
build_tree
say "$minutes minutes of accidents, seed $seed"
GPUCTL_BUILD=$build exec python3 "$root/tests/system/chaos_test.py" --minutes "$minutes" --seed "$seed"

# shellcheck shell=bash
# What chaos.sh and hostile.sh share; they source it. Expects: root, build, and the functions of bootstrap.sh.

# long_test TEST WHAT [--minutes N] [--seed S]: builds what is needed, then runs the test for N minutes (default 5).
long_test() {
  local test=$1 what=$2 minutes=5 seed=$RANDOM
  shift 2
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
  say "$minutes minutes of $what, seed $seed"
  # shellcheck disable=SC2154  # bootstrap.sh sets both
  cd "$root" || fail "$root: cannot be entered"
  # shellcheck disable=SC2154
  GPUCTL_BUILD=$build exec python3 -m "tests.system.$test" --minutes "$minutes" --seed "$seed"
}

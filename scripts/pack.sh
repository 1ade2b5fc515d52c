#!/usr/bin/env bash
# Makes a small copy of a build directory that runs on another machine: what measurements and the compatibility suite
# start there, stripped.
#   scripts/pack.sh [--build DIR] OUT
# OUT must not exist, or be an earlier copy. Everything is built first, if --build is not given.
set -euo pipefail
# shellcheck source=scripts/bootstrap.sh
source "$(dirname "${BASH_SOURCE[0]}")/bootstrap.sh"

usage() { fail "usage: pack.sh [--build DIR] OUT"; }
binaries=
out=
while (($#)); do
  case $1 in
    --build) (($# > 1)) || usage; binaries=$2; shift 2 ;;
    -*) usage ;;
    *) [[ -z $out ]] || usage; out=$1; shift ;;
  esac
done
[[ -n $out ]] || usage
[[ ! -e $out || -e $out/.packed ]] || fail "$out: exists, and is no earlier copy"
if [[ -z $binaries ]]; then
  bootstrap
  build_tree
  build_tree tests/random/random-kernels bench/corun-kernels bench/launch-loop
  binaries=$build
fi

needed=(src/gpuctl/gpuctl src/gpuctld/gpuctld src/libgpuslice/libgpuslice.so src/gpuslice-compile/gpuslice-compile
        kernels/gpuslice-bench bench/corun-kernels bench/launch-loop)
wanted=(tests/random/random-kernels tests/pair_forms/pair-forms)
rm -rf "$out"
mkdir -p "$out"
touch "$out/.packed"
for file in "${needed[@]}" "${wanted[@]}"; do
  if [[ ! -f $binaries/$file ]]; then
    for must in "${needed[@]}"; do [[ $must != "$file" ]] || fail "$binaries/$file: not built"; done
    continue
  fi
  mkdir -p "$out/$(dirname "$file")"
  strip -o "$out/$file" "$binaries/$file"
done
say "$out: $(du -sh "$out" | cut -f1)"

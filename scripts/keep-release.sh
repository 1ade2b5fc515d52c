#!/usr/bin/env bash
# Keeps a built copy of a release, for the upgrade test: scripts/keep-release.sh [COMMIT]. COMMIT is a tag or any other
# commit; by default it is the last tag. Builds that daemon, library and command line from a source tree of their own in
# build-release/, in place of the copy that was there. tests/system/daemon/upgrade_test.py then runs today's daemon with
# that library, and that daemon with today's library. Without a copy it skips these tests.
set -euo pipefail
# shellcheck source=scripts/bootstrap.sh
source "$(dirname "${BASH_SOURCE[0]}")/bootstrap.sh"

(($# <= 1)) || fail "give one commit at most"
copy=$root/build-release
commit=${1-}
if [[ -z $commit ]]; then
  commit=$(git -C "$root" describe --tags --abbrev=0 2>/dev/null) || fail "there is no release yet; name a commit"
fi
git -C "$root" rev-parse --verify --quiet "$commit^{commit}" >/dev/null || fail "no such commit: $commit"

bootstrap
new=$copy.new
rm -rf "$new" && mkdir -p "$new/source"
git -C "$root" archive "$commit" | tar -x -C "$new/source"
say "building $commit"
build=$new/build
meson setup "$build" "$new/source" "-Dtoolkit_root=$toolkit" >"$new/log" 2>&1 ||
  { tail -n 40 "$new/log" >&2; fail "meson setup failed; all of it: $new/log"; }
ninja -C "$build" src/gpuctld/gpuctld src/gpuctl/gpuctl src/libgpuslice/libgpuslice.so \
  src/gpuslice-compile/gpuslice-compile >"$new/log" 2>&1 ||
  { tail -n 40 "$new/log" >&2; fail "the build failed; all of it: $new/log"; }
git -C "$root" describe --tags --always "$commit" >"$new/version"
rm -rf "$copy" && mv "$new" "$copy"
say "kept in ${copy#"$root"/}: $(<"$copy/version")"

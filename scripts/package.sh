#!/usr/bin/env bash
# Makes Debian packages, for Debian 12 and later, a tarball for other systems, and a wheel of the Python package:
#   scripts/package.sh [--out DIR] [--suite NAME] [--test [--from REF]]
# DIR: where they are left (default: build-package/out). --suite: build in a clean root of that suite of Debian instead
# of here; packages that Debian 12 built are meant for later ones too. --test: then install, start, use, upgrade and
# purge them in clean roots (tests/package), with --suite in one of that suite. --from: upgrade from what was before,
# which the commit REF makes by its own script, and which is kept; else from the same packages with a lower version. The
# version is that of meson.build.
set -euo pipefail
# shellcheck source=scripts/bootstrap.sh
source "$(dirname "${BASH_SOURCE[0]}")/bootstrap.sh"

usage() { fail "usage: package.sh [--out DIR] [--suite NAME] [--test [--from REF]]"; }
work=$root/build-package
out=$work/out
suite=
tested=false
from=
while (($#)); do
  case $1 in
    --out) (($# > 1)) || usage; out=$(realpath -m "$2"); shift 2 ;;
    --suite) (($# > 1)) || usage; suite=$2; shift 2 ;;
    --test) tested=true; shift ;;
    --from) (($# > 1)) || usage; from=$2; shift 2 ;;
    *) usage ;;
  esac
done
[[ -z $from ]] || $tested || usage
if [[ -n $from ]]; then
  commit=$(git -C "$root" rev-parse --verify --quiet --end-of-options "$from^{commit}") || fail "no commit $from"
  from=$commit
fi
version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" "$root/meson.build")
[[ -n $version ]] || fail "no version in meson.build"
place=$work/${suite:-here}
staged=$place/gpuctl
moment=$(git -C "$root" log -1 --format=%ct) || fail "no git checkout"

# slurm_release: the major release of the Slurm whose plugins can be built there, such as 22.05. Nothing: none.
slurm_release() {
  local of=()
  [[ -z $suite ]] || of=(--admindir="$place/root/var/lib/dpkg")
  dpkg-query "${of[@]}" -W -f='${Version}' libslurm-dev 2>/dev/null | sed -n 's/^\([0-9]*\.[0-9]*\).*/\1/p' || true
}

# stage: the tracked files with their times, so that what is built already stays, and what Debian's tools want.
stage() {
  rm -rf "$staged"
  mkdir -p "$staged"
  (cd "$root" && git ls-files -z | xargs -0 cp --parents --preserve=mode,timestamps --target-directory="$staged")
  cp -R "$staged/packaging/debian" "$staged"
  local slurm
  slurm=$(slurm_release)
  if [[ -n $slurm ]]; then
    sed "s/@SLURM@/$slurm/" "$staged/debian/slurm.control" >>"$staged/debian/control"
    cp "$staged/debian/slurm.install" "$staged/debian/gpuctl-slurm$slurm.install"
  else
    say "without a plugin for Slurm: there is no libslurm-dev"
  fi
  cp "$staged/src/libgpuslice/libgpuslice.symbols" "$staged/debian/libgpuslice0.symbols"
  cat >"$staged/debian/changelog" <<CHANGELOG
gpuctl ($version) unstable; urgency=medium

  * See NEWS.md.

 -- $(sed -n 's/^Maintainer: //p' "$staged/debian/control")  $(date -u -R -d "@$moment")
CHANGELOG
}

# make_root: a clean root of the suite, which is kept for the next time. bootstrap.sh there knows what it has.
make_root() {
  local base=$place/root install
  [[ ! -d $base ]] || return 0
  say "making a root of $suite"
  mkdir -p "$place"
  rm -rf "$base.new"
  # shellcheck disable=SC2016  # the shell in the root expands it
  install='chroot "$1" bash -c "source /tmp/bootstrap.sh
    install_packages debhelper dh-python libslurm-dev \"\${packages[@]}\"" </dev/null && rm "$1/tmp/bootstrap.sh"'
  mmdebstrap --quiet --variant=buildd --customize-hook="copy-in '$root/scripts/bootstrap.sh' /tmp" \
    --customize-hook="$install" "$suite" "$base.new" >&2 || fail "no root of $suite"
  mv "$base.new" "$base"
}

# in_root COMMAND...: at the same places as here.
in_root() {
  systemd-nspawn --quiet --register=no --keep-unit --directory="$place/root" --bind="$place" --bind-ro="$toolkit" \
    --chdir="$staged" --setenv=OBJECTS="$OBJECTS" --setenv=TOOLKIT="$TOOLKIT" "$@" </dev/null
}

build() {
  local how=()
  if [[ -n $suite ]]; then
    make_root
    how=(in_root)
  fi
  say "building packages of version $version"
  stage
  rm -f "$place"/*.deb "$place"/*.changes "$place"/*.buildinfo
  (cd "$staged" && "${how[@]}" dpkg-buildpackage -b -us -uc -nc) 2>&1 | tee "$place/log" | show_progress ||
    { tail -n 40 "$place/log" >&2; fail "the packages cannot be built; all of it: $place/log"; }
  mkdir -p "$out"
  rm -f "$out"/*.deb
  cp "$place"/*.deb "$out"
}

# make_tarball: what is installed, in a directory that may lie anywhere.
make_tarball() {
  local name=gpuctl-$version-linux-x86_64 tree=$place/tree file
  rm -rf "$tree"
  mkdir -p "$tree/$name"
  cp -R "$staged"/debian/tmp/{usr/.,etc} "$staged"/{packaging/INSTALL,LICENSE} "$tree/$name"
  cp -R "$staged/debian/tmp/lib/." "$tree/$name/lib"
  while IFS= read -r file; do strip --strip-unneeded "$file"; done < <(
    find "$tree/$name"/bin "$tree/$name"/sbin "$tree/$name"/lib -type f -exec file {} + | sed -n 's/: *ELF .*//p')
  tar -C "$tree" --sort=name --owner=0 --group=0 --mtime="@$moment" -czf "$out/$name.tar.gz" "$name"
}

# make_wheel: of the staged sources, beside which pip writes, by Debian's Python, whose packages are installed for it.
# It has no compiled part.
make_wheel() {
  rm -f "$out"/*.whl
  SOURCE_DATE_EPOCH=$moment /usr/bin/python3 -m pip wheel --quiet --disable-pip-version-check --no-index \
    --no-deps --no-build-isolation --wheel-dir "$out" "$staged/python" >&2
}

# build_before: the packages of the commit `from` into `before`, by its own script in a work tree, for which no root of
# another suite is kept.
build_before() {
  local tree=$work/from/tree options=()
  before=$work/from/$from${suite:+-$suite}
  [[ ! -d $before ]] || return 0
  [[ -z $suite ]] || options=(--suite "$suite")
  say "building packages of commit $from"
  rm -rf "$tree" "$before.new"
  git -C "$root" worktree prune
  git -C "$root" worktree add --quiet --detach "$tree" "$from"
  [[ -x $tree/scripts/package.sh ]] || fail "commit $from makes no packages"
  # The toolkit may be one that was fetched into our build directory.
  PATH=$toolkit/bin:$PATH "$tree/scripts/package.sh" --out "$before.new" "${options[@]}" >&2 ||
    fail "commit $from makes no packages; left in $tree"
  git -C "$root" worktree remove --force "$tree"
  mv "$before.new" "$before"
}

bootstrap
wanted=(dpkg-dev debhelper dh-python lintian file python3-pip python3-setuptools python3-wheel)
[[ -n $suite ]] || wanted+=(libslurm-dev)
if [[ -n $suite ]] || $tested; then
  ((EUID == 0)) || fail "clean roots need root"
  wanted+=(mmdebstrap systemd-container)
fi
install_packages "${wanted[@]}"
export OBJECTS=$place/objects TOOLKIT=$toolkit
build
make_tarball
make_wheel
lintian --fail-on error,warning "$place"/*.changes >&2 || fail "lintian complains"
du -h "$out"/*.deb "$out"/*.tar.gz "$out"/*.whl
if $tested; then
  [[ -z $suite ]] || export GPUCTL_SUITES=$suite
  before=
  [[ -z $from ]] || build_before
  GPUCTL_PACKAGES=$out GPUCTL_PACKAGES_BEFORE=$before python3 "$root/tests/package/package_test.py"
fi

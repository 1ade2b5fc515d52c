#!/usr/bin/env bash
# Prepares a fresh Debian 12 machine for building gpuctl. Installs the Debian packages that are missing. If there is no
# nvcc on PATH or in /usr/local/cuda, unpacks the CUDA compiler from its PyPI wheels into build/toolchain. Says what it
# installs, and asks on a terminal. Leaves alone what is installed already, systemd above all. It can be run by itself;
# other scripts source it, and then it also provides build_tree.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
toolchain=$build/toolchain

packages=(build-essential ninja-build meson pkg-config python3 libboost1.81-dev libcli11-dev libtomlplusplus-dev
          libsystemd-dev libgtest-dev liblz4-dev libsqlite3-dev libxxhash-dev libzstd-dev)
# The compiler driver with ptxas, the device compiler, its own headers, and the runtime with cuda.h.
wheels=(nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt nvidia-cuda-runtime)
wheel_version='13.0.*'
# Tools that check the form of the sources and pages (tests/house) and count instructions (tests/cost). A machine
# without them skips those tests.
tools=(clang-format clang-tidy shellcheck mandoc valgrind wamerican abigail-tools)
ruff_version=0.17.6
kubernetes_validate_version=1.37.0  # the schemas of Kubernetes, which `gpuctl k8s` is tested against

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
fail() { say "$*"; exit 1; }

package_installed() { [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

# agree WHAT NAME...: says what is installed and, on a terminal, asks.
agree() {
  local what=$1 answer
  shift
  say "installing $what: $*"
  [[ -t 0 && -t 2 ]] || return 0
  read -r -p "${0##*/}: go on? [Y/n] " answer
  [[ -z $answer || $answer == [Yy]* ]]
}

# to_be_had NAME...: the names, with libboost-dev in place of libboost1.81-dev where it is recent enough. Debian 12 has
# an older one beside that, later ones have it alone.
to_be_had() {
  local package boost
  boost=$(apt-cache show --no-all-versions libboost-dev 2>/dev/null | sed -n 's/^Version: //p')
  for package in "$@"; do
    if [[ $package == libboost1.81-dev ]] && dpkg --compare-versions "$boost" ge 1.81; then package=libboost-dev; fi
    printf '%s\n' "$package"
  done
}

# beside_systemd NAME...: the names; those of systemd's packages with the version that is installed. A newer one would
# upgrade systemd, which restarts services of the machine. What cannot be had in that version is left out.
beside_systemd() {
  local package version
  version=$(dpkg-query -W -f='${Version}' libsystemd0 2>/dev/null || true)
  for package in "$@"; do
    if [[ -n $version && $package =~ ^(libsystemd-dev|systemd-container)$ ]]; then
      if ! apt-cache madison "$package" | grep -F "| $version |" >/dev/null; then
        say "going on without $package: it would upgrade systemd"
        continue
      fi
      package+="=$version"
    fi
    printf '%s\n' "$package"
  done
}

# install_packages NAME...: installs the packages that are missing. A normal user is told the command instead, and the
# script ends.
install_packages() {
  local missing=() package
  for package in $(to_be_had "$@"); do package_installed "$package" || missing+=("$package"); done
  ((${#missing[@]})) || return 0
  command -v apt-get >/dev/null || fail "needed, and there is no apt-get to install them: ${missing[*]}"
  if ((EUID != 0)); then
    say "packages are missing; run this, then start again:"
    printf '  sudo apt-get install -y --no-install-recommends %s\n' "${missing[*]}" >&2
    exit 1
  fi
  agree "these packages of Debian" "${missing[@]}" || fail "nothing is installed"
  export DEBIAN_FRONTEND=noninteractive
  local quiet=(-qq -o Dpkg::Use-Pty=0)
  apt-get "${quiet[@]}" update >&2
  # Only now it is known what there is.
  mapfile -t missing < <(to_be_had "${missing[@]}")
  mapfile -t missing < <(beside_systemd "${missing[@]}")
  ((${#missing[@]} == 0)) || apt-get "${quiet[@]}" install -y --no-install-recommends "${missing[@]}" >&2
}

# install_tools: installs the tools that are missing, if possible. Only tests need them, and those are skipped without.
install_tools() {
  local missing=() package
  for package in "${tools[@]}"; do package_installed "$package" || missing+=("$package"); done
  if ((${#missing[@]})) && { ((EUID != 0)) || ! agree "tools for tests" "${missing[@]}" || ! timeout 300 bash -c '
      export DEBIAN_FRONTEND=noninteractive
      apt-get -qq update && apt-get -qq install -y --no-install-recommends "$@"' install "${missing[@]}" >&2; }; then
    say "going on without ${missing[*]}"
  fi
  command -v ruff >/dev/null || [[ -x $build/tools/bin/ruff ]] || install_from_pypi ruff "$ruff_version"
  python3 -c 'import kubernetes_validate' 2>/dev/null || [[ -d $build/tools/kubernetes_validate ]] ||
    install_from_pypi kubernetes-validate "$kubernetes_validate_version"
}

# install_from_pypi NAME VERSION: installs it into build/tools, if possible.
install_from_pypi() {
  { agree "from PyPI, into build/tools" "$1 $2" && timeout 120 python3 -m pip install --quiet \
    --disable-pip-version-check --only-binary=:all: --target "$build/tools" "$1==$2" >&2; } || say "going on without $1"
}

# recent_enough NVCC: whether the nvcc is of CUDA 12.4 or later.
recent_enough() {
  local release
  release=$("$1" --version 2>/dev/null |
    sed -n 's/.*release \([0-9.]*\),.*/\1/p')
  [[ -n $release && $(printf '%s\n' 12.4 "$release" | sort -V | head -n 1) == 12.4 ]]
}

# find_toolkit: prints the CUDA toolkit to build with, or nothing.
find_toolkit() {
  local nvcc
  for nvcc in "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc "$toolchain/bin/nvcc"; do
    if [[ -x $nvcc ]] && recent_enough "$nvcc"; then
      dirname "$(dirname "$(readlink -f "$nvcc")")"
      return
    fi
  done
}

# unpack_wheels FROM TO: unpacks the toolkit's files of all wheels into one tree.
unpack_wheels() {
  python3 - "$1" "$2" <<'PYTHON'
import pathlib, shutil, sys, zipfile
source, target = map(pathlib.Path, sys.argv[1:])
for wheel in sorted(source.glob("*.whl")):
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            parts = pathlib.PurePosixPath(info.filename).parts
            # nvidia/cu13/bin/nvcc goes to bin/nvcc; NAME.dist-info has the licence and keeps its place.
            inner = parts[2:] if parts[0] == "nvidia" else parts
            if info.is_dir() or not inner:
                continue
            path = target.joinpath(*inner)
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(info) as data, open(path, "wb") as file:
                shutil.copyfileobj(data, file)
            if "bin" in inner[:-1]:
                path.chmod(0o755)
PYTHON
}

# compiles_and_links TOOLKIT: whether its nvcc can build programs, with the static and with the shared runtime.
compiles_and_links() {
  local nvcc=$1/bin/nvcc scratch runtime status=0
  scratch=$(mktemp -d)
  printf '__global__ void k(int* p) { *p = 1; }\nint main() { k<<<1, 1>>>(nullptr); return 0; }\n' >"$scratch/probe.cu"
  for runtime in static shared; do
    env PATH=/usr/local/bin:/usr/bin:/bin "$nvcc" -cudart "$runtime" -o "$scratch/probe" "$scratch/probe.cu" >&2 ||
      status=1
  done
  rm -rf "$scratch"
  return "$status"
}

fetch_toolkit() {
  local scratch=$build/toolchain.new
  python3 -m pip --version >/dev/null 2>&1 || install_packages python3-pip
  say "no nvcc here: the CUDA compiler (100 MB) is fetched into ${toolchain#"$root"/}"
  agree "from PyPI" "${wheels[@]}" || fail "nothing is fetched"
  rm -rf "$scratch" && mkdir -p "$scratch/wheels" "$scratch/toolkit"
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: -d "$scratch/wheels" \
    "${wheels[@]/%/==$wheel_version}" >&2
  unpack_wheels "$scratch/wheels" "$scratch/toolkit"
  # nvcc searches lib64, and the linker needs the name without a version.
  ln -s lib "$scratch/toolkit/lib64"
  ln -s libcudart.so.13 "$scratch/toolkit/lib/libcudart.so"
  compiles_and_links "$scratch/toolkit" || fail "the fetched CUDA compiler does not work; left in $scratch"
  rm -rf "$toolchain" && mv "$scratch/toolkit" "$toolchain" && rm -rf "$scratch"
}

# bootstrap: installs everything that a build needs. Sets `toolkit`.
bootstrap() {
  install_packages "${packages[@]}"
  toolkit=$(find_toolkit)
  if [[ -z $toolkit ]]; then
    fetch_toolkit
    toolkit=$(find_toolkit)
  fi
}

# show_progress: reads what ninja prints, and says how far it is: on a terminal in one line, else each tenth.
show_progress() {
  local line tenth said=-1
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    tenth=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
    if [[ -t 2 ]]; then
      printf '\r%s: building: step %d of %d' "${0##*/}" "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" >&2
    elif ((tenth > said)); then
      say "building: step ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}"
    fi
    said=$tenth
  done
  if [[ -t 2 ]] && ((said >= 0)); then printf '\n' >&2; fi
}

# build_tree [TARGET...]: configures build/ if needed and builds the targets, by default everything. Prints the end of
# the log if that fails.
build_tree() {
  local log=$build/last-build.log
  mkdir -p "$build"
  if [[ ! -f $build/build.ninja ]]; then
    say "configuring build/"
    if ! meson setup "$build" "$root" "-Dtoolkit_root=$toolkit" >"$log" 2>&1; then
      cat "$log" >&2
      fail "meson setup failed"
    fi
  fi
  ninja -C "$build" "$@" 2>&1 | tee "$log" | show_progress ||
    { tail -n 60 "$log" >&2; fail "the build failed; all of it: $log"; }
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  bootstrap
  install_tools
  say "ready; CUDA toolkit: $toolkit"
fi

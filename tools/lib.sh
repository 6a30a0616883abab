# Shared by the scripts in tools/: sourced, never run.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root

say() { printf '%s\n' "$*"; }
warn() { printf '%s\n' "$*" >&2; }
die() {
  warn "$0: $*"
  exit 1
}

# packages_of GROUP...: the package names of these groups of tools/packages.
packages_of() {
  local group
  for group in "$@"; do
    awk -v group="$group" '$1 == group { print $2 }' "$root/tools/packages"
  done
}

# missing_packages GROUP...: those that are not installed.
missing_packages() {
  local package
  for package in $(packages_of "$@"); do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
      say "$package"
  done
}

# install_missing GROUP...: installs what is missing, and touches nothing if nothing is.
install_missing() {
  local log as_root=()
  [[ -x $(command -v dpkg-query) && -x $(command -v apt-get) ]] ||
    die "this machine has no apt-get. Install what tools/packages lists by hand (Debian 12's" \
      "versions or newer), then build with: cmake --preset release && cmake --build --preset release"
  local missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  if ((EUID != 0)); then
    as_root=(sudo)
    command -v sudo >/dev/null ||
      die "these packages are missing and there is no sudo to install them with. As root, run:" \
        "apt-get install --no-install-recommends ${missing[*]}"
  fi
  say "Installing ${#missing[@]} packages: ${missing[*]}"
  log=$(mktemp)
  # A repository of the machine's that cannot be reached need not be one that is needed here.
  "${as_root[@]}" apt-get -q update >"$log" 2>&1 </dev/null ||
    warn "apt-get update had errors (the last: $(tail -n 1 "$log")); going on with what there is"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
    -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
    install --no-install-recommends "${missing[@]}" >"$log" 2>&1 </dev/null || {
    tail -n 20 "$log" >&2
    die "apt-get could not install: ${missing[*]} (its last lines are above, all of them in $log)"
  }
  rm -f "$log"
}

# know_package NAME: has apt-get fetch its lists where they do not know this package. For packages that a
# test unpacks and nobody installs; where it does not work, that test says so.
know_package() {
  [[ -z $(apt-cache madison "$1" 2>/dev/null) ]] || return 0
  local as_root=()
  ((EUID == 0)) || as_root=(sudo -n)
  "${as_root[@]}" apt-get -q update >/dev/null 2>&1 </dev/null || true
}

# configure PRESET: once; the build runs CMake again by itself when a CMake file changes. A build
# directory that was configured before packages came is configured again.
configure() {
  local stamp=$root/build/$1/build.ninja
  [[ -e $stamp && $stamp -nt $root/CMakePresets.json && $stamp -nt /var/lib/dpkg/status ]] ||
    (cd "$root" && cmake --preset "$1" --log-level=WARNING >/dev/null)
}

# build PRESET [TARGET...]: shows its progress to a person, and all errors that there are to everyone.
build() {
  local preset=$1 log
  shift
  log=$(mktemp)
  local command=(cmake --build --preset "$preset" ${1+--target "$@"} -- -k 0)
  if [[ -t 1 ]]; then
    configure "$preset" && (cd "$root" && "${command[@]}")
  elif (configure "$preset" && cd "$root" && "${command[@]}") >"$log" 2>&1; then
    rm -f "$log"
  else
    grep -vE '^\[[0-9]+/[0-9]+\] (Building|Linking)' "$log" | tail -n 80 >&2
    warn "The $preset build failed; its whole log is $log"
    return 1
  fi
}

# seconds_since START: of $SECONDS, for the timings in the output.
seconds_since() { say "$((SECONDS - $1)) s"; }

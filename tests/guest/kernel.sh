#!/usr/bin/env bash
# kernel.sh CACHE: prints a directory with a Debian kernel to boot, `vmlinuz` and `modules/`.
#
# The first time it takes them out of the package behind linux-image-amd64, which is downloaded and
# never installed; from then on CACHE has them, and no network is needed. Exit status 77 with a
# reason where there is no such package to be had. Does as well without root.
set -euo pipefail

# What the guests need of the 400 MiB, as patterns.
readonly contents=(
  './boot/vmlinuz-*'
  './lib/modules/*/modules.builtin'
  './lib/modules/*/kernel/drivers/block/virtio_blk.ko*'
  './lib/modules/*/kernel/drivers/block/nbd.ko*'
  './lib/modules/*/kernel/drivers/virtio/*.ko*'
)

cache=$1
# The name depends on the list, so a cache that was made from another list is made anew.
kernel_dir=$cache/kernel-$(printf '%s\n' "${contents[@]}" | cksum | cut -d ' ' -f 1)

skip() {
  echo "kernel.sh: $1" >&2
  exit 77
}

# It appears whole, by a rename, so one that is there can be used without the lock.
if [[ -e $kernel_dir/vmlinuz ]]; then
  echo "$kernel_dir"
  exit 0
fi

mkdir -p "$cache"
# Two builds may share the cache.
exec 9>"$cache/lock"
flock 9

if [[ ! -e $kernel_dir/vmlinuz ]]; then
  for tool in apt-cache apt-get dpkg-deb; do
    command -v "$tool" >/dev/null || skip "no $tool here to fetch Debian's kernel with"
  done
  package=$(apt-cache depends linux-image-amd64 2>/dev/null |
    sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n 1)
  [[ -n $package ]] || skip "apt-cache knows no linux-image-amd64 (apt-get update?)"

  work=$(mktemp -d "$cache/fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  (cd "$work" && apt-get -q download "$package" >download.log 2>&1) || {
    cat "$work/download.log" >&2
    skip "$package could not be downloaded"
  }
  dpkg-deb --fsys-tarfile "$work"/linux-image-*.deb |
    tar -x -C "$work" --wildcards "${contents[@]}" 2>"$work/tar.log" || {
    cat "$work/tar.log" >&2
    exit 1
  }
  mkdir "$work/kernel"
  mv "$work"/lib/modules/* "$work/kernel/modules"
  mv "$work"/boot/vmlinuz-* "$work/kernel/vmlinuz"
  # What was made from other lists; a guest that was booted from it has read it already.
  rm -rf "$cache"/kernel "$cache"/kernel-*
  mv "$work/kernel" "$kernel_dir"
  echo "kernel.sh: unpacked $package" >&2
fi
echo "$kernel_dir"

#!/usr/bin/env bash
# make_initramfs.sh OPTION...: packs a guest's root, a cpio archive. Needs no privilege: the kernel
# brings its own /dev/console.
#   --kernel DIR      what kernel.sh made
#   --busybox FILE    a static busybox
#   --scenario FILE   what the guest does; sourced by `init`, which is its first process
#   --settings FILE   shell variables, sourced before that
#   --module NAME     a kernel module; each stands behind those it needs
#   --program FILE    goes to /bin, with the libraries that it is linked with, without debug symbols
#   --file FILE       something that a program loads; keeps its path, with its libraries
#   --out FILE        the archive
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
kernel_dir='' busybox='' out=''

root=$(mktemp -d "${TMPDIR:-/tmp}/tuck-initramfs.XXXXXX")
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{bin,dev,proc,run,sys,tmp,modules}

die() {
  echo "make_initramfs.sh: $1" >&2
  exit 1
}

# Debian 12 has plain files, later ones compressed files.
add_module() {
  local file
  file=$(find "$kernel_dir/modules" -name "$1.ko*" | head -n 1)
  case $file in
    *.ko) cp "$file" "$root/modules/$1.ko" ;;
    *.ko.xz) xz -dc "$file" >"$root/modules/$1.ko" ;;
    *.ko.zst) zstd -qdc "$file" >"$root/modules/$1.ko" ;;
    *)
      grep -q "/$1.ko" "$kernel_dir/modules/modules.builtin" && return
      die "$kernel_dir has no module $1"
      ;;
  esac
  echo "$1.ko" >>"$root/modules/order"
}

# Debug symbols would be most of the archive, and all of it is memory that the guest lacks.
add_file() {
  install -D -m 755 "$1" "$2"
  objcopy --strip-debug "$2" 2>/dev/null || true
}

# The loader is one of the paths that ldd prints. A static program has none.
add_libraries() {
  local library
  while read -r library; do
    [[ -e $root$library ]] || add_file "$library" "$root$library"
  done < <(ldd "$1" 2>/dev/null | grep -o '/[^ ]*')
}

while (($# >= 2)); do
  case $1 in
    --kernel) kernel_dir=$2 ;;
    --busybox) busybox=$2 && install -m 755 "$busybox" "$root/bin/busybox" ;;
    --scenario) install -m 644 "$2" "$root/scenario" ;;
    --settings) install -m 644 "$2" "$root/settings" ;;
    --module) add_module "$2" ;;
    --program) add_file "$2" "$root/bin/$(basename "$2")" && add_libraries "$2" ;;
    --file) add_file "$2" "$root$(realpath "$2")" && add_libraries "$2" ;;
    --out) out=$2 ;;
    *) die "unknown option $1" ;;
  esac
  shift 2
done
install -m 755 "$here/init" "$root/init"

# Not compressed: the emulated processor would take longer to unpack it than to copy it.
(cd "$root" && find . -mindepth 1 | "$busybox" cpio -o -H newc -R 0:0 2>/dev/null) >"$out"

#!/usr/bin/env bash
# make_initramfs.sh KERNEL_DIR BUSYBOX GUEST_PAGES OUT: packs the guest's root, a cpio archive.
#
# KERNEL_DIR is what kernel.sh made. Needs no privilege: the kernel brings its own /dev/console.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
kernel_dir=$1 busybox=$2 guest_pages=$3 out=$4

root=$(mktemp -d "${TMPDIR:-/tmp}/tuck-initramfs.XXXXXX")
trap 'rm -rf "$root"' EXIT

mkdir -p "$root"/{bin,dev,proc,sys,modules}
install -m 755 "$busybox" "$root/bin/busybox"
install -m 755 "$guest_pages" "$root/bin/guest_pages"
install -m 755 "$here/init" "$root/init"

# Each module stands behind those it needs. Debian 12 has plain files, later ones compressed files.
for module in virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk; do
  file=$(find "$kernel_dir/modules" -name "$module.ko*" | head -n 1)
  case $file in
    *.ko) cp "$file" "$root/modules/$module.ko" ;;
    *.ko.xz) xz -dc "$file" >"$root/modules/$module.ko" ;;
    *.ko.zst) zstd -qdc "$file" >"$root/modules/$module.ko" ;;
    *)
      grep -q "/$module.ko" "$kernel_dir/modules/modules.builtin" && continue
      echo "make_initramfs.sh: $kernel_dir has no module $module" >&2
      exit 1
      ;;
  esac
  echo "$module.ko" >>"$root/modules/order"
done

# Not compressed: the emulated processor would take longer to unpack it than to copy it.
(cd "$root" && find . -mindepth 1 | "$busybox" cpio -o -H newc -R 0:0 2>/dev/null) >"$out"

# shellcheck shell=dash disable=SC2154
# Sourced by `init` in the guest of guest_swap.sh: swaps onto a virtio disk.
wait_for /dev/vda [ -b /dev/vda ]
echo "disk_mib=$(($(cat /sys/block/vda/size) / 2048))"
echo "disk_discard_max=$(cat /sys/block/vda/queue/discard_max_bytes)"
# Linux takes a virtio disk for one that rotates, and allocates swap slots in clusters, which it
# discards when they are free, only on disks that do not. (Its own NBD client says so by itself.)
echo 0 >/sys/block/vda/queue/rotational
mkswap /dev/vda >/dev/null || end "mkswap failed"
# Discards both: the whole area now, and each cluster of slots as it becomes free.
swapon -d /dev/vda || end "swapon failed"
# The 12th figure of a disk counts its discards; the one of swapon is not meant.
discards() { tr -s ' ' </sys/block/vda/stat | sed 's/^ //' | cut -d ' ' -f 12; }
discards_before=$(discards)
grep '^MemTotal\|^SwapTotal' /proc/meminfo | tr -s ' ' | sed 's/: /=/'

guest_pages rounds /dev/vda "$tuck_mib" "$tuck_kept_mib" "$tuck_rounds" "$tuck_seed" ||
  end "guest_pages failed with status $?"
echo "discards=$(($(discards) - discards_before))"
grep -q vda /proc/swaps && end "the swap area is still there"
end ok

#!/bin/sh
# Runs a program of an unpacked image about as a container runtime would, hardened: in-container.sh ROOT MANIFESTS PROGRAM...
# Own mounts and processes, a read-only root, no privileges but NET_ADMIN and NET_RAW (and SYS_CHROOT, to get in). Whoever
# calls it has made the network namespace. Both outputs go to standard output.
set -eu
root=$1 manifests=$2
shift 2
exec 2>&1
exec unshare --mount --pid --fork --kill-child sh -eu -c '
  root=$1 manifests=$2
  shift 2
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs tmpfs "$root/run"
  mkdir "$root/run/fairlead"
  mount --bind "$manifests" "$root/home"
  mount -o remount,bind,ro "$root"
  exec setpriv --no-new-privs --bounding-set=-all,+net_admin,+net_raw,+sys_chroot --inh-caps=-all chroot "$root" "$@"
' sh "$root" "$manifests" "$@"

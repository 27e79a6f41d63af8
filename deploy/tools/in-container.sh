#!/bin/sh
# Runs a program of an unpacked image about as a container runtime would, hardened: in-container.sh ROOT POD PROGRAM...
# Own mounts and processes, a read-only root, no privileges but NET_ADMIN and NET_RAW (and SYS_CHROOT, to get in). Of the
# folder POD come /home, and where it has them the DaemonSet's /etc/fairlead (config) and service account (serviceaccount).
# The caller has made the network namespace. Both outputs go to standard output.
set -eu
root=$1 pod=$2
shift 2
exec 2>&1
exec unshare --mount --pid --fork --kill-child sh -eu -c '
  root=$1 pod=$2
  shift 2
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs tmpfs "$root/run"
  mkdir "$root/run/fairlead"
  touch "$root/run/xtables.lock"
  mount -t tmpfs tmpfs "$root/var/lib/fairlead"
  mount --bind "$pod/home" "$root/home"
  if [ -d "$pod/config" ]; then
    mkdir -p "$root/etc/fairlead"
    mount --bind "$pod/config" "$root/etc/fairlead"
    # A link there leads to /run, of this machine if it were followed from here.
    secrets=$root/var/run/secrets/kubernetes.io
    [ ! -L "$root/var/run" ] || secrets=$root/run/secrets/kubernetes.io
    mkdir -p "$secrets"
    cp -R "$pod/serviceaccount" "$secrets/"
  fi
  mount -o remount,bind,ro "$root"
  exec setpriv --no-new-privs --bounding-set=-all,+net_admin,+net_raw,+sys_chroot --inh-caps=-all chroot "$root" "$@"
' sh "$root" "$pod" "$@"

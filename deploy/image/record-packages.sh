#!/bin/sh
# A hook of mmdebstrap, called with the new root folder while the packages' archives are still there. Leaves each
# package's control data where scanners look for it in images without a package manager.
set -eu
mkdir -p "$1/var/lib/dpkg/status.d"
for deb in "$1"/var/cache/apt/archives/*.deb; do
  name=$(dpkg-deb --field "$deb" Package)
  dpkg-deb --field "$deb" >"$1/var/lib/dpkg/status.d/$name"
done

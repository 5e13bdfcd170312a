#!/bin/sh
# Runs inside the test kernel, as its first program: CHECKOUT COMMAND...
# The host's root is mounted once more with a cache (virtme-ng's own mount has none, and Python opens thousands of
# files), read-only, with memory where programs write; then COMMAND runs there.
set -eu
checkout=$1
shift
root=/run/emu-root
mkdir -p $root
mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=512000,access=any emu-host $root
for name in proc sys dev; do mount --rbind /$name $root/$name; done
mkdir -p /run/emu-checkout
mount --bind "$root$checkout" /run/emu-checkout
for name in run tmp var/tmp var/lib root/.cache; do
  if [ -d $root/$name ]; then mount -t tmpfs none $root/$name; fi
done
case $checkout in
  /run/* | /tmp/* | /var/*)
    # It lay under one of those.
    mkdir -p "$root$checkout"
    mount --bind /run/emu-checkout "$root$checkout"
    ;;
esac
if [ ! -d $root/usr/lib/modules ]; then
  # A host without kernel modules, whose root cannot be written: the place for them lies on top of its /usr/lib.
  mkdir -p /run/emu-lib
  mount -t tmpfs none /run/emu-lib
  mkdir -p /run/emu-lib/upper/modules /run/emu-lib/work
  mount -t overlay -o lowerdir=$root/usr/lib,upperdir=/run/emu-lib/upper,workdir=/run/emu-lib/work none $root/usr/lib
fi
mount --bind /usr/lib/modules $root/usr/lib/modules
mkdir -p $root/run/old
cd $root
exec unshare --mount --propagation private sh -c '
  pivot_root . run/old
  cd "$0"
  umount -l /run/old
  code=0
  "$@" || code=$?
  echo "emu-kernel-exit $code"
' "$checkout" "$@"

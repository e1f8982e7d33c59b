#!/bin/sh -eu
# check_disk.sh PERCENT: fail if the disk of this folder is fuller than that.
used=$(df -P . | awk 'NR == 2 { sub("%", "", $5); print $5 }')
echo "$used % used"
if [ "$used" -gt "$1" ]; then
  echo "the disk is $used % full, the limit is $1 %" >&2
  exit 1
fi

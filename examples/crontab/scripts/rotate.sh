#!/bin/sh -eu
# Runs in var.
for log in *.log; do
  [ -s "$log" ] || continue
  gzip -c "$log" > "$log.$(date -u +%Y%m%d).gz"
  : > "$log"
  echo "compressed $log"
done

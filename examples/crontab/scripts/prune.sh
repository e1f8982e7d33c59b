#!/bin/sh -eu
# prune.sh FOLDER KEEP: delete all but the newest KEEP files.
mkdir -p "$1"
cd "$1"
ls -t | tail -n +"$(($2 + 1))" | while read -r name; do
  rm -r -- "$name"
  echo "deleted $name"
done
echo "kept $(ls | wc -l)"

#!/bin/sh -eu
mkdir -p var/backups
name="var/backups/shop-$(date -u +%Y%m%d-%H%M%S).tar.gz"
tar -czf "$name" data
echo "wrote $name ($(wc -c < "$name") bytes)"

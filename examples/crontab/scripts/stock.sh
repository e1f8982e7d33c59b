#!/bin/sh -eu
# stock.sh pull|merge|publish: pull and merge emit the event that starts the next step.
mkdir -p var/stock
case "$1" in
  pull)
    for warehouse in north south; do
      cp "data/stock-$warehouse.csv" var/stock/
      echo "fetched $warehouse"
    done
    tsuzuki event emit stock.pulled --key "$TSUZUKI_IDEMPOTENCY_KEY" ;;
  merge)
    sort -m var/stock/stock-north.csv var/stock/stock-south.csv > var/stock/all.csv
    echo "$(wc -l < var/stock/all.csv) lines"
    tsuzuki event emit stock.merged --key "$TSUZUKI_IDEMPOTENCY_KEY" ;;
  publish)
    mv var/stock/all.csv var/stock/published.csv
    echo "published $(wc -l < var/stock/published.csv) lines" ;;
esac

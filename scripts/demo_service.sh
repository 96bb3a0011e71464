#!/usr/bin/env bash
# A service on simulated cards: real processes, a real record, gone again at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
state=$(mktemp -d)
aliquot() { .venv/bin/python -m aliquot "$@"; }
title() { printf '\n== %s\n' "$1"; shift; printf '   %s\n' "$@"; printf '\n'; }

title 'A service for one GPU server' \
  'Eight simulated cards, real processes, two queues. On a machine with cards: aliquot up examples/live/site.yaml'
.venv/bin/python -m aliquot up examples/live/site.yaml --simulate a100-40x8 --state "$state" --socket "$state/api" > "$state/log" 2>&1 &
service=$!
trap 'kill "$service" 2>/dev/null || true; wait "$service" 2>/dev/null || true; rm -rf "$state"' EXIT
for _ in $(seq 600); do
  grep -q '^listening' "$state/log" && break
  kill -0 "$service" 2>/dev/null || { cat "$state/log"; exit 1; }
  sleep 0.2
done

echo '$ aliquot run --gpus 2 -- sh -c "echo cards: \$CUDA_VISIBLE_DEVICES"'
aliquot run --socket "$state/api" --gpus 2 -- sh -c 'echo "cards: $CUDA_VISIBLE_DEVICES"'
echo '$ aliquot submit examples/live/jobs.yaml'
aliquot submit --socket "$state/api" examples/live/jobs.yaml
echo '$ aliquot wait 3'
aliquot wait --socket "$state/api" 3
echo '$ aliquot run --queue vision --members 2 -- sh -c "echo rank \$ALIQUOT_RANK of \$ALIQUOT_SIZE meets at port \$MASTER_PORT"'
aliquot run --socket "$state/api" --queue vision --members 2 -- sh -c 'echo "rank $ALIQUOT_RANK of $ALIQUOT_SIZE meets at port $MASTER_PORT"'
echo '$ aliquot run --queue text --array 0-9%4 -- true'
aliquot run --socket "$state/api" --queue text --array 0-9%4 -- true 2> /dev/null
echo '$ aliquot queues'
aliquot queues --socket "$state/api"
echo '$ aliquot jobs --all'
aliquot jobs --socket "$state/api" --all

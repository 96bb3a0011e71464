#!/usr/bin/env bash
# Runs every benchmark of bench/ (or those named), each printing its table and writing JSON to bench/results.
set -euo pipefail
cd "$(dirname "$0")/.."
shopt -s nullglob

files=("$@")
[ ${#files[@]} -gt 0 ] || files=(bench/bench_*.py)
if [ ${#files[@]} -eq 0 ]; then
  echo "bench/ holds no bench_*.py" >&2
  exit 1
fi
for file in "${files[@]}"; do
  echo "== $file"
  PYTHONPATH=. .venv/bin/python "$file"
done

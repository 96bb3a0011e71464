#!/usr/bin/env bash
# The case, as a table here and as a page to open.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p out
exec .venv/bin/aliquot demo "$@"

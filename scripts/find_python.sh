#!/usr/bin/env bash
# Prints an interpreter that can run Aliquot: $PYTHON when given, else the first of the usual names.
set -euo pipefail

fits() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

for name in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
  if path=$(command -v "$name") && fits "$path"; then
    echo "$path"
    exit 0
  fi
done

if [ -n "${PYTHON:-}" ]; then
  echo "PYTHON=$PYTHON: not found, or older than 3.11 ($("$PYTHON" --version 2>&1 || true))" >&2
else
  echo "Aliquot needs Python 3.11 or newer; found: $(python3 --version 2>&1 || echo 'no python3')." >&2
  echo "Install one (Debian: apt-get install python3 python3-venv) or name it: make setup PYTHON=/path/to/python3.12" >&2
fi
exit 1

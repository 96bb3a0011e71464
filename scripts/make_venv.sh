#!/usr/bin/env bash
# make_venv.sh VENV LOCK: an environment with the locked versions and this checkout installed into it.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1
lock=$2

if ! "$venv/bin/python" -c '' >/dev/null 2>&1; then
  python=$(scripts/find_python.sh)
  if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
    echo "$python cannot make environments (Debian: apt-get install python3-venv)" >&2
    exit 1
  fi
  echo "Making $venv with $("$python" --version)"
  "$python" -m venv --clear "$venv"
fi

echo "Installing the versions of $lock"
"$venv/bin/python" -m pip install --quiet --requirement "$lock"
# No isolation and no dependencies: all that the build needs is in the lock, so versions have one source.
"$venv/bin/python" -m pip install --quiet --no-build-isolation --no-deps --editable .

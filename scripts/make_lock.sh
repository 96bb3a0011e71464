#!/usr/bin/env bash
# make_lock.sh LOCK: the newest versions that pyproject.toml allows, written down one per line.
set -euo pipefail
cd "$(dirname "$0")/.."
lock=$1

python=$(scripts/find_python.sh)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$python" -m venv "$scratch/venv"
"$scratch/venv/bin/python" -m pip install --quiet --upgrade pip
# The names are read off pyproject.toml, so nothing is built and the checkout stays clean.
"$scratch/venv/bin/python" > "$scratch/wanted.txt" <<'EOF'
import tomllib

with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
print(*project["dependencies"], *project["optional-dependencies"]["dev"], sep="\n")
EOF
"$scratch/venv/bin/python" -m pip install --quiet --requirement "$scratch/wanted.txt"
{
  echo "# Written by 'make lock'; do not edit. The versions every machine gets."
  # setuptools builds the package, and a plain freeze leaves it out.
  "$scratch/venv/bin/python" -m pip freeze --all --exclude pip --exclude wheel
} > "$scratch/lock.txt"
mv "$scratch/lock.txt" "$lock"
echo "$(grep -c == "$lock") versions in $lock"

#!/usr/bin/env bash
# Builds what is published, the sdist and the wheel of it, into dist/, and checks that the wheel has
# every file of the program and runs in an environment of its own, away from this checkout.
# llama.cpp is compiled there if pip has no wheel of it.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$1"; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

step "build"
python3 -m venv "$work/build"
"$work/build/bin/pip" install --quiet build
rm -rf dist
"$work/build/bin/python" -m build --outdir dist . >"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
wheel=$(ls dist/*.whl)
ls -l dist

step "every file of the program is in the wheel, and nothing else"
python3 - "$wheel" <(git ls-files app engine) <<'PYTHON'
import sys
import zipfile
from pathlib import Path

there = {name for name in zipfile.ZipFile(sys.argv[1]).namelist() if ".dist-info/" not in name}
wanted = {*Path(sys.argv[2]).read_text().splitlines(), "engine/models.toml"}
if there != wanted:
    sys.exit(f"missing: {sorted(wanted - there)}; too much: {sorted(there - wanted)}")
print(len(there), "files")
PYTHON

step "install"
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet "$wheel"
"$work/venv/bin/pip" check

step "run"
cd "$work"
unset PYTHONPATH
export SAPWOOD_HOME=$work/home PATH=$work/venv/bin:$PATH
problem="Lily buys 2 bags of 5 flowers each. She gives 3 flowers to Leo. How many flowers does Lily have now?"
sapwood --version
sapwood doctor
sapwood models
sapwood plan --gpu "RTX 4090"
sapwood solve --trace run.jsonl "$problem"
test "$(sapwood solve --resume run.jsonl --quiet)" = 7
sapwood solve --quiet --generator seedling-target --draft seedling "$problem"
sapwood export run.jsonl --out run.html
for shell in bash zsh fish; do test -n "$(sapwood completion "$shell")"; done

step "all of it works"

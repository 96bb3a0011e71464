#!/usr/bin/env bash
# The case of one team on 28 cards, its literal reading, a site of 1,000 cards in money, and two explanations.
# What it prints is compared with tests/golden/demo.txt; `scripts/demo.sh OUT` writes the report to another folder.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-out}
mkdir -p "$out"

aliquot() { .venv/bin/python -m aliquot "$@"; }
title() { printf '\n== %s\n' "$1"; shift; printf '   %s\n' "$@"; printf '\n'; }
case=(examples/case/cluster.yaml examples/case/inference.yaml examples/case/training.yaml examples/case/policies.yaml)

title 'The case: whole cards in order of arrival, against slices, binpack and priority' \
  '28 cards, 20 small inference tasks, three training jobs of 8 linked cards. A calibrated replay: the cluster and' \
  'the load are chosen so that the published figures come out. It shows how they arise; it is no evidence.'
aliquot compare "${case[@]}" --policy whole-card-fifo --policy binpack-slices --policy future-packing \
  --report "$out/case.html"

title 'The same, read word for word: one training job' \
  'One job of 8 cards cannot keep 28 cards busy past 36 %. Its wait is the same; the 82 % is not that of all cards.' \
  'Running scattered over machines at half of the speed (assumed) saves the wait and ends later all the same.'
aliquot compare examples/case/literal --policy whole-card-fifo --policy whole-card-scattered --policy future-packing

title 'A site of 1,000 cards that reserves 300 for inference that would fit on 60' \
  'Invented, every value assumed: what 240 cards held beyond what was asked for cost, and what they could do.'
aliquot compare examples/thousand-cards --policy reserved-cards --policy sliced-cards

title 'Why is the training job where it is?' 'Under the default policy.'
aliquot explain "${case[@]}" training-0 --policy future-packing

title 'Why did it wait under whole cards?' 'Half an hour into the run.'
aliquot explain "${case[@]}" training-0 --policy whole-card-fifo --at 30m

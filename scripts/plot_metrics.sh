#!/usr/bin/env bash
# Draw charts/*.png: of the newest run, of metrics files, or as the options of estragon plot say.
# plot_metrics.sh [FILE.csv ...] [--run DIR ...] [--trajectories DIR] [--output DIR]
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib/data_paths.sh"

[[ ${1:--} == -* ]] || set -- --metrics "$@"
exec "$estragon" plot "$@"

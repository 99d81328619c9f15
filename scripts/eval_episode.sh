#!/usr/bin/env bash
# Play one evaluation match; leave its log and a picture of its paths, and a film with --record.
# Options: --duration SEC --start-role seeker|hider --engine embedded|godot --output DIR --title TEXT
# --record --record-fps N
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib/data_paths.sh"

exec "$estragon" eval-episode "$@"

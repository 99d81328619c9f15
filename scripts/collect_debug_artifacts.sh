#!/usr/bin/env bash
# Bundle versions, settings, metrics, policies, logs and matches into debug/<time>/, or into DEST.
# collect_debug_artifacts.sh [DEST] [--server-log FILE] [--godot-log FILE]
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib/data_paths.sh"

exec "$estragon" collect-debug "$@"

#!/usr/bin/env bash
# Copy matches, frames and logs from Godot's user folders into data/_imported/; nothing is lost.
# migrate_user_data.sh [--from DIR]
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib/data_paths.sh"

exec "$estragon" migrate-user-data "$@"

#!/usr/bin/env bash
# Let Godot draw a logged match into the frames folder; the newest one if none is named.
# render_trajectory.sh [low|high] [FILE] [options of estragon record]
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib/data_paths.sh"

quality=${AI_RENDER_QUALITY:-low}
case ${1:-} in
low | high)
	quality=$1
	shift
	;;
esac
log=$trajectories
case ${1:-} in
"" | -*) ;;
*)
	log=$1
	shift
	;;
esac
exec "$estragon" record "$log" --quality "$quality" "$@"

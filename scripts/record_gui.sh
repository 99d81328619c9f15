#!/usr/bin/env bash
# Let Godot play and draw it into the frames folder: the trained seeker or hider against a bot.
# record_gui.sh [seeker|hider|chaser|runner] [options of estragon record]; without a role, both.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib/data_paths.sh"

case ${1:-} in
seeker | chaser) set -- --hider bot:evader "${@:2}" ;;
hider | runner) set -- --seeker bot:chaser "${@:2}" ;;
"" | -*) ;;
*)
	echo "record_gui: expected seeker, hider, chaser or runner, got '$1'" >&2
	exit 2
	;;
esac
exec "$estragon" record "$@"

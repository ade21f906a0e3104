# Sourced after lib.sh by the checks that run other checks.
# shellcheck shell=sh disable=SC2154
. "$root/ci/report.sh"
unset KERNEL DEBUG MEM SMP APPEND SLOWER	# what is checked is not for the caller to change
began=$(date +%s)
dir=$cache/$verb
rm -rf "$dir"
mkdir -p "$dir"

minutes() { echo $((($(date +%s) - began) / 60)); }

# step NAME COMMAND...: its lines and counts become ours; a command that ends wrong without saying what has failed too.
step() {
	name=$1
	shift
	say "$name, after $(minutes) min"
	before=$failed rc=0
	"$@" >"$dir/$name" 2>"$dir/$name.log" </dev/null || rc=$?
	case $(tail -n 1 "$dir/$name") in
	*' passed, '*' skipped') add "$dir/$name" "$name" ;;
	*) [ "$rc" != 0 ] || ok "$name" ;;
	esac
	if [ "$rc" != 0 ] && [ "$failed" = "$before" ]; then
		not_ok "$name" "$(grep -m1 error: "$dir/$name.log" || tail -n 1 "$dir/$name.log")"
	fi
	[ "$failed" = "$before" ] || tail -n 5 "$dir/$name.log" >&2
}

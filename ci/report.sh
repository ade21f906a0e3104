# Sourced by whatever checks: one line a check on stdout, the counts as the last line.
# shellcheck shell=sh
passed=0 failed=0 skipped=0

ok() { passed=$((passed + 1)) && echo "ok $1"; }
not_ok() { failed=$((failed + 1)) && echo "not ok $1: $2"; }	# not_ok NAME WHAT
skip() { skipped=$((skipped + 1)) && echo "ok $1 # SKIP $2"; }	# skip NAME WHY

# add FILE NAME: take over the lines and the counts of a run of another checker; one that did not reach its end has failed.
add() {
	sed '$!b; /^[0-9]* passed, [0-9]* failed, [0-9]* skipped$/d' "$1"
	# shellcheck disable=SC2046
	set -- "$2" $(sed -n '$s/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$1")
	[ $# = 4 ] || { not_ok "$1" 'ended before its last line'; return 0; }
	passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
}

totals() {
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
}

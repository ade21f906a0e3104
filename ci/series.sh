# Sourced after lib.sh by the verbs that handle patches: where KERNEL's patches are, and a scratch repository to try them in.
# shellcheck shell=sh disable=SC2034,SC2154

case $KERNEL in
patched) dir=$root/patches/$TREE head=$branch edit=$cache/src/$id ;;
base) die 'KERNEL=base is the tree without patches' ;;
*) dir=$root/patches/$TREE/reference/$KERNEL head=$branch-$KERNEL edit=$cache/src/$id-$KERNEL ;;
esac
applied=refs/steadyread/applied/$head	# what apply or export last made of $head: more than that is somebody's edits

kgit rev-parse -q --verify "$base^{commit}" >/dev/null 2>&1 || "$root/ci/fetch" || exit 1
base=$(kgit rev-parse --verify "$base^{commit}") || die "$TREE: the base $base is not there, see ci/fetch"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' HUP INT TERM

topics() { rows "$root/series/topics.tsv" | cut -f1; }
topic_field() { rows "$root/series/topics.tsv" | awk -F '\t' -v t="$1" -v n="$2" '$1 == t { print $n }'; }

# patches TOPIC: the patch files of KERNEL in the order of the series; '' is all of them.
patches() {
	if [ "$KERNEL" != patched ]; then
		find "$dir" -maxdepth 1 -name '*.patch' | sort
	elif [ -e "$root/series/$TREE" ]; then
		rows "$root/series/$TREE" | sed -n "s|^${1:+$1/}.*|$dir/&|p"
	fi
}

# scratch REPO LIST: a repository at the base, with only the files checked out that the patches in LIST touch. It borrows
# the objects of the tree and nothing else: its settings, hooks, worktrees and 86,000 files stay out of it.
scratch() {
	git init -q --template= -b scratch "$1"
	mkdir -p "$1/.git/info"
	kgit rev-parse --path-format=absolute --git-path objects >"$1/.git/objects/info/alternates"
	cp "$(kgit rev-parse --path-format=absolute --git-path shallow)" "$1/.git/" 2>/dev/null || :
	git -C "$1" config core.sparseCheckout true
	narrow "$1" "$2"
	git -C "$1" reset -q --hard "$base"
}

# narrow REPO LIST: the files to check out; .gitattributes, for it decides how a hunk's function is found.
narrow() {
	{
		echo /.gitattributes
		xargs -rd '\n' sed -n 's|^diff --git a/\(.*\) b/\(.*\)$|/\1\n/\2|p' <"$2"
	} | sort -u >"$1/.git/info/sparse-checkout"
}

# am REPO LIST: strict, and with the same commit ids everywhere; a failure names the patch.
am() {
	while read -r patch; do
		head -n 1 "$patch" 2>/dev/null | grep -q '^From [0-9a-f]\{40\} ' ||
			{ say "${patch#"$root/"} is missing or is not made by git format-patch"; return 1; }
	done <"$2"
	xargs -rd '\n' git -C "$1" am -q --no-3way --committer-date-is-author-date <"$2" >"$tmp/am.log" 2>&1 || {
		grep '^error:' "$tmp/am.log" >&2 || cat "$tmp/am.log" >&2
		patch=$(sed -n "$(cat "$1/.git/rebase-apply/next" 2>/dev/null || echo 1)p" "$2")
		say "${patch#"$root/"} does not apply"
		return 1
	}
}

tree_of() { git -C "$1" rev-parse "${2:-HEAD}^{tree}"; }

# lock_head: one at a time; and not in the middle of a rebase, when the branch is not what its owner means.
lock_head() {
	exec 9>"$cache/series.$id.lock"
	flock 9
	common=$(kgit rev-parse --path-format=absolute --git-common-dir)
	busy=$(grep -lsxF "refs/heads/$head" "$common"/rebase-*/head-name "$common"/worktrees/*/rebase-*/head-name || :)
	[ -z "$busy" ] || die "$head is being rebased (${busy%/*}): finish or abort that first"
	old=$(kgit rev-parse -q --verify "refs/heads/$head^{commit}" || :)
}

# where: the worktree that has $head checked out, if any.
where() {
	at=$(kgit worktree list --porcelain | awk -v b="branch refs/heads/$head" '/^worktree / { w = substr($0, 10) } $0 == b { print w }')
	[ -z "$at" ] || [ ! -d "$at" ] || echo "$at"
}

# move_head REPO: $head becomes what REPO has; a worktree that has it checked out follows, or all stays as it was.
move_head() {
	new=$(git -C "$1" rev-parse HEAD)
	kgit fetch -q --no-tags --no-write-fetch-head --no-auto-maintenance "$1" HEAD
	at=$(where)
	if [ "$new" = "$old" ]; then
		:
	elif [ -n "$at" ]; then
		git -C "$at" reset -q --keep "$new" >&2 ||
			die "$at has uncommitted changes in files that $head would change: commit or stash them; nothing was changed"
	else
		kgit update-ref -m "steadyread: $verb" "refs/heads/$head" "$new" "${old:-0000000000000000000000000000000000000000}"
	fi
	kgit update-ref "$applied" "$new"
}

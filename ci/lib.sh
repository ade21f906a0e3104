# Sourced by every verb: where things are, which tree is meant, how to fail.
# shellcheck shell=sh disable=SC2034,SC2154
set -eu
umask 022
export LC_ALL=C TZ=UTC TERM=dumb
export PYTHONDONTWRITEBYTECODE=1	# no __pycache__ in the checkout
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH	# a python3 shim earlier in PATH makes kernel builds crawl

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cache=${STEADYREAD_CACHE:-${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/steadyread}
verb=${0##*/}

say() { printf '%s: %s\n' "$verb" "$*" >&2; }
die() { printf '%s: error: %s\n' "$verb" "$*" >&2; exit 1; }

# usable FOLDER WAY-OUT: kbuild breaks on white space and colons in a path, QEMU's options and lists of disks on commas.
usable() {
	case $1 in *[[:space:],:]*) die "the path '$1' has white space, a comma or a colon, which kbuild or QEMU cannot take: $2" ;; esac
}
case $cache in /*) ;; *) cache=$PWD/$cache ;; esac
usable "$root" 'move the checkout'
usable "$cache" 'set STEADYREAD_CACHE to another'
{ mkdir -p "$cache" && cache=$(CDPATH='' cd -- "$cache" && pwd); } 2>/dev/null ||
	die "cannot create the cache folder $cache (set STEADYREAD_CACHE to another)"
export STEADYREAD_CACHE="$cache"

# Only a folder that was ours from the start has this mark (of bford.info/cachedir), and only such a one is cleaned.
mark=$cache/CACHEDIR.TAG
if [ -z "$(ls -A "$cache")" ]; then
	printf '%s\n' 'Signature: 8a477f597d28d172789f06886806bc55' '# Made by steadyread; ci/clean removes it.' >"$mark" ||
		die "cannot write in the cache folder $cache (set STEADYREAD_CACHE to another)"
fi

# need_space MIB: a full disk is met before the work, not in the middle of it.
need_space() {
	free=$(df -Pm "$cache" | awk 'NR == 2 { print $4 }')
	[ "$free" -ge "$1" ] || die "$cache has $free MiB free, this step needs $1 MiB: free some (ci/clean) or set STEADYREAD_CACHE"
}

# one_of NAME VALUE KNOWN...
one_of() {
	name=$1 value=$2
	shift 2
	for known; do
		[ "$value" = "$known" ] && return 0
	done
	die "unknown $name '$value': known are $*"
}

# rows FILE: the lines of a data file without comments.
rows() { sed -e '/^#/d' -e '/^[[:space:]]*$/d' "$1"; }

trees() { rows "$root/series/trees.tsv" | cut -f1; }

# tree_field N: column N of the row of $TREE in series/trees.tsv.
tree_field() { rows "$root/series/trees.tsv" | awk -F '\t' -v t="$TREE" -v n="$1" '$1 == t { print $n }'; }

references() { (cd "$root/patches/$TREE/reference" 2>/dev/null && for d in */; do [ -d "$d" ] && echo "${d%/}"; done) || :; }

TREE=${TREE:-7.3} KERNEL=${KERNEL:-patched} ARCH=${ARCH:-arm64}
# shellcheck disable=SC2046
one_of TREE "$TREE" $(trees)
one_of ARCH "$ARCH" arm64
# shellcheck disable=SC2046
one_of KERNEL "$KERNEL" patched base $(references)

# Git as if on a machine without settings, so that the same input gives the same commits everywhere; and a caller that is
# itself a git hook or alias has no say. Trees that belong to another user are allowed: this user named them.
command -v git >/dev/null 2>&1 || "$root/ci/install" || exit 1
# shellcheck disable=SC2046
unset $(git rev-parse --local-env-vars)
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME='steadyread developers' GIT_AUTHOR_EMAIL=developers@steadyread.invalid
export GIT_COMMITTER_NAME="$GIT_AUTHOR_NAME" GIT_COMMITTER_EMAIL="$GIT_AUTHOR_EMAIL"

if [ -n "${KTREE:-}" ]; then
	KTREE=$(CDPATH='' cd -- "$KTREE" && pwd) || die "KTREE is not a folder"
	export KTREE
	repo=$(git -C "$KTREE" rev-parse --absolute-git-dir) || die "KTREE=$KTREE is not a git tree"
	base=$(git -C "$KTREE" rev-parse -q --verify "${KBASE:-HEAD}^{commit}") || die "KTREE=$KTREE has no commit ${KBASE:-HEAD}"
	id=$TREE-$(printf %s "$repo" | cksum | cut -d' ' -f1)
else
	repo=$cache/linux.git
	# What stands for the version that the table asks for: itself, or a newer one if it is no longer served (ci/fetch).
	base=refs/steadyread/base/$(tree_field 4 | tr '~:' '_%')
	id=$TREE
fi
branch=steadyread/$TREE

kgit() { git --git-dir="$repo" "$@"; }

# commit_of KERNEL: the commit that is built for it.
commit_of() {
	case $1 in
	base) ref=$base ;;
	patched) ref=refs/heads/$branch ;;
	*) ref=refs/heads/$branch-$1 ;;
	esac
	kgit rev-parse -q --verify "$ref^{commit}" || die "$TREE has no commit for KERNEL=$1 ($ref)"
}

# disk_paths DISKS SPEC...: what ci/boot takes for the disks named, which may have QEMU's options; DISKS is what ci/disks says.
# All but the first are only read.
disk_paths() {
	known=$1 more=
	shift
	for spec; do
		path=$(echo "$known" | sed -n "s/^${spec%%,*} //p")
		[ -n "$path" ] || die "selftests/disks.tsv has no disk '${spec%%,*}'"
		printf '%s%s ' "$path${spec#"${spec%%,*}"}" "$more"
		more=,readonly=on
	done
}

# kmake ARGUMENT...: the one way that the kernel in $src is made into $obj; another compiler line would rebuild everything.
export CCACHE_DIR="$cache/ccache" CCACHE_MAXSIZE=3G CCACHE_BASEDIR="$cache/build" CCACHE_NOHASHDIR=1
kmake() {
	make -C "$src" O="$obj" ARCH="$ARCH" CROSS_COMPILE=aarch64-linux-gnu- \
		CC="${CCACHE-ccache }aarch64-linux-gnu-gcc" \
		KBUILD_BUILD_TIMESTAMP='2026-01-01' KBUILD_BUILD_USER=steadyread KBUILD_BUILD_HOST=steadyread "$@"
}

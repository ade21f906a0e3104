# Sourced by cases: a copy of ci/ in $house with one toy tree, 1.0, whose mirror is the folder $TOY_MIRROR.
# shellcheck shell=sh disable=SC2034,SC2154
set -e
house=$tmp/house TOY_MIRROR=$tmp/mirror file=fs/f2fs/a.c
export TOY_MIRROR TREE=1.0 STEADYREAD_CACHE="$tmp/cache" LC_ALL=C
mkdir -p "$house/series" "$house/patches/1.0/f2fs" "$TOY_MIRROR"
cp -R "$ci" "$house/"
echo "diff --git a/$file b/$file" >"$house/patches/1.0/f2fs/0001-a.patch"
: >"$TOY_MIRROR/Sources"
sed -i '/^[[:space:]]*need_space [0-9]/d' "$house/ci/fetch" "$house/ci/pristine"	# a toy needs less

cat >"$house/ci/mirror" <<'MIRROR'
#!/bin/sh
# Instead of ci/mirror: what is in the folder $TOY_MIRROR is served.
for last; do :; done
name=$(echo "$last" | tr = _)
case $* in
'apt-cache madison '*) (cd "$TOY_MIRROR" && ls *.deb) | sed 's/^\([^_]*\)_\([^_]*\)_.*/ \1 | \2 | here/' ;;
'apt-cache showsrc '*) cat "$TOY_MIRROR/Sources" ;;
'apt-get -q download '*) cp "$TOY_MIRROR/${name}_all.deb" . ;;
*' --diff-only '*) cp "$TOY_MIRROR/$name.debian.tar.xz" . || { echo '  404  Not Found'; exit 100; } ;;
*' --tar-only '*) cp "$TOY_MIRROR/${name%-*}.orig.tar.xz" . || { echo '  404  Not Found'; exit 100; } ;;
*) echo "E: the toy mirror cannot do: $*"; exit 100 ;;
esac 2>/dev/null
MIRROR

# serve VERSION: the package of the toy tree, the same bytes each time.
serve() {
	rm -rf "$tmp/pack"
	mkdir -p "$tmp/pack/DEBIAN" "$tmp/pack/usr/src" "$tmp/pack/top/fs/f2fs"
	printf '%s\n' 'Package: linux-source-1.0' "Version: $1" 'Architecture: all' 'Maintainer: nobody' 'Description: toy' >"$tmp/pack/DEBIAN/control"
	echo "of $1" >"$tmp/pack/top/$file"
	tar -C "$tmp/pack" -cJf "$tmp/pack/usr/src/linux-source-1.0.tar.xz" top
	rm -rf "$tmp/pack/top"
	dpkg-deb --root-owner-group -b "$tmp/pack" "$TOY_MIRROR/linux-source-1.0_$1_all.deb" >/dev/null
}
# table VERSION COMMIT [SHA256]: what series/trees.tsv asks for.
table() {
	sum=$(sha256sum "$TOY_MIRROR/linux-source-1.0_$1_all.deb" 2>/dev/null | cut -d' ' -f1)
	printf '1.0\tv1.0\tlinux-source-1.0\t%s\tsuite\t%s\t%s\n' "$1" "${3:-$sum}" "$2" >"$house/series/trees.tsv"
}
# left: what is in the cache, in one line.
left() { (cd "$STEADYREAD_CACHE" && find . -name '*.deb' && git --git-dir=linux.git for-each-ref --format='%(refname) %(objectname)') 2>/dev/null | sort | tr '\n' ' '; }

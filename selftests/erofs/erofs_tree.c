// SPDX-License-Identifier: GPL-2.0
/*
 * erofs_tree ORIGINAL [shared|fragments|tails ...]: /dev/vda holds the same files as the disk ORIGINAL, both erofs, the latter
 * uncompressed: compare them all, byte for byte, in order, at random places, and mapped into memory, each from cold. The image
 * must use the features named: extents that files share, tails or files in the packed inode, tails beside their inodes.
 */
#include <ftw.h>

#include "steady.h"

#define ORIGINAL	"/tmp/original"
#define READS		4000

struct file {
	char path[120];		/* below the mount point */
	off_t size;
};

static struct file *files, *found;	/* found is where collect() puts them */
static int nr, nr_found;

static int collect(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const char *name = path;
	int i;

	(void)ftw;
	must(type == FTW_F || type == FTW_D, "%s is neither a file nor a folder, or cannot be read\n", path);
	if (type == FTW_D)
		return 0;
	for (i = 0; i < 2; i++)
		name = strchr(name + 1, '/');
	found = realloc(found, (nr_found + 1) * sizeof(*found));
	must(found && strlen(name) < sizeof(found->path), "no memory for %s\n", path);
	strcpy(found[nr_found].path, name);
	found[nr_found++].size = st->st_size;
	return 0;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct file *)a)->path, ((const struct file *)b)->path);
}

/* All files below @mnt, sorted. */
static struct file *walk(const char *mnt, int *n)
{
	found = NULL;
	nr_found = 0;
	must(!nftw(mnt, collect, 20, FTW_PHYS) && nr_found, "cannot walk %s\n", mnt);
	qsort(found, nr_found, sizeof(*found), by_path);
	*n = nr_found;
	return found;
}

static bool same_files(void)
{
	struct file *others;
	int n, i;

	files = walk(ORIGINAL, &nr);
	others = walk(MNT, &n);
	ksft_print_msg("%d files, %d in the original\n", n, nr);
	for (i = 0; i < n && i < nr; i++) {
		if (strcmp(files[i].path, others[i].path) || files[i].size != others[i].size) {
			ksft_print_msg("%s of %jd bytes, in the original %s of %jd\n", others[i].path,
				       (intmax_t)others[i].size, files[i].path, (intmax_t)files[i].size);
			return false;
		}
	}
	return n == nr;
}

static void open_both(const struct file *f, int *fd, int *ofd)
{
	char path[200];

	snprintf(path, sizeof(path), MNT "%s", f->path);
	*fd = open(path, O_RDONLY);
	snprintf(path, sizeof(path), ORIGINAL "%s", f->path);
	*ofd = open(path, O_RDONLY);
	must(*fd >= 0 && *ofd >= 0, "cannot open %s\n", f->path);
}

static bool in_order(const struct file *f, int fd, int ofd)
{
	return same_bytes(fd, ofd) == f->size;
}

static bool at_random(const struct file *f, int fd, int ofd)
{
	static char buf[40000], want[sizeof(buf)];
	off_t at = random() % f->size;
	size_t n = 1 + random() % sizeof(buf), left = f->size - at;

	if (n > left)
		n = left;
	if (pread(fd, buf, n, at) == (ssize_t)n && pread(ofd, want, n, at) == (ssize_t)n && !memcmp(buf, want, n))
		return true;
	ksft_print_msg("%zu bytes at %jd differ\n", n, (intmax_t)at);
	return false;
}

/* Pages from the last to the first, which readahead does not expect; what follows the end of the file is zero. */
static bool mapped(const struct file *f, int fd, int ofd)
{
	size_t page = sysconf(_SC_PAGESIZE), size = (f->size + page - 1) / page * page, at;
	char *p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	char *want = mmap(NULL, size, PROT_READ, MAP_SHARED, ofd, 0);
	bool same = true;

	must(p != MAP_FAILED && want != MAP_FAILED, "cannot map %s\n", f->path);
	for (at = size; same && at > 0; at -= page)
		same = !memcmp(p + at - page, want + at - page, page);
	for (at = f->size; same && at < size; at++)
		same = !p[at];
	if (!same)
		ksft_print_msg("the map differs around %zu\n", at);
	munmap(p, size);
	munmap(want, size);
	return same;
}

/* Apply @same to each file from cold, or to @times files picked at random if that is not 0. */
static bool all(bool (*same)(const struct file *, int, int), int times)
{
	bool good = true;
	int i, fd, ofd;

	drop_caches();
	for (i = 0; good && i < (times ?: nr); i++) {
		const struct file *f = &files[times ? random() % nr : i];

		if (!f->size && same != in_order)
			continue;
		open_both(f, &fd, &ofd);
		good = same(f, fd, ofd);
		if (!good)
			ksft_print_msg("%s of %jd bytes differs\n", f->path, (intmax_t)f->size);
		close(fd);
		close(ofd);
	}
	return good;
}

/* mkfs.erofs sets these bits, and the number of the packed inode, only if a file made use of it. */
static bool uses(const char *feature)
{
	unsigned char sb[128];
	uint32_t incompat;
	uint64_t packed;
	int fd = open("/dev/vda", O_RDONLY);

	must(fd >= 0 && pread(fd, sb, sizeof(sb), 1024) == sizeof(sb), "cannot read /dev/vda\n");
	close(fd);
	memcpy(&incompat, sb + 80, sizeof(incompat));
	memcpy(&packed, sb + 96, sizeof(packed));
	if (!strcmp(feature, "tails"))
		return incompat & 0x10;
	if (!strcmp(feature, "fragments"))
		return incompat & 0x20 && packed;
	must(!strcmp(feature, "shared"), "no such feature: %s\n", feature);
	return incompat & 0x20 && !packed;	/* the same bit, so only without fragments it can be told */
}

int main(int argc, char **argv)
{
	int i;

	ksft_print_header();
	ksft_set_plan(4 + (argc > 2 ? argc - 2 : 0));
	must(argc > 1, "usage: erofs_tree original [shared|fragments|tails ...]\n");
	seed_random();
	for (i = 2; i < argc; i++)
		ksft_test_result(uses(argv[i]), "the image has %s\n", argv[i]);
	mkdir(MNT, 0755);
	mkdir(ORIGINAL, 0755);
	must(!mount("/dev/vda", MNT, "erofs", MS_RDONLY, NULL), "cannot mount /dev/vda\n");
	must(!mount(argv[1], ORIGINAL, "erofs", MS_RDONLY, NULL), "cannot mount %s\n", argv[1]);

	ksft_test_result(same_files(), "the same files\n");
	ksft_test_result(all(in_order, 0), "in order\n");
	ksft_test_result(all(at_random, READS), "at random\n");
	ksft_test_result(all(mapped, 0), "mapped\n");
	must(!umount(MNT) && !umount(ORIGINAL), "cannot unmount\n");
	ksft_finished();
}

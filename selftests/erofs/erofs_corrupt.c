// SPDX-License-Identifier: GPL-2.0
/*
 * erofs_corrupt lengths|data: make the image on /dev/vda hostile, with the file system unmounted, and read it. Extents that are
 * shorter than their compressed data (lengths), and compressed data that is broken (data), have to be an error, and nothing
 * else may suffer. At the end the image is put right again.
 *
 * No decoder notices every flipped bit: there only whole pages or an error are asked for.
 */
#include "erofs.h"
#include <endian.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#define BLOCK		4096
#define SUPER		1024
#define COMPACT		3		/* the layout of an inode whose index has 4 bytes a block of the file */
#define HEAD		(1 << 12)	/* an extent begins in the block, the low bits tell where */
#define NONHEAD		(2 << 12)
#define BLOCKS		(1 << 11)	/* the low bits tell the size of the compressed data */
#define CRAFTED		24		/* extents made up */
#define MAX_EXTENTS	1024
#define EACH		6		/* extents broken in each way */

enum way { ZEROES, ONES, CUT, NOISE, FLIPS, WAYS };

static const char * const names[WAYS] = {
	[ZEROES] = "zeroes",
	[ONES] = "ones",
	[CUT] = "cut in half",
	[NOISE] = "noise",
	[FLIPS] = "bits flipped",
};

static struct extent {
	off_t at, disk;
	size_t length, stored;
	enum way way;
	unsigned char *good;
} extents[MAX_EXTENTS];

static struct tally {
	int extents, failed, right, wrong, other;	/* all but the first in pages */
} tallies[WAYS + 1];

/* The blocks that hold the inode of the file and the start of its index. */
static struct meta {
	unsigned char super[BLOCK], inode[2 * BLOCK];
} __attribute__((aligned(BLOCK))) good, bad;

static off_t inode_at;		/* on the disk, of @inode */
static int in_block;		/* of the inode */
static int disk, original;

static void disk_io(bool out, off_t at, void *buf, size_t n)
{
	ssize_t done = out ? pwrite(disk, buf, n, at) : pread(disk, buf, n, at);

	must(done == (ssize_t)n, "cannot %s the disk at %jd\n", out ? "write" : "read", (intmax_t)at);
}

static void write_meta(struct meta *meta)
{
	disk_io(true, 0, meta->super, sizeof(meta->super));
	disk_io(true, inode_at, meta->inode, sizeof(meta->inode));
	must(!memcmp(meta->super, good.super, SUPER), "the first KiB is not ours\n");
}

static uint16_t *index_of(struct meta *meta)
{
	unsigned char *inode = meta->inode + in_block;
	int size = inode[0] & 1 ? 64 : 32;

	must((inode[0] >> 1 & 7) == COMPACT && !inode[2] && !inode[3], "the inode is not what mkfs.erofs makes by default\n");
	return (void *)(inode + size + 8);
}

/* The entry of block @n of the file: two and 4 bytes of an address are one group. */
static uint16_t *entry(struct meta *meta, int n)
{
	return index_of(meta) + n / 2 * 4 + n % 2;
}

static void set_size(struct meta *meta, uint32_t size)
{
	size = htole32(size);
	memcpy(meta->inode + in_block + 8, &size, sizeof(size));
}

/* Where the inode is: its number counts slots of 32 bytes. */
static void find_meta(void)
{
	uint32_t magic, blocks;
	struct stat st;

	mount_erofs("");
	must(!stat(TEXT, &st), "there is no %s\n", TEXT);
	must(!umount(MNT), "cannot unmount\n");
	disk_io(false, 0, good.super, sizeof(good.super));
	memcpy(&magic, good.super + SUPER, 4);
	memcpy(&blocks, good.super + SUPER + 40, 4);
	must(le32toh(magic) == 0xe0f5e1e2, "there is no erofs\n");
	inode_at = (off_t)le32toh(blocks) * BLOCK + 32 * st.st_ino;
	in_block = inode_at % BLOCK;
	inode_at -= in_block;
	must(inode_at, "the inode is beside the superblock\n");
	disk_io(false, inode_at, good.inode, sizeof(good.inode));
	must(in_block + 64 + 8 + 64 < (int)sizeof(good.inode), "the index is too far away\n");
	good.super[SUPER + 8] &= ~1;	/* no checksum of the superblock */
}

/* Read the first @size bytes, all of the file. Returns 0 where they are right, an errno, or DIFFERS. */
static int read_short(const char *options, int advice, size_t size)
{
	static char buf[CHUNK] __attribute__((aligned(BLOCK))), want[CHUNK] __attribute__((aligned(BLOCK)));
	size_t done = 0;
	ssize_t n;
	int fd;

	mount_erofs(options);
	fd = open_text();
	posix_fadvise(fd, 0, 0, advice);
	while ((n = pread(fd, buf + done, size - done, done)) > 0)
		done += n;
	if (n < 0)
		n = errno;
	else if (pread(original, want, CHUNK, 0) != CHUNK || done != size || memcmp(buf, want, done))
		n = DIFFERS;
	close(fd);
	must(!umount(MNT), "cannot unmount\n");
	return n;
}

/*
 * The first extent ends in block @last of the file, @rest bytes from its start, and so does the file: its length is known to
 * be right, and less than that of its data, as nowhere but at the end.
 */
static void craft(int last, int rest)
{
	int n;

	bad = good;
	for (n = 2; n < last; n++)	/* the second entry of a group has the distance to the next extent, others that to the last */
		*entry(&bad, n) = htole16(NONHEAD | (n % 2 ? last - n : n));
	*entry(&bad, last) = htole16(HEAD | rest);
	set_size(&bad, last * BLOCK + rest);
	write_meta(&bad);
}

/* Extents shorter than their data. Returns how many reads of them went wrong. */
static int short_extents(void)
{
	uint16_t second = le16toh(*entry(&good, 1));
	int stored = second & (BLOCKS - 1), i, last, rest, err, failed = 0, wrong = 0;

	must((le16toh(*entry(&good, 0)) & (3 << 12)) == HEAD && (second & (3 << 12)) == NONHEAD && second & BLOCKS && stored > 4,
	     "the first extent is too small\n");
	for (i = 0; i < CRAFTED; i++) {
		last = 2 + random() % (stored < 16 ? stored - 3 : 13);
		rest = 1 + random() % 3000;
		craft(last, rest);
		err = read_short(i % 2 ? "cache_strategy=disabled" : "", i % 4 / 2 ? POSIX_FADV_RANDOM : POSIX_FADV_NORMAL,
				 last * BLOCK + rest);
		failed += err == EUCLEAN || err == EIO;
		wrong += err != EUCLEAN && err != EIO;
		if (err != EUCLEAN)
			ksft_print_msg("%d blocks as %d bytes: %s\n", stored, last * BLOCK + rest,
				       err == DIFFERS ? "wrong data" : strerror(err));
	}
	ksft_print_msg("%d extents shorter than their data, %d refused\n", CRAFTED, failed);
	return wrong;
}

/* The file ends before its first extent does: that is no error. */
static int short_files(void)
{
	int wrong = 0, i, err, size;

	for (i = 0; i < CRAFTED; i++) {
		size = BLOCK + 1 + random() % (3 * BLOCK);
		bad = good;
		for (int n = 2; n < 4; n++)
			*entry(&bad, n) = htole16(NONHEAD | (n % 2 ? 1 : n));
		set_size(&bad, size);
		write_meta(&bad);
		err = read_short(i % 2 ? "cache_strategy=disabled" : "", i % 4 / 2 ? POSIX_FADV_RANDOM : POSIX_FADV_NORMAL, size);
		wrong += !!err;
		if (err)
			ksft_print_msg("%d bytes of the first extent: %s\n", size, err == DIFFERS ? "wrong data" : strerror(err));
	}
	return wrong;
}

/* All extents of the file but the last; their compressed data lies in one row. */
static int find_extents(void)
{
	static struct fiemap *map;
	int fd, n = 0, i;

	map = calloc(1, sizeof(*map) + MAX_EXTENTS * sizeof(*map->fm_extents));
	must(map, "no memory\n");
	map->fm_length = ~0ULL;
	map->fm_extent_count = MAX_EXTENTS;
	mount_erofs("");
	fd = open_text();
	must(!ioctl(fd, FS_IOC_FIEMAP, map), "cannot ask for the extents\n");
	close(fd);
	must(!umount(MNT), "cannot unmount\n");
	for (i = 0; i + 1 < (int)map->fm_mapped_extents; i++) {
		struct fiemap_extent *e = &map->fm_extents[i];
		struct extent x = { .at = e->fe_logical, .disk = e->fe_physical, .length = e->fe_length, .way = WAYS };

		if (e[1].fe_physical <= e->fe_physical || e->fe_physical % BLOCK || e->fe_length <= 2 * BLOCK)
			continue;
		x.stored = e[1].fe_physical - e->fe_physical;
		if (x.stored < x.length)
			extents[n++] = x;
	}
	free(map);
	return n;
}

static void break_extent(struct extent *x, enum way way)
{
	unsigned char *data = aligned_alloc(BLOCK, x->stored);
	size_t i;

	x->way = way;
	x->good = aligned_alloc(BLOCK, x->stored);
	must(x->good && data, "no memory\n");
	disk_io(false, x->disk, x->good, x->stored);
	memcpy(data, x->good, x->stored);
	for (i = 0; i < x->stored; i++)
		switch (way) {
		case ZEROES:
			data[i] = 0;
			break;
		case ONES:
			data[i] = 0xff;
			break;
		case CUT:
			data[i] = i < x->stored / 2 ? data[i] : 0;
			break;
		case NOISE:
			data[i] = random();
			break;
		default:
			break;
		}
	for (i = 0; way == FLIPS && i < 8; i++)
		data[random() % x->stored] ^= 1 << random() % 8;
	disk_io(true, x->disk, data, x->stored);
	free(data);
	tallies[way].extents++;
}

/* Read the pages that lie within the extent, and are not shared with its neighbours. */
static void read_extent(int fd, struct extent *x)
{
	off_t at = (x->at + BLOCK - 1) / BLOCK * BLOCK;
	struct tally *t = &tallies[x->way];

	for (; at + BLOCK <= x->at + (off_t)x->length; at += BLOCK) {
		int err = check_pages(fd, original, at, BLOCK);

		*(!err ? &t->right : err == DIFFERS ? &t->wrong : err == EUCLEAN || err == EIO ? &t->failed : &t->other) += 1;
	}
}

static void read_extents(int n)
{
	int fd, i;

	mount_erofs("");
	fd = open_text();
	for (i = 0; i < n; i++)
		read_extent(fd, &extents[i]);
	close(fd);
	must(!umount(MNT), "cannot unmount\n");
}

static void test_lengths(void)
{
	ksft_set_plan(3);
	find_meta();
	ksft_test_result(!short_files(), "a file that ends before its extent\n");
	ksft_test_result(!short_extents(), "extents shorter than their data are refused\n");
	write_meta(&good);
	ksft_test_result(!read_short("", POSIX_FADV_NORMAL, CHUNK), "readable after repair\n");
}

static void test_data(void)
{
	struct tally *t;
	int n, i;

	ksft_set_plan(WAYS + 2);
	n = find_extents();
	must(n > 2 * WAYS * EACH, "there are only %d extents\n", n);
	for (i = random() % 2; i < 2 * WAYS * EACH; i += 2)
		break_extent(&extents[i], i / 2 % WAYS);
	if (n > 4 * WAYS * EACH)
		n = 4 * WAYS * EACH;
	read_extents(n);
	for (i = 0; i <= WAYS; i++) {
		t = &tallies[i];
		ksft_print_msg("%s: %d extents, of pages read: %d failed, %d right, %d wrong, %d another error\n",
			       i < WAYS ? names[i] : "untouched", t->extents, t->failed, t->right, t->wrong, t->other);
	}
	for (i = 0; i < WAYS; i++) {
		t = &tallies[i];
		if (i == FLIPS)
			ksft_test_result(t->extents && !t->other, "%s: an error or whole pages\n", names[i]);
		else if (i == CUT)	/* what comes before the cut may be right; some LZ4 take zeroes for matches */
			ksft_test_result(t->failed && !t->other, "%s: an error or whole pages\n", names[i]);
		else
			ksft_test_result(t->failed && !t->right && !t->wrong && !t->other, "%s\n", names[i]);
	}
	t = &tallies[WAYS];
	ksft_test_result(t->right && !t->failed && !t->wrong && !t->other, "other extents readable\n");

	for (i = 0; i < n; i++)
		if (extents[i].good) {
			disk_io(true, extents[i].disk, extents[i].good, extents[i].stored);
			extents[i].way = WAYS;
		}
	memset(tallies, 0, sizeof(tallies));
	read_extents(n);
	ksft_print_msg("after repair %d pages right, %d not\n", t->right, t->failed + t->wrong + t->other);
	ksft_test_result(t->right && !t->failed && !t->wrong && !t->other, "readable after repair\n");
}

int main(int argc, char **argv)
{
	bool data = argc == 2 && !strcmp(argv[1], "data");

	ksft_print_header();
	must(data || (argc == 2 && !strcmp(argv[1], "lengths")), "usage: erofs_corrupt lengths|data\n");
	seed_random();
	disk = open("/dev/vda", O_RDWR | O_DIRECT);
	must(disk >= 0, "cannot open /dev/vda\n");
	original = open_original();
	write_file("/proc/sys/kernel/printk", "3");	/* broken data is logged as an error, many times; what is worse ends in a panic */
	if (data)
		test_data();
	else
		test_lengths();
	ksft_finished();
}

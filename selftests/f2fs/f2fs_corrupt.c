// SPDX-License-Identifier: GPL-2.0
/*
 * f2fs_corrupt FILE OPTIONS: corrupt some compressed clusters of FILE on /dev/vda, each in one of several ways,
 * with the filesystem unmounted; mount it with OPTIONS and read all of FILE, page by page, in order and around those
 * clusters. A corrupted cluster has to be an error, all others have to be as on /dev/vdb. At the end the clusters are put
 * right again.
 *
 * No decoder notices every flipped bit: there only whole pages or an error are asked for, checksum or not.
 */
#include "clusters.h"

#define MAX_EACH	8	/* clusters corrupted in each way */
#define MAX_CLUSTERS	8192

enum way { CLEN_MAX, CLEN_0, SHORT, HALF, TRAILING, JUNK, FLIPS, MAGIC, LONGER, WAYS };

static const char * const names[WAYS] = {
	[CLEN_MAX] = "length 0xffffffff",
	[CLEN_0] = "length 0",
	[SHORT] = "length a byte short",
	[HALF] = "length halved",
	[TRAILING] = "length a byte long",
	[JUNK] = "bytes that are not zero behind the data",
	[FLIPS] = "bits flipped",
	/* of zstd only */
	[MAGIC] = "magic number broken",
	[LONGER] = "data of two clusters",
};

struct bad {
	enum way way;
	off_t at;
	struct cluster *c;	/* as it was */
};

static struct tally {
	int clusters, failed, right, wrong, other;	/* all but the first in pages */
} tallies[WAYS];

static struct extents map;
static struct bad bads[WAYS * MAX_EACH];
static int nr_bads, original, healthy, unhealthy;
static size_t size;	/* of a cluster */

/* A frame that is right, but twice as long as a cluster: blocks of one repeated byte. Returns the length of the frame. */
static unsigned int longer_frame(unsigned char *to)
{
	unsigned int block = size < 128 << 10 ? size : 128 << 10, n = 2 * size / block, header, i;

	memcpy(to, "\x28\xb5\x2f\xfd", 5);	/* and 0: a window follows, no size and no checksum of the content */
	to[5] = (__builtin_ctzl(size) - 10) << 3;
	for (i = 0; i < n; i++) {
		header = block << 3 | 1 << 1 | (i == n - 1);
		to[6 + 4 * i] = header;
		to[7 + 4 * i] = header >> 8;
		to[8 + 4 * i] = header >> 16;
		to[9 + 4 * i] = 'A';
	}
	return 6 + 4 * n;
}

/* Change @c. Returns false if this cluster cannot be corrupted in this way. */
static bool corrupt(enum way way, struct cluster *c)
{
	unsigned int end = HEADER + c->clen, n, room = c->blocks * BLOCK - end;
	uint32_t clen = c->clen;

	switch (way) {
	case CLEN_MAX:
		clen = 0xffffffff;
		break;
	case CLEN_0:
		clen = 0;
		break;
	case SHORT:
		clen--;
		break;
	case HALF:
		clen /= 2;
		break;
	case TRAILING:
		clen++;
		if (!room)
			return false;
		break;
	case JUNK:
		n = room < 8 ? room : 8;
		memset(c->data + end, 0xa5, n);
		clen += n;
		if (!n)
			return false;
		break;
	case MAGIC:
		c->data[HEADER] ^= 1 << random() % 8;
		break;
	case LONGER:
		clen = longer_frame((unsigned char *)c->data + HEADER);
		break;
	default:
		for (n = 1 + random() % 8; n; n--)
			c->data[HEADER + random() % clen] ^= 1 << random() % 8;
	}
	clen = htole32(clen);
	memcpy(c->data, &clen, sizeof(clen));
	return true;
}

/* Corrupt every other compressed cluster, or fewer of them, in all ways in turn. */
static void corrupt_some(int disk, off_t end, int nr_ways)
{
	static off_t at[MAX_CLUSTERS];
	static struct cluster good, bad;
	int n = 0, i, step;
	off_t next;

	for (next = 0; next < end && n < MAX_CLUSTERS; next += size)
		if (read_cluster(disk, &map, next, size, &good))
			at[n++] = next;
	step = n / (nr_ways * MAX_EACH);
	for (i = random() % 2; i < n && nr_bads < nr_ways * MAX_EACH; i += step < 2 ? 2 : step) {
		struct bad *b = &bads[nr_bads];

		b->way = nr_bads % nr_ways;
		b->at = at[i];
		must(read_cluster(disk, &map, b->at, size, &good), "a compressed cluster is gone\n");
		bad = good;
		if (!corrupt(b->way, &bad))
			continue;
		b->c = aligned_alloc(BLOCK, sizeof(*b->c));
		must(b->c, "no memory\n");
		*b->c = good;
		write_cluster(disk, &bad);
		tallies[b->way].clusters++;
		nr_bads++;
	}
	ksft_print_msg("%d compressed clusters, %d of them corrupted\n", n, nr_bads);
}

static void read_page(int fd, off_t at, off_t end)
{
	static char buf[BLOCK], want[BLOCK];
	ssize_t should = end - at < BLOCK ? end - at : BLOCK, n;
	struct tally *t = NULL;
	int i;

	for (i = 0; i < nr_bads; i++)
		if (bads[i].c && at >= bads[i].at && at < bads[i].at + (off_t)size)
			t = &tallies[bads[i].way];
	must(pread(original, want, should, at) == should, "cannot read the original\n");
	n = pread(fd, buf, BLOCK, at);
	if (!t)
		*(n == should && !memcmp(buf, want, n) ? &healthy : &unhealthy) += 1;
	else if (n == should)
		*(memcmp(buf, want, n) ? &t->wrong : &t->right) += 1;
	else
		*(n < 0 && errno == EIO ? &t->failed : &t->other) += 1;
}

static void read_pages(const char *path, const char *options)
{
	off_t at, end, pages = size / BLOCK;
	int fd, i;

	must(!mount_f2fs("/dev/vda", 0, options), "cannot mount /dev/vda with %s\n", options);
	fd = open(path, O_RDONLY);
	must(fd >= 0, "cannot open %s\n", path);
	end = lseek(fd, 0, SEEK_END);
	for (at = 0; at < end; at += BLOCK)
		read_page(fd, at, end);
	drop_caches();
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	for (i = 0; i < 4 * nr_bads; i++) {	/* in the cluster and its neighbours */
		at = bads[i / 4].at + (random() % (3 * pages) - pages) * BLOCK;
		if (at >= 0 && at < end)
			read_page(fd, at, end);
	}
	close(fd);
	must(!umount(MNT), "cannot unmount\n");
}

int main(int argc, char **argv)
{
	int nr_ways, algorithm, disk, fd, i;
	char path[200];
	off_t end;

	ksft_print_header();
	must(argc == 3, "usage: f2fs_corrupt file options\n");
	seed_random();

	snprintf(path, sizeof(path), MNT "/%s", argv[1]);
	must(!mount_f2fs("/dev/vda", MS_RDONLY, ""), "cannot mount /dev/vda\n");
	fd = open(path, O_RDONLY);
	original = open("/dev/vdb", O_RDONLY);
	must(fd >= 0 && original >= 0, "cannot open %s or /dev/vdb\n", path);
	size = cluster_size(fd, &algorithm);
	nr_ways = algorithm == ZSTD ? WAYS : MAGIC;
	ksft_set_plan(nr_ways + 2);
	end = lseek(fd, 0, SEEK_END);
	get_extents(fd, &map);
	close(fd);
	must(!umount(MNT), "cannot unmount\n");

	disk = open("/dev/vda", O_RDWR | O_DIRECT);
	must(disk >= 0, "cannot open /dev/vda\n");
	corrupt_some(disk, end, nr_ways);
	read_pages(path, argv[2]);
	for (i = 0; i < nr_ways; i++) {
		struct tally *t = &tallies[i];

		ksft_print_msg("%s: %d clusters, of pages read: %d EIO, %d right, %d wrong, %d another error or short\n",
			       names[i], t->clusters, t->failed, t->right, t->wrong, t->other);
		if (i == FLIPS)
			ksft_test_result(t->clusters && !t->other, "%s: an error or whole pages\n", names[FLIPS]);
		else
			ksft_test_result(t->clusters && !t->right && !t->wrong && !t->other, "%s\n", names[i]);
	}
	ksft_print_msg("pages of other clusters: %d right, %d not\n", healthy, unhealthy);
	ksft_test_result(healthy && !unhealthy, "other clusters readable\n");

	for (i = 0; i < nr_bads; i++) {
		write_cluster(disk, bads[i].c);
		bads[i].c = NULL;
	}
	healthy = 0;
	read_pages(path, argv[2]);
	ksft_print_msg("pages after repair: %d right, %d not\n", healthy, unhealthy);
	ksft_test_result(healthy && !unhealthy, "readable after repair\n");
	ksft_finished();
}

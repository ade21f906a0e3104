// SPDX-License-Identifier: GPL-2.0
/*
 * f2fs_matrix write|read|compare [ALGORITHM|all [OPTIONS]]: a file for each algorithm (or the one named) and cluster size,
 * with and without checksums, each with the bytes of /dev/vdb but for the odd end.
 *
 *	write	make the files on the empty f2fs of /dev/vda
 *	read	mount /dev/vda with OPTIONS and compare its files with /dev/vdb: read in order, with O_DIRECT, at random
 *		places and as a map, each from cold
 *	compare	write one at a time, and compare the compressed blocks with those of the same file on /dev/vdc
 *
 * Pages of zeroes are written in the first half of a file, and left as holes in the second.
 */
#include "clusters.h"

#define ODD_END	1111	/* what a file is shorter than /dev/vdb */
#define READS	20	/* at random places */
#define OTHER	"/tmp/other"

static const struct {
	const char *name, *option;
} algorithms[] = {
	{ "lzo", "lzo" },
	{ "lzo-rle", "lzo-rle" },
	{ "lz4", "lz4" },
	{ "lz4hc", "lz4:9" },
	{ "zstd", "zstd" },
	{ "zstd-9", "zstd:9" },
};

static char *input;	/* what the files have to hold */
static size_t size;

static void get_input(void)
{
	int fd = open("/dev/vdb", O_RDONLY);
	size_t done;
	ssize_t n;

	must(fd >= 0, "cannot open /dev/vdb\n");
	size = lseek(fd, 0, SEEK_END) - ODD_END;
	input = malloc(size);
	must(input, "no memory\n");
	for (done = 0; done < size; done += n) {
		n = pread(fd, input + done, size - done, done);
		must(n > 0, "cannot read /dev/vdb at %zu\n", done);
	}
	close(fd);
}

static int open_file(const char *dir, const char *name, int flags)
{
	char path[200];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, flags, 0644);
	must(fd >= 0, "cannot open %s\n", path);
	return fd;
}

static uint64_t saved_blocks(int fd)
{
	uint64_t saved;

	must(!ioctl(fd, F2FS_IOC_GET_COMPRESS_BLOCKS, &saved), "cannot ask for the saved blocks\n");
	return saved;
}

/* Returns the number of blocks saved by compression. */
static uint64_t write_one(const char *name, const char *algorithm, int log, bool chksum)
{
	static const char zeroes[BLOCK];
	char options[200];
	size_t at, n;
	uint64_t saved;
	int fd;

	snprintf(options, sizeof(options), "compress_algorithm=%s,compress_log_size=%d,compress_extension=*%s",
		 algorithm, log, chksum ? ",compress_chksum" : "");
	must(!mount_f2fs("/dev/vda", 0, options), "cannot mount /dev/vda with %s\n", options);
	fd = open_file(MNT, name, O_CREAT | O_EXCL | O_RDWR);
	for (at = 0; at < size; at += n) {
		n = size - at < BLOCK ? size - at : BLOCK;
		if (at > size / 2 && !memcmp(input + at, zeroes, n))
			continue;
		must(pwrite(fd, input + at, n, at) == (ssize_t)n, "cannot write at %zu\n", at);
	}
	must(!ftruncate(fd, size) && !fsync(fd), "cannot write %s\n", name);
	must(cluster_size(fd, NULL) == (size_t)BLOCK << log, "%s has clusters of another size\n", name);
	saved = saved_blocks(fd);
	close(fd);
	must(!umount(MNT), "cannot unmount\n");
	return saved;
}

static void write_file_of(const char *name, const char *algorithm, int log, bool chksum)
{
	uint64_t saved = write_one(name, algorithm, log, chksum);

	ksft_print_msg("%s: %zu bytes, %" PRIu64 " blocks saved\n", name, size, saved);
	ksft_test_result(saved, "%s compressed\n", name);
}

static bool reads(const char *name, int flags)
{
	static char buf[CHUNK] __attribute__((aligned(BLOCK)));
	int fd = open_file(MNT, name, O_RDONLY | flags);
	size_t at = 0;
	ssize_t n;

	while ((n = pread(fd, buf, sizeof(buf), at)) > 0 && at + n <= size && !memcmp(buf, input + at, n))
		at += n;
	close(fd);
	if (!n && at == size)
		return true;
	ksft_print_msg("%s: wrong after %zu of %zu bytes\n", name, at, size);
	return false;
}

static bool reads_at_random(const char *name)
{
	int fd = open_file(MNT, name, O_RDONLY), i;
	char buf[2 * BLOCK];
	size_t at = 0, n;
	bool same = true;

	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	for (i = 0; i < READS && same; i++) {
		n = 1 + random() % sizeof(buf);
		at = random() % (size - n);
		same = pread(fd, buf, n, at) == (ssize_t)n && !memcmp(buf, input + at, n);
	}
	close(fd);
	if (!same)
		ksft_print_msg("%s: %zu bytes at %zu are wrong\n", name, n, at);
	return same;
}

static bool maps(const char *name)
{
	int fd = open_file(MNT, name, O_RDONLY);
	char *p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	bool same;

	must(p != MAP_FAILED, "cannot map %s\n", name);
	same = !memcmp(p, input, size);
	munmap(p, size);
	close(fd);
	return same;
}

static void read_file_of(const char *name, const char *options)
{
	must(!mount_f2fs("/dev/vda", MS_RDONLY, options), "cannot mount /dev/vda with %s\n", options);
	ksft_test_result(reads(name, 0), "%s in order\n", name);
	drop_caches();
	ksft_test_result(reads(name, O_DIRECT), "%s with O_DIRECT\n", name);
	drop_caches();
	ksft_test_result(reads_at_random(name), "%s at random\n", name);
	drop_caches();
	ksft_test_result(maps(name), "%s mapped\n", name);
	must(!umount(MNT), "cannot unmount\n");
}

static void compare_file_of(const char *name, const char *algorithm, int log, bool chksum)
{
	static struct extents map[2];
	static struct cluster c[2];
	unsigned int clusters = 0, blocks = 0, different = 0, sums = 0, i;
	uint64_t saved[2];
	char path[200];
	int fd, disk[2];
	size_t at;

	write_one(name, algorithm, log, chksum);
	must(!mount_f2fs("/dev/vda", 0, ""), "cannot mount /dev/vda\n");
	must(!mount("/dev/vdc", OTHER, "f2fs", MS_RDONLY, NULL), "cannot mount /dev/vdc\n");
	for (i = 0; i < 2; i++) {
		fd = open_file(i ? OTHER : MNT, name, O_RDONLY);
		get_extents(fd, &map[i]);
		saved[i] = saved_blocks(fd);
		close(fd);
		disk[i] = open(i ? "/dev/vdc" : "/dev/vda", O_RDONLY | O_DIRECT);
		must(disk[i] >= 0, "cannot open the disks\n");
	}
	for (at = 0; at < size; at += BLOCK << log) {
		for (i = 0; i < 2; i++)
			if (!read_cluster(disk[i], &map[i], at, BLOCK << log, &c[i]))
				c[i].blocks = 0;
		clusters += c[1].blocks > 0;
		blocks += c[1].blocks;
		sums += c[1].blocks && le32_at(c[1].data + 4);
		if (c[0].blocks == c[1].blocks && !memcmp(c[0].data, c[1].data, c[0].blocks * BLOCK))
			continue;
		if (!different++)
			ksft_print_msg("%s: at %zu %u blocks of %u bytes, but %u of %u\n", name, at,
				       c[0].blocks, c[0].clen, c[1].blocks, c[1].clen);
	}
	for (i = 0; i < 2; i++)
		close(disk[i]);
	snprintf(path, sizeof(path), MNT "/%s", name);
	must(!unlink(path), "cannot remove %s\n", path);
	must(!umount(MNT) && !umount(OTHER), "cannot unmount\n");
	ksft_print_msg("%s: %u clusters in %u blocks, %u with a checksum, %u different, saved %" PRIu64 " and %" PRIu64 "\n",
		       name, clusters, blocks, sums, different, saved[0], saved[1]);
	/* each cluster takes or saves all its blocks: none has been missed */
	ksft_test_result(blocks && !different && saved[0] == saved[1] && blocks + saved[1] == clusters << log &&
			 sums == (chksum ? clusters : 0), "%s same blocks\n", name);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "", *only = argc > 2 ? argv[2] : "all";
	unsigned int a, n = 0;
	char name[40];
	int log, chksum;

	ksft_print_header();
	for (a = 0; a < ARRAY_SIZE(algorithms); a++)
		n += !strcmp(only, "all") || !strcmp(only, algorithms[a].name);
	ksft_set_plan(n * 4 * 2 * (!strcmp(mode, "read") ? 4 : 1));
	must(n && (!strcmp(mode, "write") || !strcmp(mode, "read") || !strcmp(mode, "compare")),
	     "usage: f2fs_matrix write|read|compare [algorithm|all [options]]\n");
	seed_random();
	mkdir(OTHER, 0755);
	get_input();

	for (a = 0; a < ARRAY_SIZE(algorithms); a++) {
		if (strcmp(only, "all") && strcmp(only, algorithms[a].name))
			continue;
		for (log = 2; log <= 8; log += 2)
			for (chksum = 0; chksum < 2; chksum++) {
				snprintf(name, sizeof(name), "%s-%dk%s", algorithms[a].name, 4 << log,
					 chksum ? "-chksum" : "");
				if (!strcmp(mode, "read"))
					read_file_of(name, argc > 3 ? argv[3] : "");
				else if (!strcmp(mode, "write"))
					write_file_of(name, algorithms[a].option, log, chksum);
				else
					compare_file_of(name, algorithms[a].option, log, chksum);
			}
	}
	ksft_finished();
}

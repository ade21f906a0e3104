// SPDX-License-Identifier: GPL-2.0
/*
 * read_back FILESYSTEM FILE ORIGINAL: mount /dev/vda and compare FILE with the bare disk ORIGINAL, byte for byte: in order,
 * at random places, and mapped into memory, each from cold.
 */
#include "steady.h"

#define READS	2000

static bool at_random(int fd, int ofd, off_t size)
{
	char buf[5000], want[sizeof(buf)];
	int i;

	for (i = 0; i < READS; i++) {
		size_t n = 1 + random() % sizeof(buf);
		off_t at = random() % (size - n);

		if (pread(fd, buf, n, at) != (ssize_t)n || pread(ofd, want, n, at) != (ssize_t)n || memcmp(buf, want, n)) {
			ksft_print_msg("%zu bytes at %jd differ\n", n, (intmax_t)at);
			return false;
		}
	}
	return true;
}

static bool mapped(int fd, int ofd, off_t size)
{
	char *p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0), want[CHUNK];
	off_t at;

	must(p != MAP_FAILED, "cannot map the file\n");
	for (at = 0; at < size; at += CHUNK) {
		size_t n = size - at < CHUNK ? size - at : CHUNK;

		if (pread(ofd, want, n, at) != (ssize_t)n || memcmp(p + at, want, n)) {
			ksft_print_msg("the map differs after %jd\n", (intmax_t)at);
			return false;
		}
	}
	munmap(p, size);
	return true;
}

int main(int argc, char **argv)
{
	char path[200];
	int fd, ofd;
	off_t size;

	ksft_print_header();
	ksft_set_plan(3);
	must(argc == 4, "usage: read_back filesystem file original\n");
	seed_random();
	mkdir(MNT, 0755);
	must(!mount("/dev/vda", MNT, argv[1], MS_RDONLY, NULL), "cannot mount /dev/vda as %s\n", argv[1]);
	snprintf(path, sizeof(path), MNT "/%s", argv[2]);
	fd = open(path, O_RDONLY);
	ofd = open(argv[3], O_RDONLY);
	must(fd >= 0 && ofd >= 0, "cannot open %s or %s\n", path, argv[3]);
	size = lseek(fd, 0, SEEK_END);
	must(size > CHUNK, "%s is too short\n", path);

	ksft_test_result(same_bytes(fd, ofd) == size, "in order\n");
	drop_caches();
	ksft_test_result(at_random(fd, ofd, size), "at random\n");
	drop_caches();
	ksft_test_result(mapped(fd, ofd, size), "mapped\n");
	close(fd);
	close(ofd);
	must(!umount(MNT), "cannot unmount\n");
	ksft_finished();
}

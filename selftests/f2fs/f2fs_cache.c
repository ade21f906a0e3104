// SPDX-License-Identifier: GPL-2.0
/*
 * f2fs_cache BYTES [low]: with the mount option compress_cache, read the first BYTES of the compressed file on /dev/vda, let
 * its page cache go, and read them again: the compressed pages must come from the cache of compressed pages. Then the
 * same after part of the file was overwritten: nothing old may come back. Data is compared with /dev/vdb.
 */
#include "../steady.h"

#define STATUS	"/sys/kernel/debug/f2fs/status"

struct cost {
	long long wanted, hits, sectors;
};

/*
 * Let the page cache of the file go, page by page: drop_caches would drop the compressed pages as well, and so would
 * POSIX_FADV_DONTNEED, on f2fs. A page on another CPU's list may stay.
 */
static void page_out(int fd, off_t size)
{
	volatile char *p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	int left, tries;
	off_t at;

	must(p != MAP_FAILED, "cannot map the file\n");
	for (at = 0; at < size; at += sysconf(_SC_PAGESIZE))
		if (pages_cached(fd, at, 1))
			(void)p[at];
	must(!madvise((void *)p, size, MADV_PAGEOUT), "cannot page out the file\n");
	for (tries = 0; (left = pages_cached(fd, 0, size)) && tries < 10; tries++) {
		sleep_ms(100);
		madvise((void *)p, size, MADV_PAGEOUT);
	}
	munmap((void *)p, size);
	must(left < size / sysconf(_SC_PAGESIZE) / 20, "%d pages of the file stay cached\n", left);
}

/* Read @size bytes of the file without anything of it in the page cache; the first @moved bytes stand @moved later in @ofd. */
static bool read_cold(int ofd, off_t size, off_t moved, struct cost *cost)
{
	static char buf[CHUNK], want[CHUNK];
	int fd = open(FILE_ON_DISK, O_RDONLY);
	bool same = true;
	off_t at;

	must(fd >= 0, "cannot open %s\n", FILE_ON_DISK);
	page_out(fd, size);
	cost->hits = number_in(STATUS, ", hit:");
	cost->sectors = sectors_read();
	profile_begin("f2fs_load_compressed_*");	/* _page, or _folio */
	for (at = 0; at < size && same; at += CHUNK) {
		same = pread(fd, buf, CHUNK, at) == CHUNK &&
		       pread(ofd, want, CHUNK, at < moved ? at + moved : at) == CHUNK && !memcmp(buf, want, CHUNK);
		if (!same)
			ksft_print_msg("data differs after %jd\n", (intmax_t)at);
	}
	profile_end();
	close(fd);
	cost->wanted = profiled("f2fs_load_compressed_folio", NULL) + profiled("f2fs_load_compressed_page", NULL);
	cost->hits = number_in(STATUS, ", hit:") - cost->hits;
	cost->sectors = sectors_read() - cost->sectors;
	return same;
}

/* Put what stands at @moved in @ofd at the beginning of the file. */
static void overwrite(int ofd, off_t moved)
{
	char *buf = malloc(moved);
	int fd = open(FILE_ON_DISK, O_RDWR);

	must(buf && fd >= 0, "cannot open %s\n", FILE_ON_DISK);
	must(pread(ofd, buf, moved, moved) == moved && pwrite(fd, buf, moved, 0) == moved && !fsync(fd), "cannot overwrite\n");
	close(fd);
	free(buf);
}

int main(int argc, char **argv)
{
	bool low = argc == 3 && !strcmp(argv[2], "low"), same[3];
	struct cost cost[3];
	long long cached;
	off_t size, moved = 1 << 20;
	int ofd, i;

	ksft_print_header();
	ksft_set_plan(3);
	must(argc == 2 || low, "usage: f2fs_cache bytes [low]\n");
	size = atoll(argv[1]);
	must(size > moved && !(size % CHUNK), "%jd is not a number of bytes to read\n", (intmax_t)size);
	write_file("/sys/block/vda/queue/read_ahead_kb", "128");
	must(!mount_f2fs("/dev/vda", 0, low ? "compress_cache,memory=low" : "compress_cache"), "cannot mount /dev/vda\n");
	if (number_in(STATUS, ", hit:") < 0)
		ksft_exit_skip("there is no count of hits in " STATUS "\n");
	ofd = open("/dev/vdb", O_RDONLY);
	must(ofd >= 0, "cannot open /dev/vdb\n");

	same[0] = read_cold(ofd, size, 0, &cost[0]);
	cached = number_in(STATUS, "- compress:");
	same[1] = read_cold(ofd, size, 0, &cost[1]);
	overwrite(ofd, moved);
	same[2] = read_cold(ofd, size, moved, &cost[2]);
	for (i = 0; i < 3; i++)
		ksft_print_msg("read %d: %lld compressed pages wanted, %lld were cached, %lld sectors read\n", i + 1, cost[i].wanted,
			       cost[i].hits, cost[i].sectors);
	ksft_print_msg("%lld compressed pages cached after the first read\n", cached);

	must(cost[0].wanted > 0 && cost[1].wanted > 0, "the compressed pages that are wanted cannot be counted\n");
	ksft_test_result(same[0] && same[1], "data right\n");
	ksft_test_result(cost[1].hits * 10 >= cost[1].wanted * 9 && cost[1].sectors * 10 <= cost[0].sectors,
			 "compressed pages stay cached\n");
	ksft_test_result(same[2], "nothing old after an overwrite\n");
	close(ofd);
	must(!umount(MNT), "cannot unmount\n");
	ksft_finished();
}

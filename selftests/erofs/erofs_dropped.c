// SPDX-License-Identifier: GPL-2.0
/*
 * erofs_dropped MOUNT-OPTION LIMIT LIMIT LIMIT LIMIT: read the file on /dev/vda from cold in four ways (names below), compare it
 * with /dev/vdb, and count the sectors that this takes; then do the same while all allocations fail that may not reclaim, as
 * readahead's do. What it has begun it may drop then, but the sectors that it has read are read a second time for that: all
 * may be at most LIMIT percent of what they are without faults. A way with a limit of 0 is left out.
 *
 * The cache of compressed pages is filled by such allocations, too: with cache_strategy=disabled there is none in either case.
 */
#include "erofs.h"

#define READS	2000

enum way { IN_ORDER, AT_RANDOM, ADVISED, MAPPED, WAYS };

static const char * const names[WAYS] = {
	[IN_ORDER] = "in order",
	[AT_RANDOM] = "at random",
	[ADVISED] = "at random, with POSIX_FADV_RANDOM",
	[MAPPED] = "mapped, at random",
};

/* How much the kernel must read for more than it was asked to: its default, as a virtio disk has megabytes. */
#define READ_AHEAD_KB	"128"

/* Returns whether all was right. */
static bool read_in(enum way way, off_t size)
{
	int fd = open_text(), ofd = open_original(), err = 0, i;
	off_t at;
	char *p;

	if (way == ADVISED)
		posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	must(p != MAP_FAILED, "cannot map the file\n");
	for (at = 0; way == IN_ORDER && at < size && !err; at += CHUNK)
		err = check_pages(fd, ofd, at, size - at < CHUNK ? size - at : CHUNK);
	for (i = 0; way != IN_ORDER && i < READS && !err; i++) {
		at = random() % (size / PAGE) * PAGE;
		err = way == MAPPED ? check_map(p, ofd, at, PAGE) : check_pages(fd, ofd, at, PAGE);
	}
	if (err)
		ksft_print_msg("%s: %s\n", names[way], err == DIFFERS ? "data differs" : strerror(err));
	munmap(p, size);
	close(fd);
	close(ofd);
	return !err;
}

/* The sectors that it takes, or -1 where data is wrong. */
static long long cost(enum way way, off_t size, unsigned int seed, bool faults)
{
	long long before;
	bool right;

	srandom(seed);
	drop_caches();
	before = sectors_read();
	fail_nowait("fail_page_alloc", faults);
	right = read_in(way, size);
	fail_nowait("fail_page_alloc", false);
	return right ? sectors_read() - before : -1;
}

int main(int argc, char **argv)
{
	long long without, with, dropped = 0;
	unsigned int seed;
	int limits[WAYS] = { 0 }, plan = 0, fd;
	enum way way;
	off_t size;

	ksft_print_header();
	must(argc == 2 + WAYS, "usage: erofs_dropped mount-option limit limit limit limit\n");
	for (way = 0; way < WAYS; way++) {
		limits[way] = atoi(argv[2 + way]);
		plan += limits[way] ? 2 : 0;
	}
	ksft_set_plan(plan);
	write_file("/sys/block/vda/queue/read_ahead_kb", READ_AHEAD_KB);
	mount_erofs(argv[1]);
	fd = open_text();
	size = lseek(fd, 0, SEEK_END);
	close(fd);
	seed = seed_random();

	for (way = 0; way < WAYS; way++) {
		if (!limits[way])
			continue;
		without = cost(way, size, seed, false);
		if (!access(DROPPED, F_OK))
			dropped = counter(DROPPED);
		with = cost(way, size, seed, true);
		ksft_print_msg("%s: %lld sectors, with faults %lld: %lld%%\n", names[way], without, with,
			       without > 0 ? with * 100 / without : -1);
		if (!access(DROPPED, F_OK))
			ksft_print_msg("%s: %lld readaheads dropped\n", names[way], counter(DROPPED) - dropped);
		ksft_test_result(without > 0 && with > 0, "%s: data right\n", names[way]);
		ksft_test_result(without > 0 && with * 100 <= without * limits[way],
				 "%s: sectors within %d%%\n", names[way], limits[way]);
	}
	must(!umount(MNT), "cannot unmount\n");
	ksft_finished();
}

// SPDX-License-Identifier: GPL-2.0
/*
 * f2fs_remount HOW TIMES: change the memory mode by remount while reads of /dev/vda (compressed, throttled by the
 * host) are in flight, and compare what is read with /dev/vdb. HOW is
 *
 *   to-normal	reads submitted under memory=low complete under memory=normal
 *   to-low	the other direction
 *   twice	to-low, and back as soon as the reads are complete
 *   same	memory=low on a memory=low mount
 *   failed	a remount that is refused half-way
 *   storm	all of them in turn
 *
 * Afterwards nothing may be left: as many ranges are unmapped as were mapped, and the vmalloc areas of f2fs and the free
 * memory are as before.
 */
#include "../steady.h"
#include <signal.h>
#include <sys/random.h>
#include <sys/wait.h>

struct how {
	const char *name, *start, *flip;	/* flip NULL: a refused remount */
	bool back;
	bool alone;	/* no other read begins until the flip is over */
};

static const struct how hows[] = {
	{ "to-normal", "memory=low", "memory=normal", false, true },
	{ "to-low", "memory=normal", "memory=low", false, true },
	{ "twice", "memory=normal", "memory=low", true, true },
	{ "same", "memory=low", "memory=low", false, false },
	{ "failed", "memory=low", NULL, false, false },
};

static int remount(const char *options)
{
	/* a refused remount has set the defaults before it gets there */
	return mount("none", MNT, NULL, MS_REMOUNT, options ?: "memory=low,noextent_cache");
}

static int in_flight(void)
{
	int reads = 0;
	FILE *f = fopen("/sys/block/vda/inflight", "r");

	must(f && fscanf(f, "%d", &reads) == 1, "cannot read the number of reads in flight\n");
	fclose(f);
	return reads;
}

/*
 * Read at random places, cold: once, so little that it is submitted in one go, or for ever. Exit status 1 if a byte
 * differs.
 */
static pid_t reader(unsigned int seed, bool forever)
{
	static char buf[1 << 20], want[1 << 20];
	const size_t size = forever ? sizeof(buf) : CHUNK;
	pid_t pid = fork();

	must(pid >= 0, "cannot fork\n");
	if (pid)
		return pid;
	srandom(seed);
	do {
		int fd = open(FILE_ON_DISK, O_RDONLY), ofd = open("/dev/vdb", O_RDONLY);
		off_t at = random() % (lseek(fd, 0, SEEK_END) - size);

		at &= ~4095L;
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		posix_fadvise(fd, 0, 0, forever ? POSIX_FADV_NORMAL : POSIX_FADV_RANDOM);
		if (pread(fd, buf, size, at) != (ssize_t)size || pread(ofd, want, size, at) != (ssize_t)size ||
		    memcmp(buf, want, size))
			_exit(1);
		close(fd);
		close(ofd);
	} while (forever);
	_exit(0);
}

/* Flip once while reads are in flight. Returns false if there were none for seconds. */
static bool flip(const struct how *how)
{
	int64_t until = now_ms() + 2000;
	bool hit;

	while (!(hit = in_flight()) && now_ms() < until)
		;
	if (how->flip)
		must(!remount(how->flip), "cannot remount with %s\n", how->flip);
	else
		must(remount(NULL) < 0, "a remount that must be refused was not\n");
	if (!how->back)
		return hit;
	while (in_flight() && now_ms() < until)
		;
	must(!remount(how->start), "cannot remount back with %s\n", how->start);
	return hit;
}

/* Returns whether the readers saw the right data. */
static bool flip_alone(const struct how *how, unsigned int seed, int *hits)
{
	pid_t pid;
	int status;

	must(!remount(how->start), "cannot remount with %s\n", how->start);
	pid = reader(seed, false);
	*hits += flip(how);
	waitpid(pid, &status, 0);
	return !status;
}

/* One way, or any at random, never waiting for the readers. */
static bool flip_among_readers(const struct how *only, int times, unsigned int seed, int *hits)
{
	pid_t pids[2] = { reader(seed, true), reader(seed + 1, true) };
	int i, status;
	bool good = true;

	for (i = 0; i < times; i++) {
		const struct how *how = only ?: &hows[random() % ARRAY_SIZE(hows)];

		must(!remount(how->start), "cannot remount with %s\n", how->start);
		*hits += flip(how);
	}
	for (i = 0; i < 2; i++) {
		good &= !waitpid(pids[i], &status, WNOHANG);	/* a reader ends only when data differs */
		kill(pids[i], SIGKILL);
		waitpid(pids[i], &status, 0);
	}
	return good;
}

/* What f2fs has allocated with vmalloc(). */
static int count_areas(void)
{
	return count_lines("/proc/vmallocinfo", "f2fs") + count_lines("/proc/vmallocinfo", "zstd");
}

static void settle(void)
{
	while (in_flight())
		sleep_ms(100);
	drop_caches();
	sleep(2);	/* late frees, and per-CPU lists that go back once a second */
	drop_caches();
}

int main(int argc, char **argv)
{
	unsigned int seed, h, way = ARRAY_SIZE(hows);
	int times, i, areas[2], hits = 0;
	long long kb[2], maps, unmaps;
	bool good = true;

	ksft_print_header();
	ksft_set_plan(5);
	must(argc == 3, "usage: f2fs_remount how times\n");
	for (h = 0; h < ARRAY_SIZE(hows); h++)
		if (!strcmp(argv[1], hows[h].name))
			way = h;
	must(way < ARRAY_SIZE(hows) || !strcmp(argv[1], "storm"), "unknown way %s\n", argv[1]);
	times = atoi(argv[2]);
	seed = seed_random();

	must(!mount_f2fs("/dev/vda", 0, "memory=normal"), "cannot mount /dev/vda\n");
	/* the same load without a flip fills what stays filled, the profile's own memory included */
	profile_begin("vm_map_ram vm_unmap_ram");
	for (i = 0; i < 20; i++)
		waitpid(reader(seed - i - 1, false), NULL, 0);
	settle();
	areas[0] = count_areas();
	kb[0] = free_kb();
	if (way == ARRAY_SIZE(hows) || !hows[way].alone)
		good = flip_among_readers(way == ARRAY_SIZE(hows) ? NULL : &hows[way], times, seed, &hits);
	else
		for (i = 0; i < times; i++)
			good &= flip_alone(&hows[way], seed + i, &hits);
	ksft_test_result(good, "data right\n");

	settle();
	profile_end();
	maps = profiled("vm_map_ram", NULL);
	unmaps = profiled("vm_unmap_ram", NULL);
	areas[1] = count_areas();
	kb[1] = free_kb();
	ksft_print_msg("%d of %d flips had reads in flight\n", hits, times);
	ksft_print_msg("%lld maps, %lld unmaps, vmalloc areas %d -> %d, free %lld -> %lld kB\n", maps, unmaps, areas[0],
		       areas[1], kb[0], kb[1]);
	ksft_test_result(hits >= times / 4, "reads in flight\n");
	ksft_test_result(maps == unmaps, "no map left\n");
	ksft_test_result(areas[1] <= areas[0], "no vmalloc area left\n");
	if (!access("/sys/kernel/debug/kmemleak", F_OK))
		ksft_test_result_skip("no memory left behind\n");	/* kmemleak finds it, and takes memory itself */
	else
		ksft_test_result(kb[1] + 2048 >= kb[0], "no memory left behind\n");
	must(!umount(MNT), "cannot unmount\n");
	ksft_finished();
}

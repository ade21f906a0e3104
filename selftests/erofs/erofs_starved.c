// SPDX-License-Identifier: GPL-2.0
/*
 * erofs_starved: several processes read the file on /dev/vda at random, with the reserve empty and without memory: their
 * allocations fail, also those that may reclaim: pages, slab objects, all of one slab cache, some of them or one at a time.
 * A read either completes with what is on /dev/vdb, or fails with ENOMEM; by a map it may end in SIGBUS. No other error, no
 * wrong data; and who has memory gets its data, though others who read the same have none.
 *
 * Needs a boot with slab_nomerge, so that vmap areas and pclusters have slab caches of their own.
 */
#include "erofs.h"
#include <glob.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

#define READERS		16
#define READS		80	/* of each */
#define GIVE_UP		3	/* faults that are tried again without end */
#define STRETCH		(2 << 20)	/* all read there, so that they meet */
#define SITES		60	/* allocations that fail one at a time */

enum outcome { RIGHT, NO_MEMORY, BUS, AGAIN, IO_ERROR, WRONG, OTHER, OUTCOMES };

static const char * const names[OUTCOMES] = {
	"right", "ENOMEM", "SIGBUS", "faulting on", "EIO", "wrong data", "another error",
};

static volatile struct shared {
	bool go;
	int ready;
	long outcomes[2][OUTCOMES];	/* of those who have memory, of those who do not */
} *shared;

static struct step {
	const char *name, *attribute, *cache;
	int probability;
	bool some;	/* only every other reader has no memory */
} steps[] = {
	{ .name = "some pages", .attribute = "fail_page_alloc", .probability = 30 },
	{ .name = "no page", .attribute = "fail_page_alloc", .probability = 100 },
	{ .name = "some slab objects", .attribute = "failslab", .probability = 30 },
	{ .name = "no pcluster", .attribute = "failslab", .probability = 100, .cache = "erofs_pcluster*" },
	{ .name = "no vmap area", .attribute = "failslab", .probability = 100, .cache = "vmap_area" },
	{ .name = "pages for others only", .attribute = "fail_page_alloc", .probability = 100, .some = true },
};

static struct step *step;
static int make_it_fail = -1, original;
static sigjmp_buf out;
static off_t size, start;

static void on_signal(int number)
{
	siglongjmp(out, number);
}

static void faults(bool on)
{
	if (make_it_fail >= 0)
		must(pwrite(make_it_fail, on ? "1" : "0", 1, 0) == 1, "cannot ask for faults\n");
}

static void set_alarm(int ms)
{
	struct itimerval t = { .it_value.tv_usec = ms * 1000 };

	setitimer(ITIMER_REAL, &t, NULL);
}

/* One page; @map is NULL or where the file is mapped. A fault that gets no page is tried again without end, so it is given up. */
static enum outcome read_page(int fd, const char *map, off_t at)
{
	static char buf[PAGE], want[PAGE] __attribute__((aligned(PAGE)));
	volatile enum outcome outcome = RIGHT;
	int number = sigsetjmp(out, 1);
	ssize_t n;

	if (!number) {
		if (make_it_fail >= 0)
			set_alarm(900);
		faults(true);
		if (map) {
			memcpy(buf, map + at, PAGE);
		} else {
			n = pread(fd, buf, PAGE, at);
			if (n != PAGE)
				outcome = n >= 0 ? OTHER : errno == ENOMEM ? NO_MEMORY : errno == EIO ? IO_ERROR : OTHER;
		}
	} else {
		outcome = number == SIGBUS ? BUS : AGAIN;
	}
	faults(false);
	set_alarm(0);
	if (outcome != RIGHT)
		return outcome;
	must(pread(original, want, PAGE, at) == PAGE, "cannot read the original\n");
	return memcmp(buf, want, PAGE) ? WRONG : RIGHT;
}

static int open_faults(void)
{
	int fd = open("/proc/self/make-it-fail", O_WRONLY);

	must(fd >= 0, "this kernel cannot make a task's allocations fail\n");
	return fd;
}

static int reader(int me)
{
	bool poor = !step->some || me % 2, mapped = me / 2 % 2 && !(step->some && poor);
	int fd = open_text(), again = 0, i;
	enum outcome outcome;
	char *map = NULL;
	off_t at;

	make_it_fail = poor ? open_faults() : -1;
	signal(SIGBUS, on_signal);
	signal(SIGALRM, on_signal);
	if (mapped) {
		map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
		must(map != MAP_FAILED, "cannot map the file\n");
		madvise(map, size, me / 4 % 2 ? MADV_RANDOM : MADV_NORMAL);
	}
	must(!mlockall(MCL_CURRENT | MCL_ONFAULT), "cannot lock memory\n");
	if (mapped)
		munlock(map, size);
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
	while (!shared->go)
		sleep_ms(5);
	for (i = 0; i < READS && again < GIVE_UP; i++) {
		at = start + random() % (STRETCH / PAGE) * PAGE;
		outcome = read_page(fd, map, at);
		again += outcome == AGAIN;
		__atomic_add_fetch(&shared->outcomes[poor][outcome], 1, __ATOMIC_SEQ_CST);
		if (map)
			madvise(map + start, STRETCH, MADV_DONTNEED);
		posix_fadvise(fd, start, STRETCH, POSIX_FADV_DONTNEED);
	}
	return 0;
}

/* Whether all reads were as they may be; says how they were. */
static bool as_they_may_be(bool poor)
{
	volatile long *n = shared->outcomes[poor];
	char line[256] = "";
	enum outcome i;

	for (i = 0; i < OUTCOMES; i++)
		if (n[i])
			snprintf(line + strlen(line), sizeof(line) - strlen(line), " %ld %s", n[i], names[i]);
	ksft_print_msg("%s:%s%s\n", step ? step->name : "one at a time", poor ? "" : " who has memory:", line);
	return !n[IO_ERROR] && !n[WRONG] && !n[OTHER] && (poor ? true : !n[NO_MEMORY] && !n[BUS] && !n[AGAIN] && n[RIGHT] > 0);
}

/* Whether there is such a cache, whose allocations alone fail then; NULL stands for those of all. */
static bool filter_caches(const char *cache)
{
	char path[128];
	glob_t caches;
	size_t i;

	write_file("/sys/kernel/debug/failslab/cache-filter", cache ? "Y" : "N");
	if (!cache)
		return true;
	snprintf(path, sizeof(path), "/sys/kernel/slab/%s/failslab", cache);
	if (glob(path, 0, NULL, &caches))
		return false;
	for (i = 0; i < caches.gl_pathc; i++)
		write_file(caches.gl_pathv[i], cache == step->cache ? "1" : "0");
	globfree(&caches);
	return true;
}

/* Wait for the readers, then let the allocations fail. */
static int start_faults(void)
{
	char path[128], probability[16];

	while (shared->ready < READERS)
		sleep_ms(5);
	drop_caches();
	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/ignore-gfp-wait", step->attribute);
	write_file(path, "N");
	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/task-filter", step->attribute);
	write_file(path, "Y");
	write_file("/sys/kernel/debug/fail_page_alloc/min-order", "0");
	must(filter_caches(step->cache), "there is no slab cache %s\n", step->cache);
	fail_always(step->attribute, true);
	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/probability", step->attribute);
	snprintf(probability, sizeof(probability), "%d", step->probability);
	write_file(path, probability);
	shared->go = true;
	return 0;
}

static int reader_or_starter(int me)
{
	return me < READERS ? reader(me) : start_faults();
}

static bool read_without_memory(void)
{
	bool good;

	memset((void *)shared, 0, sizeof(*shared));
	start = random() % ((size - STRETCH) / PAGE) * PAGE;
	good = !in_processes(READERS + 1, reader_or_starter);
	fail_always(step->attribute, false);
	if (step->cache) {	/* back to none */
		const char *cache = step->cache;

		step->cache = NULL;
		filter_caches(cache);
		step->cache = cache;
	}
	good &= as_they_may_be(true);
	if (step->some)
		good &= as_they_may_be(false);
	return good;
}

/* Each of the first allocations of a read alone, for some reads, with readahead and without. */
static bool one_at_a_time(void)
{
	int fd = open_text(), nth_fd, i;
	char *map, text[16];
	off_t at;

	step = NULL;
	make_it_fail = -1;
	memset((void *)shared, 0, sizeof(*shared));
	write_file("/sys/kernel/debug/fail_page_alloc/task-filter", "N");	/* it has its own */
	write_file("/sys/kernel/debug/failslab/task-filter", "N");
	filter_caches(NULL);
	map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	nth_fd = open("/proc/thread-self/fail-nth", O_RDWR);
	must(nth_fd >= 0 && map != MAP_FAILED, "this kernel cannot make one allocation fail\n");
	madvise(map, size, MADV_RANDOM);
	signal(SIGBUS, on_signal);
	signal(SIGALRM, on_signal);
	for (i = 0; i < 2 * SITES; i++) {
		enum outcome outcome;

		at = random() % (size / PAGE) * PAGE;
		snprintf(text, sizeof(text), "%d", 1 + i / 2);
		drop_caches();
		must(pwrite(nth_fd, text, strlen(text), 0) > 0, "cannot ask for a fault\n");
		outcome = read_page(fd, i % 2 ? map : NULL, at);
		must(pwrite(nth_fd, "0", 1, 0) == 1, "cannot stop faults\n");
		shared->outcomes[1][outcome]++;
	}
	munmap(map, size);
	close(nth_fd);
	close(fd);
	return as_they_may_be(true) && shared->outcomes[1][RIGHT] > 0;
}

int main(void)
{
	int fd, i;

	ksft_print_header();
	ksft_set_plan(ARRAY_SIZE(steps) + 2);
	must(!access("/sys/kernel/slab/vmap_area/failslab", F_OK), "vmap areas have no slab cache, boot with slab_nomerge\n");
	if (!memory_may_be_short())
		ksft_exit_skip("kmemleak would turn itself off\n");
	if (reserve_changes())
		write_file(RESERVED_PAGES, "0");
	write_file("/proc/sys/kernel/printk", "3");	/* each failure is logged as an error; what is worse ends in a panic */
	write_file("/sys/block/vda/queue/read_ahead_kb", "128");
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(shared != MAP_FAILED, "no memory\n");
	original = open_original();
	mount_erofs("");
	fd = open_text();
	size = lseek(fd, 0, SEEK_END);
	seed_random();

	for (i = 0; i < (int)ARRAY_SIZE(steps); i++) {
		step = &steps[i];
		ksft_test_result(read_without_memory(), "%s\n", step->name);
	}
	ksft_test_result(one_at_a_time(), "one allocation at a time\n");
	drop_caches();
	ksft_test_result(same_bytes(fd, open(ORIGINAL, O_RDONLY)) == size, "data right afterwards\n");
	close(fd);
	must(!umount(MNT), "cannot unmount\n");
	ksft_finished();
}

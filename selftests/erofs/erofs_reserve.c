// SPDX-License-Identifier: GPL-2.0
/*
 * erofs_reserve TIMES: change the size of the reserve of temporary pages TIMES times to 0, 64, 4096 and 0 pages, while several
 * processes read the file on /dev/vda at random and compare it with /dev/vdb. It is filled when it is given a size and
 * empty when it has none, leaves no memory behind, its counters tell what happens, and a size that the machine cannot
 * afford is refused or cut down with a message.
 */
#include "erofs.h"

#define READERS		6
#define READS		2000	/* while the size stays */

static volatile struct shared {
	bool stop;
	long reads;
} *shared;

static off_t size;

/* Returns 0 or an errno. */
static int resize(const char *pages)
{
	int fd = open(RESERVED_PAGES, O_WRONLY), err;

	must(fd >= 0, "cannot open %s\n", RESERVED_PAGES);
	err = write(fd, pages, strlen(pages)) == (ssize_t)strlen(pages) ? 0 : errno;
	close(fd);
	return err;
}

/* One page for which the compressed ones, which are more, have to go elsewhere. */
static int read_page(int fd, int ofd)
{
	off_t at = random() % (size / PAGE) * PAGE;
	int err = check_pages(fd, ofd, at, PAGE);

	posix_fadvise(fd, at, PAGE, POSIX_FADV_DONTNEED);
	return err ?: check_pages(fd, ofd, at, PAGE);
}

static int reader(int me)
{
	int fd = open_text(), ofd = open_original(), err = 0;

	(void)me;
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	while (!shared->stop && !err) {
		err = read_page(fd, ofd);
		__atomic_add_fetch(&shared->reads, 1, __ATOMIC_SEQ_CST);
	}
	return err;
}

static void settle(void)
{
	drop_caches();
	sleep(2);	/* late frees, and per-CPU lists that go back once a second */
	drop_caches();
}

/* Resize among readers. Returns whether all data was right and each size was taken. */
static bool resize_among_readers(int times)
{
	static const char * const sizes[] = { "0", "64", "4096", "0" };
	long long reads, least = -1;
	int status, bad = 0, i, j;
	pid_t pids[READERS];

	memset((void *)shared, 0, sizeof(*shared));
	fflush(stdout);
	for (i = 0; i < READERS; i++) {
		pids[i] = fork();
		must(pids[i] >= 0, "cannot fork\n");
		if (!pids[i]) {
			srandom(random() + i);
			_exit(reader(i));
		}
	}
	for (i = 0; i < times; i++)
		for (j = 0; j < 4; j++) {
			reads = shared->reads;
			if (resize(sizes[j]) || counter(RESERVED_PAGES) != atoll(sizes[j])) {
				ksft_print_msg("%lld reserved pages, not %s\n", counter(RESERVED_PAGES), sizes[j]);
				bad++;
			}
			while (shared->reads < reads + 3 && waitpid(-1, &status, WNOHANG) == 0)
				sleep_ms(1);
			reads = shared->reads - reads;
			least = least < 0 || reads < least ? reads : least;
		}
	shared->stop = true;
	for (i = 0; i < READERS; i++)
		if (waitpid(pids[i], &status, 0) != pids[i] || status) {
			ksft_print_msg("a reader ended with status %d\n", WEXITSTATUS(status));
			bad++;
		}
	ksft_print_msg("%ld reads, at least %lld at each size\n", shared->reads, least);
	return !bad && least > 0;
}

/* What the kernel has said since @seen, about the reserve, with @pages in it; gives its last line. */
static bool message_of(int kmsg, long long pages)
{
	char record[1024], number[32];
	bool found = false;
	ssize_t n;

	snprintf(number, sizeof(number), "%lld", pages);
	while ((n = read(kmsg, record, sizeof(record) - 1)) > 0 || errno == EPIPE) {
		record[n > 0 ? n : 0] = 0;
		if (!strstr(record, "erofs") || !strstr(record, "reserved_pages"))
			continue;
		ksft_print_msg("%s", strchr(record, ';') ?: record);
		found |= strstr(record, number) != NULL;
	}
	return found;
}

/* A size beyond all memory. */
static bool too_much(void)
{
	long long before = counter(RESERVED_PAGES), after, kb = number_in("/proc/meminfo", "MemTotal:");
	int kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK), err;
	bool told;

	must(kmsg >= 0 && lseek(kmsg, 0, SEEK_END) >= 0, "there is no /dev/kmsg\n");
	err = resize("4294967295");
	after = counter(RESERVED_PAGES);
	told = message_of(kmsg, after);
	close(kmsg);
	ksft_print_msg("4294967295 pages: %s, %lld of %lld in reserve\n", err ? strerror(err) : "accepted", after, kb / (PAGE >> 10));
	if (err)
		return after == before;
	return told && after < kb / (PAGE >> 10) / 8 && counter(RESERVED_FREE) <= after;
}

static bool nonsense(void)
{
	static const char * const values[] = { "-1", "many", "64 pages", "4294967296" };
	long long before = counter(RESERVED_PAGES);
	bool refused = true;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(values); i++)
		if (!resize(values[i]) || counter(RESERVED_PAGES) != before) {
			ksft_print_msg("'%s' was accepted\n", values[i]);
			refused = false;
		}
	return refused;
}

/* One reader, with as much in reserve as it can use, and the counters before and after. */
static bool counters(void)
{
	long long free[3], low[2], hits[2], misses[2];
	int fd = open_text(), ofd = open_original(), i, err = 0;
	bool good;

	must(!resize("0") && !resize("64"), "cannot resize the reserve\n");
	free[0] = counter(RESERVED_FREE);
	low[0] = counter(RESERVED_LOW);
	hits[0] = counter(RESERVED_HITS);
	misses[0] = counter(RESERVED_MISSES);
	drop_caches();
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	for (i = 0; i < READS && !err; i++)
		err = read_page(fd, ofd);
	low[1] = counter(RESERVED_LOW);
	hits[1] = counter(RESERVED_HITS);
	misses[1] = counter(RESERVED_MISSES);
	sleep_ms(500);	/* what is still being read ahead gives its pages back */
	free[1] = counter(RESERVED_FREE);
	ksft_print_msg("free %lld, after %d reads %lld; low %lld, %lld; %lld hits, %lld misses\n", free[0], READS, free[1], low[0],
		       low[1], hits[1] - hits[0], misses[1] - misses[0]);
	good = !err && free[0] == 64 && low[0] == 64 && free[1] == 64 && low[1] < 64 && hits[1] > hits[0];
	must(!resize("0"), "cannot resize the reserve\n");
	free[2] = counter(RESERVED_FREE);
	close(fd);
	close(ofd);
	return good && !free[2];
}

int main(int argc, char **argv)
{
	static const char * const names[] = { "filled, used and emptied, and counted", "data right and each size taken",
		"no memory left behind", "too much is refused or cut down, with a message", "nonsense is refused" };
	long long kb[2];
	size_t i;
	int fd;

	ksft_print_header();
	ksft_set_plan(ARRAY_SIZE(names) + 1);
	must(argc == 2, "usage: erofs_reserve times\n");
	ksft_test_result(reserve_changes(), "the reserve can be changed\n");
	if (!reserve_changes()) {
		for (i = 0; i < ARRAY_SIZE(names); i++)
			ksft_test_result_skip("%s\n", names[i]);
		ksft_finished();
	}
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(shared != MAP_FAILED, "no memory\n");
	write_file("/sys/block/vda/queue/read_ahead_kb", "128");
	mount_erofs("");
	fd = open_text();
	size = lseek(fd, 0, SEEK_END);
	close(fd);
	seed_random();

	ksft_test_result(counters(), "%s\n", names[0]);
	resize_among_readers(2);	/* what stays allocated is allocated then */
	settle();
	kb[0] = free_kb();
	ksft_test_result(resize_among_readers(atoi(argv[1])), "%s\n", names[1]);
	settle();
	kb[1] = free_kb();
	ksft_print_msg("free %lld -> %lld kB\n", kb[0], kb[1]);
	if (!access("/sys/kernel/debug/kmemleak", F_OK))
		ksft_test_result_skip("%s\n", names[2]);	/* kmemleak finds it, and takes memory itself */
	else
		ksft_test_result(kb[1] + 1024 >= kb[0], "%s\n", names[2]);
	ksft_test_result(too_much(), "%s\n", names[3]);
	ksft_test_result(nonsense(), "%s\n", names[4]);
	must(!resize("0") && !counter(RESERVED_FREE), "the reserve is not empty\n");
	must(!umount(MNT), "cannot unmount\n");
	ksft_finished();
}

// SPDX-License-Identifier: GPL-2.0
/*
 * f2fs_starved MOUNT-OPTION: 40 processes read the compressed file on /dev/vda from cold while the kernel gets no new vmap
 * area, as on a small address space that is used up, and memory is so fragmented that no two pages of a cluster are
 * neighbours. Each compares a part of its own with /dev/vdb; every other one by a map. None may see an error.
 *
 * Needs a boot with slab_nomerge, so that vmap areas have a slab cache of their own, whose allocations can fail.
 */
#include "../steady.h"
#include <sys/wait.h>

#define READERS	40
#define CACHE	"/sys/kernel/slab/vmap_area/failslab"
#define DIFFERS	255

static volatile struct shared {
	bool go;
	int ready;
} *shared;

/* Read from @from to @to; exits with the number of an error. */
static void __noreturn reader(bool map, off_t from, off_t to)
{
	static char buf[CHUNK], want[CHUNK];
	int fd = open(FILE_ON_DISK, O_RDONLY), ofd = open("/dev/vdb", O_RDONLY);
	char *p = mmap(NULL, to, PROT_READ, MAP_SHARED, fd, 0);
	ssize_t n, got;

	memset(buf, 1, sizeof(buf));	/* all of its memory is its own by now */
	memset(want, 1, sizeof(want));
	if (fd < 0 || ofd < 0 || p == MAP_FAILED)
		_exit(errno);
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
	while (!shared->go)
		sleep_ms(10);
	for (; from < to; from += n) {
		n = to - from < CHUNK ? to - from : CHUNK;
		if (pread(ofd, want, n, from) != n)
			_exit(errno ?: DIFFERS);
		for (got = 0; !map && got < n;) {
			ssize_t more = pread(fd, buf + got, n - got, from + got);

			if (more <= 0)
				_exit(more < 0 ? errno : DIFFERS);
			got += more;
		}
		if (memcmp(map ? p + from : buf, want, n))
			_exit(DIFFERS);
	}
	_exit(0);
}

/* Whether new vmap areas are refused now: a process needs one for its stack, but for a few that are kept. */
static bool refused(void)
{
	pid_t pids[100];
	int n, i;

	for (n = 0; n < 100; n++) {
		pids[n] = fork();
		if (!pids[n])
			for (;;)
				pause();
		if (pids[n] < 0)
			break;
	}
	for (i = 0; i < n; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	return n < 100;
}

/* All readers at once; prints how many met what, and returns how many met something. */
static int read_all_parts(off_t size, bool starved)
{
	int ends[512] = { 0 }, i, bad = 0, status;
	long long used, most = 0;
	off_t share = size / READERS / 4096 * 4096;

	memset((void *)shared, 0, sizeof(*shared));
	fflush(stdout);
	for (i = 0; i < READERS; i++) {
		pid_t pid = fork();

		must(pid >= 0, "cannot fork\n");
		if (!pid)
			reader(i % 2, i * share, i == READERS - 1 ? size : (i + 1) * share);
	}
	while (shared->ready < READERS)
		sleep_ms(10);
	drop_caches();
	fail_always("failslab", starved);
	must(refused() == starved, starved ? "vmap areas are to be had\n" : "cannot fork\n");
	shared->go = true;
	for (i = 0; i < READERS; i++) {
		while (!waitpid(-1, &status, WNOHANG)) {
			used = number_in("/proc/meminfo", "VmallocUsed:");
			most = used > most ? used : most;
			sleep_ms(10);
		}
		ends[WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status)]++;
	}
	must(refused() == starved, starved ? "vmap areas were to be had\n" : "cannot fork any more\n");
	fail_always("failslab", false);
	for (i = 1; i < 512; i++) {
		if (!ends[i])
			continue;
		bad += ends[i];
		ksft_print_msg("%d of %d readers met %s\n", ends[i], READERS,
			       i == DIFFERS ? "wrong data" : i > 256 ? strsignal(i - 256) : strerror(i));
	}
	ksft_print_msg("%d of %d readers read all %s new vmap areas, vmalloc had up to %lld kB\n", READERS - bad, READERS,
		       starved ? "without" : "with", most);
	return bad;
}

int main(int argc, char **argv)
{
	struct stat st;

	ksft_print_header();
	ksft_set_plan(3);
	must(argc == 2, "usage: f2fs_starved mount-option\n");
	if (access("/sys/kernel/debug/failslab/cache-filter", F_OK) || access(CACHE, W_OK))
		ksft_exit_skip("there is no failslab for " CACHE ", boot with slab_nomerge\n");
	write_file(CACHE, "1");
	write_file("/sys/kernel/debug/failslab/cache-filter", "Y");
	write_file("/sys/kernel/debug/failslab/ignore-gfp-wait", "N");
	write_file("/sys/block/vda/queue/read_ahead_kb", "128");
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(shared != MAP_FAILED, "no memory\n");
	must(!mount_f2fs("/dev/vda", MS_RDONLY, argv[1]), "cannot mount /dev/vda with %s\n", argv[1]);
	must(!stat(FILE_ON_DISK, &st), "there is no %s\n", FILE_ON_DISK);

	fragment();
	/* first with all there is: this also starts the workers that memory=low needs, whose stacks are vmap areas, too */
	ksft_test_result(!read_all_parts(st.st_size, false), "no error with address space\n");
	ksft_test_result(!read_all_parts(st.st_size, true), "no error without address space\n");
	drop_caches();
	ksft_test_result(read_all("/dev/vdb") == st.st_size, "data right afterwards\n");
	must(!umount(MNT), "cannot unmount\n");
	ksft_finished();
}

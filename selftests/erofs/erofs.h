/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of erofs share: the names of functions and files that differ between kernels, reads that are compared with
 * the original, many readers at once, faults of allocations, and memory that is short.
 *
 * The image on /dev/vda holds a file text, among others; its bytes stand bare on /dev/vdb.
 */
#ifndef STEADY_EROFS_H
#define STEADY_EROFS_H

#include "../steady.h"
#include <sys/swap.h>
#include <sys/wait.h>

#define PAGE		4096
#define TEXT		MNT "/text"
#define ORIGINAL	"/dev/vdb"
#define DIFFERS		255	/* an errno that is none */
#define MAX_READERS	64

/* The reserve's parameter and counters; only kernels with the series have the counters. */
#define RESERVED_PAGES	"/sys/module/erofs/parameters/reserved_pages"
#define COUNTERS	"/sys/fs/erofs/"
#define RESERVED_FREE	COUNTERS "reserved_pages_free"
#define RESERVED_LOW	COUNTERS "reserved_pages_low"
#define RESERVED_HITS	COUNTERS "reserved_pages_hits"
#define RESERVED_MISSES	COUNTERS "reserved_pages_misses"
#define DROPPED		COUNTERS "dropped_readahead"

/* Whether the reserve can be changed while the kernel runs; access() would ask root's power, not the file. */
static inline bool reserve_changes(void)
{
	struct stat st;

	return !stat(RESERVED_PAGES, &st) && (st.st_mode & S_IWUSR);
}

/* The number that is all of a file. */
static inline long long counter(const char *path)
{
	char line[32];

	read_line(path, line, sizeof(line));
	return atoll(line);
}

/* Whether ftrace knows the function, under exactly this name. */
static inline bool traceable(const char *function)
{
	FILE *f = fopen(TRACING "available_filter_functions", "r");
	size_t n = strlen(function);
	bool found = false;
	char line[512];

	must(f, "there is no function tracer\n");
	while (!found && fgets(line, sizeof(line), f))
		found = !strncmp(line, function, n) && strchr(" \t\n", line[n]);
	fclose(f);
	return found;
}

/* Where all temporary pages of a decompression come from. */
static inline const char *page_allocator(void)
{
	const char *name = traceable("__erofs_allocpage") ? "__erofs_allocpage" : "erofs_allocpage";

	must(traceable(name), "this kernel has no %s\n", name);
	return name;
}

static inline void mount_image(const char *device, const char *options)
{
	mkdir(MNT, 0755);
	must(!mount(device, MNT, "erofs", MS_RDONLY, options), "cannot mount %s with '%s'\n", device, options);
}

static inline void mount_erofs(const char *options)
{
	mount_image("/dev/vda", options);
}

static inline int open_text(void)
{
	int fd = open(TEXT, O_RDONLY);

	must(fd >= 0, "cannot open %s\n", TEXT);
	return fd;
}

/* The original, around the page cache: memory is for the file under test. */
static inline int open_original(void)
{
	int fd = open(ORIGINAL, O_RDONLY | O_DIRECT);

	must(fd >= 0, "cannot open %s\n", ORIGINAL);
	return fd;
}

/* Read whole pages of @fd and compare them with @ofd, or do not if it is negative. Returns 0, an errno, or DIFFERS. */
static inline int check_pages(int fd, int ofd, off_t at, size_t n)
{
	static char buf[CHUNK] __attribute__((aligned(PAGE))), want[CHUNK] __attribute__((aligned(PAGE)));
	size_t got = 0;
	ssize_t more;

	while (got < n) {
		more = pread(fd, buf + got, n - got, at + got);
		if (more <= 0)
			return more < 0 ? errno : DIFFERS;
		got += more;
	}
	if (ofd < 0)
		return 0;
	must(pread(ofd, want, n, at) == (ssize_t)n, "cannot read the original\n");
	return memcmp(buf, want, n) ? DIFFERS : 0;
}

/* The same by a map of the file, which must live. */
static inline int check_map(const char *map, int ofd, off_t at, size_t n)
{
	static char want[CHUNK] __attribute__((aligned(PAGE)));

	must(pread(ofd, want, n, at) == (ssize_t)n, "cannot read the original\n");
	return memcmp(map + at, want, n) ? DIFFERS : 0;
}

/* Fail every allocation that may not reclaim, of pages or of slab objects, or none. */
static inline void fail_nowait(const char *attribute, bool on)
{
	char path[128];

	if (!strcmp(attribute, "fail_page_alloc"))
		write_file("/sys/kernel/debug/fail_page_alloc/min-order", "0");
	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/ignore-gfp-wait", attribute);
	must(!access(path, W_OK), "this kernel has no %s\n", attribute);
	write_file(path, "Y");
	fail_always(attribute, on);
}

/* Run @work in @n processes at once, each with a seed of its own. Returns how many did not end with 0, and says with what. */
static inline int in_processes(int n, int (*work)(int me))
{
	int ends[256] = { 0 }, bad = 0, status, i;
	unsigned int seed = random();

	fflush(stdout);
	for (i = 0; i < n; i++) {
		pid_t pid = fork();

		must(pid >= 0, "cannot fork\n");
		if (!pid) {
			srandom(seed + i);
			_exit(work(i));
		}
	}
	for (i = 0; i < n; i++) {
		must(wait(&status) > 0, "a process is gone\n");
		if (WIFSIGNALED(status))
			ksft_print_msg("a process was ended by signal %d\n", WTERMSIG(status));
		status = WIFSIGNALED(status) ? DIFFERS : WEXITSTATUS(status);
		ends[status]++;
		bad += !!status;
	}
	for (i = 1; i < 256; i++)
		if (ends[i])
			ksft_print_msg("%d of %d processes met %s\n", ends[i], n, i == DIFFERS ? "wrong data" : strerror(i));
	return bad;
}

/* Swap to compressed memory, as a phone does: @mib MiB of it. */
static inline void swap_to_zram(int mib)
{
	static union {
		char page[PAGE];
		struct {
			char boot[1024];
			uint32_t version, last_page;
			char rest[PAGE - 1024 - 8 - 10], magic[10];
		};
	} header;
	char size[32];
	int fd;

	snprintf(size, sizeof(size), "%dM", mib);
	write_file("/sys/block/zram0/disksize", size);
	header.version = 1;
	header.last_page = mib * ((1 << 20) / PAGE) - 1;
	memcpy(header.magic, "SWAPSPACE2", 10);
	fd = open("/dev/zram0", O_WRONLY);
	must(fd >= 0 && write(fd, &header, PAGE) == PAGE && !fsync(fd), "cannot write to /dev/zram0\n");
	close(fd);
	must(!swapon("/dev/zram0", 0), "cannot swap to /dev/zram0\n");
}

/*
 * A process that takes all but @spare_mib MiB of memory, half of it noise, and keeps using it here and there, until it is
 * killed. It takes the same on kernels that differ in what they need for themselves.
 */
static inline pid_t hog_memory(int spare_mib)
{
	size_t size = (number_in("/proc/meminfo", "MemTotal:") << 10) - ((size_t)spare_mib << 20), at;
	uint64_t noise = random() | 1;
	int ready[2], i;
	pid_t pid;
	char c;

	fflush(stdout);
	must(!pipe(ready), "cannot make a pipe\n");
	pid = fork();
	must(pid >= 0, "cannot fork\n");
	if (!pid) {
		char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			_exit(errno);
		for (at = 0; at < size; at += sizeof(noise)) {
			noise = noise * 6364136223846793005 + 1442695040888963407;
			if (at % PAGE < PAGE / 2)
				memcpy(p + at, &noise, sizeof(noise));
		}
		if (write(ready[1], "", 1) != 1)
			_exit(errno);
		for (;;) {
			for (i = 0; i < 8; i++)
				p[random() % size]++;
			sleep_ms(1);
		}
	}
	close(ready[1]);
	must(read(ready[0], &c, 1) == 1, "there is not enough memory for the hog\n");
	close(ready[0]);
	return pid;
}

static inline void end_hog(pid_t pid)
{
	int status;

	must(!waitpid(pid, &status, WNOHANG), "the hog was killed\n");
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

/* kmemleak turns itself off for good when it gets no memory, and that fails the run. */
static inline bool memory_may_be_short(void)
{
	return access("/sys/kernel/debug/kmemleak", F_OK);
}

/* Memory that is swapped out now, in kB. */
static inline long long swapped_out(void)
{
	return number_in("/proc/meminfo", "SwapTotal:") - number_in("/proc/meminfo", "SwapFree:");
}

#endif

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the test programs share: small files of /proc, /sys and tracefs, mounts, and the file under test.
 *
 * A test disk holds one file, FILE_ON_DISK; the same bytes stand bare on the disk given as the original.
 */
#ifndef STEADY_H
#define STEADY_H

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include <kselftest.h>

#define MNT		"/tmp/mnt"
#define FILE_ON_DISK	MNT "/data"
#define TRACING		"/sys/kernel/tracing/"
#define CHUNK		(128 << 10)

/* A step that the test cannot go on without. */
#define must(cond, ...)							\
	do {								\
		if (!(cond)) {						\
			int err = errno;				\
			ksft_print_msg("errno %d: %s\n", err, strerror(err)); \
			ksft_exit_fail_msg(__VA_ARGS__);		\
		}							\
	} while (0)

static inline void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC);
	ssize_t n;

	must(fd >= 0, "cannot open %s\n", path);
	for (; *text; text += n) {	/* tracefs takes a word at a time */
		n = write(fd, text, strlen(text));
		must(n > 0, "cannot write '%s' to %s\n", text, path);
	}
	close(fd);
}

/* The first line of a file, without its end. */
static inline void read_line(const char *path, char *line, int size)
{
	FILE *f = fopen(path, "r");

	must(f && fgets(line, size, f), "cannot read %s\n", path);
	line[strcspn(line, "\n")] = 0;
	fclose(f);
}

/* Profile the named functions, separated by spaces, until profile_end(). */
static inline void profile_begin(const char *functions)
{
	write_file(TRACING "set_ftrace_filter", functions);
	write_file(TRACING "function_profile_enabled", "1");
}

static inline void profile_end(void)
{
	write_file(TRACING "function_profile_enabled", "0");
}

/* Calls of @function on all CPUs while it was profiled, and the time in it. */
static inline long long profiled(const char *function, double *ns)
{
	char path[64], line[256], name[128];
	long long calls = 0, n;
	double us;
	int cpu;

	if (ns)
		*ns = 0;
	for (cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++) {
		FILE *f;

		snprintf(path, sizeof(path), TRACING "trace_stat/function%d", cpu);
		f = fopen(path, "r");
		must(f, "there is no function profile %s\n", path);
		while (fgets(line, sizeof(line), f)) {
			if (sscanf(line, " %127s %lld %lf us", name, &n, &us) != 3 || strcmp(name, function))
				continue;
			calls += n;
			if (ns)
				*ns += us * 1000;
		}
		fclose(f);
	}
	return calls;
}

/* Number of lines of @path that contain @what. */
static inline int count_lines(const char *path, const char *what)
{
	FILE *f = fopen(path, "r");
	char line[1024];
	int n = 0;

	must(f, "cannot open %s\n", path);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, what) != NULL;
	fclose(f);
	return n;
}

/* The first number after @key in @path, or -1. */
static inline long long number_in(const char *path, const char *key)
{
	FILE *f = fopen(path, "r");
	char line[1024], *at;
	long long v = -1;

	must(f, "cannot open %s\n", path);
	while (v < 0 && fgets(line, sizeof(line), f)) {
		at = strstr(line, key);
		if (at && sscanf(at + strlen(key), "%*[^0-9]%lld", &v) != 1)
			v = -1;
	}
	fclose(f);
	return v;
}

/* Free memory with what waits on per-CPU lists, which can be tens of megabytes, in kB. */
static inline long long free_kb(void)
{
	FILE *f = fopen("/proc/zoneinfo", "r");
	long long pages, sum = 0;
	char line[200];

	must(f, "cannot open /proc/zoneinfo\n");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " count: %lld", &pages) == 1)
			sum += pages;
	fclose(f);
	return number_in("/proc/meminfo", "MemFree:") + sum * (sysconf(_SC_PAGESIZE) >> 10);
}

/* What was read from the first disk since boot, in sectors. */
static inline long long sectors_read(void)
{
	FILE *f = fopen("/sys/block/vda/stat", "r");
	long long n;

	must(f && fscanf(f, "%*d %*d %lld", &n) == 1, "cannot read what /dev/vda did\n");
	fclose(f);
	return n;
}

static inline void drop_caches(void)
{
	sync();
	write_file("/proc/sys/vm/drop_caches", "3");
}

static inline int mount_f2fs(const char *dev, unsigned long flags, const char *options)
{
	mkdir(MNT, 0755);
	return mount(dev, MNT, "f2fs", flags, options);
}

static inline int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static inline void sleep_ms(int ms)
{
	usleep(ms * 1000);
}

/* Seed random(), and say with what. */
static inline unsigned int seed_random(void)
{
	unsigned int seed;

	must(getrandom(&seed, sizeof(seed), GRND_NONBLOCK | GRND_INSECURE) == sizeof(seed), "no random numbers\n");
	ksft_print_msg("seed %u\n", seed);
	srandom(seed);
	return seed;
}

/* Make all that the fault attribute of @name may fail do so, or nothing. Returns false if the kernel has no such attribute. */
static inline bool fail_always(const char *name, bool on)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/times", name);
	if (access(path, W_OK))
		return false;
	write_file(path, on ? "-1" : "0");
	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/verbose", name);
	write_file(path, "0");
	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/probability", name);
	write_file(path, on ? "100" : "0");
	return true;
}

/* Pages of @fd in the page cache, of those from @from on; @size may reach beyond the end of the file. */
static inline int pages_cached(int fd, off_t from, size_t size)
{
	size_t page = sysconf(_SC_PAGESIZE), pages = (size + page - 1) / page, i;
	unsigned char *in = malloc(pages);
	void *p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, from);
	int n = 0;

	must(in && p != MAP_FAILED && !mincore(p, size, in), "cannot ask what is cached\n");
	for (i = 0; i < pages; i++)
		n += in[i] & 1;
	munmap(p, size);
	free(in);
	return n;
}

/* Leave every other page of nearly all memory free, so that no two free pages are neighbours. */
static inline void fragment(void)
{
	size_t size = (number_in("/proc/meminfo", "MemAvailable:") - 128 * 1024) << 10;
	size_t page = sysconf(_SC_PAGESIZE), i;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(p != MAP_FAILED, "cannot take %zu bytes\n", size);
	must(!madvise(p, size, MADV_DONTFORK), "cannot keep memory from children\n");
	write_file("/proc/sys/vm/compaction_proactiveness", "0");	/* it would undo what follows, and be counted */
	for (i = 0; i < size; i += page)
		p[i] = 1;
	for (i = 0; i < size; i += 2 * page)
		must(!madvise(p + i, page, MADV_DONTNEED), "cannot give back a page\n");
}

/* Read @fd in order; compare with @original unless it is negative. Returns bytes, or -1 where they differ. */
static inline long long same_bytes(int fd, int original)
{
	static char buf[CHUNK], want[CHUNK];
	long long at = 0;
	ssize_t n;

	while ((n = pread(fd, buf, sizeof(buf), at)) > 0) {
		if (original >= 0 && (pread(original, want, n, at) != n || memcmp(buf, want, n))) {
			ksft_print_msg("data differs between %lld and %lld\n", at, at + n);
			return -1;
		}
		at += n;
	}
	return n < 0 ? -1 : at;
}

/* The same for FILE_ON_DISK and the bare disk @original, or NULL. */
static inline long long read_all(const char *original)
{
	int fd = open(FILE_ON_DISK, O_RDONLY), ofd = -1;
	long long n;

	must(fd >= 0, "cannot open %s\n", FILE_ON_DISK);
	if (original) {
		ofd = open(original, O_RDONLY);
		must(ofd >= 0, "cannot open %s\n", original);
	}
	n = same_bytes(fd, ofd);
	close(fd);
	if (original)
		close(ofd);
	return n;
}

#endif

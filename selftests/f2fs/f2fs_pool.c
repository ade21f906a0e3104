// SPDX-License-Identifier: GPL-2.0
/*
 * f2fs_pool read READ_AHEAD_KB: with a pool of compressed pages as small as the kernel was booted with (f2fs.num_compress_pages) and no
 * page to be had outside it, read the compressed file on /dev/vda from cold, one way after the other, and compare with
 * /dev/vdb. f2fs_pool write ALGORITHM LOG_CLUSTER_SIZE BYTES: write a compressed file like this, and read it back.
 *
 * Whoever takes pages one by one, or takes more while it keeps those of a bio that it has not submitted, waits for ever.
 */
#include "../steady.h"
#include <sys/wait.h>

#define READERS		4
#define STUCK_MS	20000	/* an allocation from a pool looks again every 5 s */

static volatile long long *progress;	/* bytes of each reader, shared with it */
static pid_t pids[READERS];
static bool stuck;
static off_t size;

/* Read the whole file from @from on and around; exits with the number of an error, or 255 where data differs. */
static void __noreturn reader(int me, bool map, off_t from)
{
	static char buf[CHUNK], want[CHUNK];
	int fd = open(FILE_ON_DISK, O_RDONLY), ofd = open("/dev/vdb", O_RDONLY);
	off_t at, done;
	ssize_t n;
	char *p;

	if (fd < 0 || ofd < 0)
		_exit(errno);
	p = map ? mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0) : buf;
	if (p == MAP_FAILED)
		_exit(errno);
	for (done = 0; done < size; done += n) {
		at = (from + done) % size;
		n = size - at < CHUNK ? size - at : CHUNK;
		if (!map && pread(fd, buf, n, at) != n)
			_exit(errno ?: 255);
		if (pread(ofd, want, n, at) != n || memcmp(map ? p + at : buf, want, n))
			_exit(255);
		progress[me] += n;
	}
	_exit(0);
}

static void __noreturn writer(off_t bytes)
{
	static char buf[CHUNK];
	int fd = open(FILE_ON_DISK, O_CREAT | O_EXCL | O_RDWR, 0644), ofd = open("/dev/vdb", O_RDONLY);

	for (; *progress < bytes; *progress += CHUNK)
		if (pread(ofd, buf, CHUNK, *progress) != CHUNK || write(fd, buf, CHUNK) != CHUNK)
			_exit(errno ?: 255);
	_exit(fsync(fd) ? errno : 0);
}

static long long all_progress(void)
{
	FILE *f = fopen("/sys/block/vda/stat", "r");
	long long in, out, sum = 0;
	int i;

	must(f && fscanf(f, "%*d %*d %lld %*d %*d %*d %lld", &in, &out) == 2, "cannot read what /dev/vda did\n");
	fclose(f);
	for (i = 0; i < READERS; i++)
		sum += progress[i];
	return sum + in + out;
}

/* Where a process waits, without the system call's end. */
static void print_stack(pid_t pid)
{
	int left = 7;
	char line[200];
	FILE *f;

	snprintf(line, sizeof(line), "/proc/%d/stack", pid);
	f = fopen(line, "r");
	while (f && left-- && fgets(line, sizeof(line), f))
		ksft_print_msg("%d: %s", pid, line);
	if (f)
		fclose(f);
}

/* Wait for @n children; true if all of them exit with 0. Give up when nothing has moved for long. */
static bool join(int n, const char *what)
{
	int all = n, i;
	int64_t start = now_ms(), moved = start;
	long long last = -1;
	bool good = true;
	int status;

	while (n && !stuck) {
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid > 0) {
			n--;
			good &= !status;
			if (status)
				ksft_print_msg("%s: a process ended with status %d, signal %d\n", what, WEXITSTATUS(status),
					       WTERMSIG(status));
			continue;
		}
		sleep_ms(50);
		if (all_progress() != last) {
			last = all_progress();
			moved = now_ms();
		}
		stuck = now_ms() - moved > STUCK_MS;
	}
	for (i = 0; stuck && i < all; i++)
		print_stack(pids[i]);
	ksft_print_msg("%s: %s after %lld bytes and %" PRId64 " ms\n", what, stuck ? "stuck" : "done",
		       progress[0] + progress[1] + progress[2] + progress[3], (stuck ? moved : now_ms()) - start);
	return good && !stuck;
}

static void read_with(int readers, bool map, const char *what)
{
	int i;

	if (stuck) {
		ksft_test_result_skip("%s: others are stuck\n", what);
		return;
	}
	drop_caches();
	memset((void *)progress, 0, READERS * sizeof(*progress));
	fflush(stdout);
	for (i = 0; i < readers; i++) {
		pids[i] = fork();
		must(pids[i] >= 0, "cannot fork\n");
		if (!pids[i])
			reader(i, map, size / READERS * i / CHUNK * CHUNK);
	}
	ksft_test_result(join(readers, what), "%s\n", what);
}

int main(int argc, char **argv)
{
	bool writing = argc == 5 && !strcmp(argv[1], "write");
	char options[200];
	char pool[16] = "";
	struct stat st;
	int fd;

	ksft_print_header();
	ksft_set_plan(writing ? 2 : 4);
	must(writing || (argc == 3 && !strcmp(argv[1], "read")),
	     "usage: f2fs_pool read read_ahead_kb, or f2fs_pool write algorithm log_cluster_size bytes\n");
	progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(progress != MAP_FAILED, "no memory\n");
	fd = open("/sys/module/f2fs/parameters/num_compress_pages", O_RDONLY);
	must(fd >= 0 && read(fd, pool, sizeof(pool) - 1) > 0, "the size of the pool is not known\n");
	ksft_print_msg("f2fs.num_compress_pages is %d\n", atoi(pool));
	write_file("/proc/sys/kernel/printk", "6");	/* a line for each failure is too many */
	write_file("/sys/block/vda/queue/read_ahead_kb", writing ? "128" : argv[2]);
	snprintf(options, sizeof(options), "compress_algorithm=%s,compress_log_size=%s,compress_extension=*",
		 writing ? argv[2] : "lz4", writing ? argv[3] : "2");
	must(!mount_f2fs("/dev/vda", writing ? 0 : MS_RDONLY, writing ? options : ""), "cannot mount /dev/vda\n");
	if (!fail_always("fail_mempool_alloc", true))
		ksft_exit_skip("this kernel cannot make allocations from a pool fail\n");
	fail_always("fail_mempool_alloc_bulk", true);

	if (writing) {
		size = atoll(argv[4]);
		fflush(stdout);
		pids[0] = fork();
		must(pids[0] >= 0, "cannot fork\n");
		if (!pids[0])
			writer(size);
		ksft_test_result(join(1, "write"), "write\n");
		read_with(1, false, "read back");
	} else {
		must(!stat(FILE_ON_DISK, &st), "there is no %s\n", FILE_ON_DISK);
		size = st.st_size;
		read_with(1, false, "in order");
		read_with(READERS, false, "four readers");
		read_with(1, true, "mapped");
		read_with(READERS, true, "four maps");
	}
	fail_always("fail_mempool_alloc", false);
	fail_always("fail_mempool_alloc_bulk", false);
	must(stuck || !umount(MNT), "cannot unmount\n");
	ksft_finished();
}

// SPDX-License-Identifier: GPL-2.0
/*
 * erofs_data SPARE_MIB IMAGE...: several processes read the file on each image at once, in order, at random and mapped, while
 * memory is short: another process uses all but SPARE_MIB MiB and is swapped to zram; then with allocations failing in
 * addition that may not reclaim, as readahead's do: pages, slab objects. All has to be as on /dev/vdb, and no read may fail:
 * who waits for data may reclaim, also where it joins what a readahead has begun.
 */
#include "erofs.h"

#define SWAP_MIB	256
#define READERS		10
#define READS		200	/* of each that reads at random */
#define STRETCH		(12 << 20)	/* what one reads in order, and all others in: so they meet */

static off_t size, start;

/* A place in the stretch, for @n bytes. */
static off_t somewhere(size_t n)
{
	return start + random() % ((STRETCH - n) / PAGE) * PAGE;
}

static int in_order(int fd, int ofd)
{
	int err = 0;
	off_t at;

	for (at = start; at < start + STRETCH && !err; at += CHUNK)
		err = check_pages(fd, ofd, at, CHUNK);
	return err;
}

static int at_random(int fd, int ofd, bool mapped, int advice, size_t most)
{
	int err = 0, i;
	char *p = NULL;

	if (mapped) {
		p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
		must(p != MAP_FAILED && !madvise(p, size, advice), "cannot map the file\n");
	} else {
		posix_fadvise(fd, 0, 0, advice);
	}
	for (i = 0; i < READS && !err; i++) {
		size_t n = PAGE * (1 + random() % (most / PAGE));
		off_t at = somewhere(n);

		err = mapped ? check_map(p, ofd, at, n) : check_pages(fd, ofd, at, n);
		if (i % 8 == 0 && !mapped)	/* so that there is something to read, and gaps */
			posix_fadvise(fd, somewhere(CHUNK), CHUNK, POSIX_FADV_DONTNEED);
	}
	return err;
}

static int reader(int me)
{
	int fd = open_text(), ofd = open_original();

	switch (me % 5) {
	case 0:
		return in_order(fd, ofd);
	case 1:
		return at_random(fd, ofd, false, POSIX_FADV_NORMAL, CHUNK);
	case 2:
		return at_random(fd, ofd, true, MADV_NORMAL, PAGE);
	case 3:
		return at_random(fd, ofd, true, MADV_RANDOM, PAGE);	/* no readahead at all */
	default:
		return at_random(fd, ofd, false, POSIX_FADV_RANDOM, 4 * PAGE);
	}
}

static bool all_read(void)
{
	start = random() % ((size - STRETCH) / PAGE) * PAGE;
	drop_caches();
	return !in_processes(READERS, reader);
}

int main(int argc, char **argv)
{
	bool right, hogging = memory_may_be_short(), is_short = true;
	pid_t hog = 0;
	int fd, i;

	ksft_print_header();
	must(argc > 2, "usage: erofs_data spare_mib image...\n");
	ksft_set_plan(3 * (argc - 2) + 1);
	seed_random();
	if (hogging) {
		swap_to_zram(SWAP_MIB);
		hog = hog_memory(atoi(argv[1]));
	}

	for (i = 2; i < argc; i++) {
		mount_image(argv[i], "");
		fd = open_text();
		size = lseek(fd, 0, SEEK_END);
		close(fd);
		ksft_test_result(all_read(), "%s: memory short\n", argv[i]);
		fail_nowait("fail_page_alloc", true);
		right = all_read();
		fail_nowait("fail_page_alloc", false);
		ksft_test_result(right, "%s: no pages without reclaim\n", argv[i]);
		fail_nowait("failslab", true);
		right = all_read();
		fail_nowait("failslab", false);
		ksft_test_result(right, "%s: no slab objects without reclaim\n", argv[i]);
		is_short &= swapped_out() > 0;
		must(!umount(MNT), "cannot unmount\n");
	}
	if (hogging) {
		end_hog(hog);
		ksft_test_result(is_short, "memory is short\n");
	} else {
		ksft_test_result_skip("memory is short\n");	/* kmemleak would turn itself off */
	}
	ksft_finished();
}

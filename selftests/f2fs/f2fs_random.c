// SPDX-License-Identifier: GPL-2.0
/*
 * f2fs_random ALGORITHM LOG_CLUSTER_SIZE [low]: read the compressed file on /dev/vda page by page, in random order and from
 * cold, compare it with /dev/vdb, and count how often a cluster is decompressed for that. With enough memory once is
 * enough, if the page that is read brings the others of its cluster with it. Under memory=low (low) it must not: there
 * the counts are only reported. Then the same with a file whose end lies inside a cluster.
 */
#include "../steady.h"

#define PAGE	4096
#define TAIL	MNT "/tail"

static int cluster_pages;

/* Number of compressed clusters of @fd: how many different ones a read in order decompresses, in @calls decompressions. */
static long long compressed_clusters(int fd, int ofd, long long *calls)
{
	const char *event = TRACING "events/f2fs/f2fs_decompress_pages_start/";
	char trigger[128], hist[128], enable[128];
	long long n;

	snprintf(trigger, sizeof(trigger), "%strigger", event);
	snprintf(enable, sizeof(enable), "%senable", event);
	snprintf(hist, sizeof(hist), "%shist", event);
	drop_caches();
	write_file(trigger, "hist:keys=idx:size=65536");
	write_file(enable, "1");
	must(same_bytes(fd, ofd) > 0, "cannot read the file in order\n");
	write_file(enable, "0");
	n = number_in(hist, "Entries:");
	*calls = number_in(hist, " Hits:");
	must(!number_in(hist, "Dropped:"), "there were too many clusters to count\n");
	write_file(trigger, "!hist:keys=idx:size=65536");
	return n;
}

/* Read every page once; gives the number of decompressions, or -1 where data differs. */
static long long every_page(int fd, int ofd, off_t size, int advice)
{
	int pages = (size + PAGE - 1) / PAGE, i;
	int *order = malloc(pages * sizeof(*order));
	char buf[PAGE], want[PAGE];
	bool same = true;

	must(order, "no memory\n");
	for (i = 0; i < pages; i++) {
		int j = random() % (i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	drop_caches();
	posix_fadvise(fd, 0, 0, advice);
	profile_begin("f2fs_decompress_cluster");
	for (i = 0; i < pages && same; i++) {
		off_t at = (off_t)order[i] * PAGE;
		ssize_t n = size - at < PAGE ? size - at : PAGE;

		same = pread(fd, buf, PAGE, at) == n && pread(ofd, want, n, at) == n && !memcmp(buf, want, n);
		if (!same)
			ksft_print_msg("data differs in the page at %jd\n", (intmax_t)at);
	}
	profile_end();
	free(order);
	must(!same || pages_cached(fd, 0, size) == pages, "pages were evicted, give the guest more memory\n");
	return same ? profiled("f2fs_decompress_cluster", NULL) : -1;
}

/* Pages that are cached after one cold read in the middle of a compressed cluster. */
static int one_page(off_t size)
{
	long long calls = 0;
	int fd, i, n = 0;
	char c;

	for (i = 0; i < 100 && calls != 1; i++) {
		off_t cluster = random() % (size / PAGE / cluster_pages);

		drop_caches();
		fd = open(FILE_ON_DISK, O_RDONLY);
		profile_begin("f2fs_decompress_cluster");
		must(pread(fd, &c, 1, (cluster * cluster_pages + 1) * PAGE) == 1, "cannot read\n");
		profile_end();
		calls = profiled("f2fs_decompress_cluster", NULL);
		n = pages_cached(fd, 0, size);
		close(fd);
	}
	must(calls == 1, "no cluster seems to be compressed\n");
	return n;
}

/* Write a file of eight clusters, a page and a bit. */
static off_t write_tail(int ofd)
{
	off_t size = (8 * cluster_pages + 1) * PAGE + 1000;
	char *buf = malloc(size);
	int fd = open(TAIL, O_CREAT | O_EXCL | O_RDWR, 0644);

	must(buf && fd >= 0, "cannot create a file\n");
	must(pread(ofd, buf, size, 0) == size && write(fd, buf, size) == size && !fsync(fd), "cannot write a file\n");
	close(fd);
	free(buf);
	return size;
}

int main(int argc, char **argv)
{
	long long clusters, in_order, calls[2];
	bool low = argc == 4 && !strcmp(argv[3], "low");
	off_t size, tail;
	char options[200], c;
	int fd, ofd, n, cached;

	ksft_print_header();
	ksft_set_plan(low ? 4 : 6);
	must(argc == 3 || low, "usage: f2fs_random algorithm log_cluster_size [low]\n");
	cluster_pages = 1 << atoi(argv[2]);
	snprintf(options, sizeof(options), "compress_algorithm=%s,compress_log_size=%s,compress_extension=*%s", argv[1], argv[2],
		 low ? ",memory=low" : "");
	write_file("/sys/block/vda/queue/read_ahead_kb", "128");	/* a virtio disk has megabytes */
	must(!mount_f2fs("/dev/vda", 0, options), "cannot mount /dev/vda with %s\n", options);
	fd = open(FILE_ON_DISK, O_RDONLY);
	ofd = open("/dev/vdb", O_RDONLY);
	must(fd >= 0 && ofd >= 0, "cannot open the files\n");
	size = lseek(fd, 0, SEEK_END);
	seed_random();

	clusters = compressed_clusters(fd, ofd, &in_order);
	must(clusters > 0, "the file is not compressed\n");
	calls[0] = every_page(fd, ofd, size, POSIX_FADV_NORMAL);
	calls[1] = every_page(fd, ofd, size, POSIX_FADV_RANDOM);
	close(fd);
	ksft_print_msg("%lld compressed clusters, decompressions: %lld in order, %lld at random, %lld with POSIX_FADV_RANDOM\n",
		       clusters, in_order, calls[0], calls[1]);
	cached = one_page(size);
	ksft_print_msg("one cold read of a page brings %d pages, a cluster has %d\n", cached, cluster_pages);
	ksft_test_result(calls[0] >= clusters && calls[1] >= clusters, "data right\n");
	if (low) {
		ksft_test_result(cached == 1, "a page comes alone\n");
	} else {
		ksft_test_result(calls[0] <= clusters * 11 / 10, "a cluster is decompressed once\n");
		ksft_test_result(calls[1] <= clusters * 11 / 10, "a cluster is decompressed once with POSIX_FADV_RANDOM\n");
		ksft_test_result(cached == cluster_pages, "a page brings its cluster\n");
	}

	tail = write_tail(ofd);
	drop_caches();
	fd = open(TAIL, O_RDONLY);
	must(fd >= 0, "cannot open %s\n", TAIL);
	must(pread(fd, &c, 1, tail - 1) == 1, "cannot read the last byte\n");
	n = pages_cached(fd, 0, tail);
	cached = pages_cached(fd, 0, tail + 4 * cluster_pages * PAGE) - n;
	ksft_print_msg("the last byte brings %d pages, and %d beyond the end\n", n, cached);
	ksft_test_result(!cached && !pread(fd, &c, 1, tail), "nothing beyond the end\n");
	calls[0] = every_page(fd, ofd, tail, POSIX_FADV_NORMAL);
	ksft_print_msg("%lld decompressions for 8 clusters, a page and a bit\n", calls[0]);
	ksft_test_result(calls[0] >= 0, "data right with an end inside a cluster\n");
	close(fd);
	close(ofd);
	must(!umount(MNT), "cannot unmount\n");
	ksft_finished();
}

// SPDX-License-Identifier: GPL-2.0
/*
 * erofs_bench NAME SPARE_MIB READS: what temporary pages cost while memory is short: another process uses all but SPARE_MIB MiB,
 * and is swapped to zram; the file on /dev/vda is read at random READS times, with readahead. Times are instructions of the
 * only CPU (QEMU -icount). Prints lines "# metric NAME.<what> <number>", each RUNS times, as totals of all reads:
 *   calls, ns		of the function that all temporary pages of decompression come from, what it waits for included
 *   reclaims, reclaim_ns	direct reclaim, whoever enters it
 *   sectors		read from /dev/vda
 */
#include "erofs.h"

#define SWAP_MIB	256
#define RUNS		5	/* such a load differs by tens of percent from run to run */
#define RECLAIM		"try_to_free_pages"

int main(int argc, char **argv)
{
	const char *allocate = page_allocator();
	long long calls, reclaims, sectors, all_calls = 0;
	bool right = true, is_short = true;
	int fd, reads, run, i;
	char functions[128];
	double ns, reclaim_ns;
	off_t size;
	pid_t hog;

	ksft_print_header();
	ksft_set_plan(3);
	must(argc == 4, "usage: erofs_bench name spare_mib reads\n");
	reads = atoi(argv[3]);
	snprintf(functions, sizeof(functions), "%s " RECLAIM, allocate);
	write_file("/sys/block/vda/queue/read_ahead_kb", "128");	/* a virtio disk has megabytes */
	mount_erofs("");
	fd = open_text();
	size = lseek(fd, 0, SEEK_END);
	seed_random();
	swap_to_zram(SWAP_MIB);

	for (run = -1; run < RUNS; run++) {	/* the first is not counted, it makes what lives on */
		hog = hog_memory(atoi(argv[2]));	/* a new one: what was swapped out once mostly stays there */
		drop_caches();
		sectors = sectors_read();
		profile_begin(functions);
		for (i = 0; i < reads && right; i++)
			right = !check_pages(fd, -1, random() % (size / PAGE) * PAGE, PAGE);
		profile_end();
		is_short &= swapped_out() > 0;
		end_hog(hog);
		calls = profiled(allocate, &ns);
		reclaims = profiled(RECLAIM, &reclaim_ns);
		if (run < 0)
			continue;
		ksft_print_msg("metric %s.calls %lld\n", argv[1], calls);
		ksft_print_msg("metric %s.ns %.0f\n", argv[1], ns);
		ksft_print_msg("metric %s.reclaims %lld\n", argv[1], reclaims);
		ksft_print_msg("metric %s.reclaim_ns %.0f\n", argv[1], reclaim_ns);
		ksft_print_msg("metric %s.sectors %lld\n", argv[1], sectors_read() - sectors);
		all_calls += calls;
	}
	ksft_test_result(right, "all read\n");
	ksft_test_result(is_short, "memory is short\n");
	ksft_test_result(all_calls > 0, "temporary pages seen\n");
	close(fd);
	must(!umount(MNT), "cannot unmount\n");
	ksft_finished();
}

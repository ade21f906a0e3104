// SPDX-License-Identifier: GPL-2.0
/*
 * f2fs_bench NAME DECODER[+DECODER...] [fragmented]: what a cold sequential read of the compressed file on /dev/vda costs, in
 * instructions of the only CPU (QEMU -icount), and how often the pages of a cluster are mapped.
 *
 * The number of pages is taken from a register, so that it is for arm64 only. Prints lines "# metric NAME.<what> <number>", as totals of one read:
 *   instructions	RUNS times, with nothing traced
 *   clusters		calls of any DECODER, the functions that decode one cluster
 *   decoder		instructions in them (the clock counts instructions, in steps of a timer tick)
 *   workspaces		allocations of virtually contiguous memory
 *   maps_raw, maps_compressed	vm_map_ram() and vmap() of whole clusters, and of fewer pages
 *   fallbacks		allocations that took a block from memory kept for another mobility
 */
#include "../steady.h"
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#define CLUSTER_PAGES	4	/* of the test disks */
#define RUNS		5	/* what a busy host adds differs from run to run */

static int counter(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
	};

	return syscall(SYS_perf_event_open, &attr, -1, 0, -1, 0);
}

/* All of what the CPU does while the file is read, user space, interrupts and work items included. */
static uint64_t instructions_of_read(int fd, long long bytes)
{
	uint64_t n;

	drop_caches();
	ioctl(fd, PERF_EVENT_IOC_RESET, 0);
	must(read_all(NULL) == bytes, "cannot read %s\n", FILE_ON_DISK);
	must(read(fd, &n, sizeof(n)) == sizeof(n), "cannot read the counter\n");
	return n;
}

/*
 * One read with only the decoders profiled; gives their calls and the time in them. All of it is decompressed in interrupts,
 * as far as this can be asked for: the time in a worker would be that of the interrupts it takes as well.
 */
static long long profile_read(const char *decoders, double *ns)
{
	const char *most = "/sys/fs/f2fs/vda/max_atc_decompress_size";
	char names[256], *name, *next = names;
	bool bounded = !access(most, W_OK);
	char before[32] = "";
	long long calls = 0;
	double t;

	snprintf(names, sizeof(names), "%s", decoders);
	for (name = names; *name; name++)
		if (*name == '+')
			*name = ' ';
	if (bounded) {
		read_line(most, before, sizeof(before));
		write_file(most, "4294967295");
	}
	drop_caches();
	profile_begin(names);
	must(read_all(NULL) > 0, "cannot read %s\n", FILE_ON_DISK);
	profile_end();
	if (bounded)
		write_file(most, before);
	*ns = 0;
	while ((name = strsep(&next, " "))) {
		calls += profiled(name, &t);
		*ns += t;
	}
	return calls;
}

struct counts {
	long long maps_raw, maps_compressed, workspaces, fallbacks;
};

/* Add up the histogram of an event: entries with a key below @split in @low, all others in @high. */
static void add_hist(const char *event, long long split, long long *low, long long *high)
{
	long long key, hits;
	char line[256];
	FILE *f;

	snprintf(line, sizeof(line), TRACING "events/%s/hist", event);
	f = fopen(line, "r");
	must(f, "cannot open %s\n", line);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "{ %*[^:]: %lld } hitcount: %lld", &key, &hits) == 2)
			*(key < split ? low : high) += hits;
	fclose(f);
}

/* One read with events counted: maps by their number of pages, and fallbacks of the page allocator. */
static struct counts count_events(void)
{
	const char *vmalloc = count_lines(TRACING "available_filter_functions", "__vmalloc_node_range_noprof") ?
		"__vmalloc_node_range_noprof" : "__vmalloc_node_range";
	struct counts n = { 0 };
	char probes[256];

	snprintf(probes, sizeof(probes), "p:steady/ram vm_map_ram count=%%x1:u32\np:steady/vmap vmap count=%%x1:u32\n"
		 "p:steady/vmalloc %s size=%%x0:u64\n", vmalloc);
	write_file(TRACING "kprobe_events", probes);
	write_file(TRACING "events/steady/ram/trigger", "hist:keys=count");
	write_file(TRACING "events/steady/vmap/trigger", "hist:keys=count");
	write_file(TRACING "events/steady/vmalloc/trigger", "hist:keys=size");
	write_file(TRACING "events/kmem/mm_page_alloc_extfrag/trigger", "hist:keys=alloc_order");
	drop_caches();
	write_file(TRACING "events/steady/enable", "1");
	write_file(TRACING "events/kmem/mm_page_alloc_extfrag/enable", "1");
	must(read_all(NULL) > 0, "cannot read %s\n", FILE_ON_DISK);
	write_file(TRACING "events/kmem/mm_page_alloc_extfrag/enable", "0");
	write_file(TRACING "events/steady/enable", "0");
	add_hist("steady/ram", CLUSTER_PAGES, &n.maps_compressed, &n.maps_raw);
	add_hist("steady/vmap", CLUSTER_PAGES, &n.maps_compressed, &n.maps_raw);
	add_hist("steady/vmalloc", 0, &n.workspaces, &n.workspaces);
	add_hist("kmem/mm_page_alloc_extfrag", 0, &n.fallbacks, &n.fallbacks);
	return n;
}

int main(int argc, char **argv)
{
	long long bytes, calls = 0;
	struct counts counts;
	uint64_t n[RUNS];
	double ns = 0;
	int fd, i;

	ksft_print_header();
	ksft_set_plan(2);
	must(argc == 3 || (argc == 4 && !strcmp(argv[3], "fragmented")), "usage: f2fs_bench name decoder [fragmented]\n");
	must(!mount_f2fs("/dev/vda", MS_RDONLY, ""), "cannot mount /dev/vda\n");
	/* the kernel's default; a virtio disk asks for 8 MiB */
	write_file("/sys/block/vda/queue/read_ahead_kb", "128");
	fd = counter();
	must(fd >= 0, "this machine does not count instructions\n");
	if (argc == 4)
		fragment();
	bytes = read_all(NULL);	/* what stays cached over drop_caches is cached now */
	must(bytes > 0, "cannot read %s\n", FILE_ON_DISK);

	for (i = 0; i < RUNS; i++)
		n[i] = instructions_of_read(fd, bytes);
	calls = profile_read(argv[2], &ns);
	counts = count_events();

	for (i = 0; i < RUNS; i++)
		ksft_print_msg("metric %s.instructions %" PRIu64 "\n", argv[1], n[i]);
	ksft_print_msg("metric %s.clusters %lld\n", argv[1], calls);
	ksft_print_msg("metric %s.decoder %.0f\n", argv[1], ns);
	ksft_print_msg("metric %s.maps_raw %lld\n", argv[1], counts.maps_raw);
	ksft_print_msg("metric %s.maps_compressed %lld\n", argv[1], counts.maps_compressed);
	ksft_print_msg("metric %s.workspaces %lld\n", argv[1], counts.workspaces);
	ksft_print_msg("metric %s.fallbacks %lld\n", argv[1], counts.fallbacks);
	ksft_test_result(n[0] > (uint64_t)bytes, "instructions counted\n");
	close(fd);
	must(!umount(MNT), "cannot unmount\n");
	ksft_test_result(calls > 0 && calls <= bytes / (CLUSTER_PAGES * 4096) && ns > 0, "decoder seen\n");
	ksft_finished();
}

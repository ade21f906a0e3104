// SPDX-License-Identifier: GPL-2.0
/*
 * erofs_reclaim SPARE_MIB READS LIMIT: while another process uses all but SPARE_MIB MiB of memory, and is swapped to zram, read
 * the file on /dev/vda at random READS times, with readahead, compare it with /dev/vdb, and look who enters direct reclaim. At
 * most LIMIT times it may be something that readahead of erofs does while the reader waits. Prints all chains of calls that
 * led there from erofs.
 */
#include "erofs.h"

#define SWAP_MIB	256
#define BUFFER_KB	"1024"	/* of each CPU: a chain has 300 bytes */
#define CHAIN		1024
#define CHAINS		128
#define RECLAIM		"try_to_free_pages"

static struct chain {
	char calls[CHAIN];
	int n;
} chains[CHAINS];

static off_t size;

static void count_chain(const char *calls)
{
	int i = 0;

	while (i < CHAINS && chains[i].n && strcmp(chains[i].calls, calls))
		i++;
	must(i < CHAINS, "there are too many different chains of calls\n");
	strcpy(chains[i].calls, calls);
	chains[i].n++;
}

/* Functions that each allocation has in its chain, and those that no chain is of interest beyond. */
static bool is_common(const char *name)
{
	return !strncmp(name, "__alloc_pages", 13) || !strncmp(name, "__alloc_frozen", 14);
}

static bool is_end(const char *name)
{
	return !strcmp(name, "z_erofs_readahead") || !strcmp(name, "z_erofs_read_folio") || !strncmp(name, "filemap_", 8);
}

/* All stacks of the trace, as far as they are of interest. */
static void count_chains(void)
{
	char line[256], name[128], calls[CHAIN] = "";
	bool inside = false, whole = false;
	FILE *f = fopen(TRACING "trace", "r");

	must(f, "there is no trace\n");
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, " => %127[^+ \n]", name) != 1) {
			if (inside)
				count_chain(calls);
			inside = false;
			continue;
		}
		if (!strcmp(name, RECLAIM)) {	/* what comes before is the tracer's */
			inside = true;
			whole = false;
			*calls = 0;
			continue;
		}
		if (!inside || whole || is_common(name))
			continue;
		must(strlen(calls) + strlen(name) + 4 < CHAIN, "a chain of calls is too long\n");
		snprintf(calls + strlen(calls), CHAIN - strlen(calls), "%s%s", *calls ? " < " : "", name);
		whole = is_end(name);
	}
	if (inside)
		count_chain(calls);
	fclose(f);
}

/* While there is memory for that. */
static void prepare_trace(void)
{
	write_file(TRACING "tracing_on", "0");
	write_file(TRACING "buffer_size_kb", BUFFER_KB);
	write_file(TRACING "set_ftrace_filter", RECLAIM);
	write_file(TRACING "current_tracer", "function");
	write_file(TRACING "trace_options", "func_stack_trace");
}

static void end_trace(void)
{
	char path[128];
	int cpu;

	write_file(TRACING "tracing_on", "0");
	for (cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++) {
		snprintf(path, sizeof(path), TRACING "per_cpu/cpu%d/stats", cpu);
		must(!number_in(path, "overrun:") && !number_in(path, "dropped events:"), "the trace of CPU %d is not complete\n", cpu);
	}
	count_chains();
	write_file(TRACING "trace_options", "nofunc_stack_trace");
	write_file(TRACING "current_tracer", "nop");
}

int main(int argc, char **argv)
{
	int reads, limit, i, err = 0, from_readahead = 0, from_erofs = 0, all = 0;
	long long swapped;
	int fd, ofd;
	pid_t hog;

	ksft_print_header();
	ksft_set_plan(3);
	must(argc == 4, "usage: erofs_reclaim spare_mib reads limit\n");
	if (!memory_may_be_short())
		ksft_exit_skip("kmemleak would turn itself off\n");
	reads = atoi(argv[2]);
	limit = atoi(argv[3]);
	write_file("/sys/block/vda/queue/read_ahead_kb", "128");	/* a virtio disk has megabytes */
	mount_erofs("");
	fd = open_text();
	ofd = open_original();
	size = lseek(fd, 0, SEEK_END);
	seed_random();
	prepare_trace();
	swap_to_zram(SWAP_MIB);
	hog = hog_memory(atoi(argv[1]));
	drop_caches();

	write_file(TRACING "tracing_on", "1");
	for (i = 0; i < reads && !err; i++)
		err = check_pages(fd, ofd, random() % (size / PAGE) * PAGE, PAGE);
	end_trace();
	swapped = swapped_out();
	end_hog(hog);

	for (i = 0; i < CHAINS && chains[i].n; i++) {
		struct chain *c = &chains[i];

		all += c->n;
		if (!strstr(c->calls, "erofs"))
			continue;
		from_erofs += c->n;
		if (strstr(c->calls, "z_erofs_readahead"))
			from_readahead += c->n;
		ksft_print_msg("%d by %s\n", c->n, c->calls);
	}
	ksft_print_msg("%lld kB of memory, %lld kB swapped out\n", number_in("/proc/meminfo", "MemTotal:"), swapped);
	ksft_print_msg("%d direct reclaims, %d of them under erofs, %d under z_erofs_readahead\n", all, from_erofs, from_readahead);
	ksft_test_result(!err, "data right\n");
	ksft_test_result(swapped > 0, "memory is short\n");
	ksft_test_result(from_readahead <= limit, "at most %d direct reclaims under readahead\n", limit);
	close(fd);
	must(!umount(MNT), "cannot unmount\n");
	ksft_finished();
}

// SPDX-License-Identifier: GPL-2.0
/*
 * erofs_gaps NAME ALGORITHM READERS READS MOST MOST_IN_ALL [again]: READERS processes share READS random reads of a page each
 * (POSIX_FADV_RANDOM) of the file on /dev/vda from cold, compare what they get with /dev/vdb, and the pages are counted that
 * decompression requests take for what they need not keep: the gaps between the pages that are read, above all. At most
 * MOST of them a request, and MOST_IN_ALL. With again, each page is dropped and read once more: its extent is then
 * decompressed for this page, and all others are gaps, whichever algorithm it is.
 */
#include "erofs.h"

#define BUFFER_KB	"8192"	/* of each CPU: an event has about 70 bytes */
#define TASKS		64

static struct requests {
	long long all, with_gaps, pages, worst;
} requests;

/* A task in a request. */
struct task {
	int pid;
	long long pages;
	bool inside;
};

static int reads;
static bool again;
static off_t size;

static struct task *task_of(int pid)
{
	static struct task tasks[TASKS];
	int i = 0;

	while (i < TASKS && tasks[i].pid && tasks[i].pid != pid)
		i++;
	must(i < TASKS, "too many tasks decompress\n");
	tasks[i].pid = pid;
	return &tasks[i];
}

static void end_request(struct task *t)
{
	if (!t->inside)
		return;
	requests.all++;
	requests.with_gaps += t->pages > 0;
	requests.pages += t->pages;
	requests.worst = t->pages > requests.worst ? t->pages : requests.worst;
	t->inside = false;
}

/* A line: "  1)  kworker-34  |  z_erofs_lz4_decompress() {", with calls as "name();" and an end as "} / * name * /". */
static void add_line(char *line, const char *decompress, const char *allocate)
{
	char *bar = strchr(line, '|'), *pid;
	struct task *t;

	if (*line == '#' || !bar)
		return;
	*bar = 0;
	pid = strrchr(line, '-');
	if (!pid)
		return;
	t = task_of(atoi(pid + 1));
	if (strstr(bar + 1, decompress)) {
		end_request(t);	/* at its end, or where that was not seen */
		if (strchr(bar + 1, '(')) {
			t->inside = true;
			t->pages = 0;
		}
		if (strchr(bar + 1, ';'))
			end_request(t);
	} else if (strstr(bar + 1, allocate) && strchr(bar + 1, '(')) {
		must(t->inside, "a page was allocated outside a request\n");
		t->pages++;
	}
}

static void begin_trace(const char *decompress, const char *allocate)
{
	char both[128];

	snprintf(both, sizeof(both), "%s %s", decompress, allocate);
	write_file(TRACING "buffer_size_kb", BUFFER_KB);
	write_file(TRACING "set_ftrace_filter", both);
	write_file(TRACING "set_graph_function", decompress);
	write_file(TRACING "current_tracer", "function_graph");
	write_file(TRACING "trace_options", "funcgraph-proc");
	write_file(TRACING "trace_options", "funcgraph-tail");
	write_file(TRACING "trace_options", "nofuncgraph-duration");
}

static void end_trace(const char *decompress, const char *allocate)
{
	char line[512];
	FILE *f;
	int cpu;

	write_file(TRACING "tracing_on", "0");
	for (cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++) {
		snprintf(line, sizeof(line), TRACING "per_cpu/cpu%d/stats", cpu);
		must(!number_in(line, "overrun:") && !number_in(line, "commit overrun:") && !number_in(line, "dropped events:"),
		     "the trace of CPU %d is not complete\n", cpu);
	}
	f = fopen(TRACING "trace", "r");
	must(f, "there is no trace\n");
	while (fgets(line, sizeof(line), f))
		add_line(line, decompress, allocate);
	fclose(f);
	write_file(TRACING "current_tracer", "nop");
}

static int read_some(int me)
{
	int fd = open_text(), ofd = open_original(), i, err = 0;

	(void)me;
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	for (i = 0; i < reads && !err; i++) {
		off_t at = random() % (size / PAGE) * PAGE;

		err = check_pages(fd, ofd, at, PAGE);
		if (!again || err)
			continue;
		posix_fadvise(fd, at, PAGE, POSIX_FADV_DONTNEED);
		err = check_pages(fd, ofd, at, PAGE);
	}
	return err;
}

int main(int argc, char **argv)
{
	int readers, most, most_in_all, bad, fd;
	char decompress[64];
	const char *allocate;

	ksft_print_header();
	ksft_set_plan(4);
	again = argc == 8 && !strcmp(argv[7], "again");
	must(argc == 7 || again, "usage: erofs_gaps name algorithm readers reads most most_in_all [again]\n");
	readers = atoi(argv[3]);
	must(readers > 0 && readers <= MAX_READERS, "1 to %d readers\n", MAX_READERS);
	reads = atoi(argv[4]) / readers;
	most = atoi(argv[5]);
	most_in_all = atoi(argv[6]);
	snprintf(decompress, sizeof(decompress), "z_erofs_%s_decompress", argv[2]);
	must(traceable(decompress), "this kernel has no %s\n", decompress);
	allocate = page_allocator();
	write_file("/sys/block/vda/queue/read_ahead_kb", "128");	/* a virtio disk has megabytes */
	mount_erofs("");
	fd = open_text();
	size = lseek(fd, 0, SEEK_END);
	close(fd);
	seed_random();
	drop_caches();

	begin_trace(decompress, allocate);
	bad = in_processes(readers, read_some);
	end_trace(decompress, allocate);
	ksft_print_msg("metric %s.requests %lld\n", argv[1], requests.all);
	ksft_print_msg("metric %s.pages %lld\n", argv[1], requests.pages);
	ksft_print_msg("metric %s.worst %lld\n", argv[1], requests.worst);
	ksft_print_msg("metric %s.with_gaps %lld\n", argv[1], requests.with_gaps);
	ksft_test_result(!bad, "data right\n");
	ksft_test_result(requests.all > reads / 100, "requests seen\n");
	ksft_test_result(requests.worst <= most, "at most %d pages a request\n", most);
	ksft_test_result(requests.pages <= most_in_all, "at most %d pages in all\n", most_in_all);
	must(!umount(MNT), "cannot unmount\n");
	ksft_finished();
}

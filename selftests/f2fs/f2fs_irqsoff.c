// SPDX-License-Identifier: GPL-2.0
/*
 * f2fs_irqsoff MOUNT-OPTION: read the compressed file on /dev/vda from cold and tell from the trace of each decompression
 * whether it ran in an interrupt (hard or soft) or with interrupts off, and for how long. Clusters larger than 64 KiB must
 * not. Times are those of the machine that runs the test: under emulation they only compare.
 */
#include "../steady.h"

#define PAGE		4096
#define LARGE		(64 << 10)
#define CPUS		8

struct figures {
	long long all, in_irq, large_in_irq;
	double longest, longest_irq, longest_handler;	/* us; the last: a whole interrupt with decompressions in it */
};

/* What a CPU is at. */
struct at {
	double start, handler;
	bool irq, decompressed;
};

/* @flags: interrupts off, need to reschedule, in an interrupt, ... (Documentation/trace/ftrace.rst) */
static bool is_atomic(const char *flags)
{
	return strchr("dD", flags[0]) || strchr("hHsSzZ", flags[2]);
}

/*
 * Only in a task a decompression can move to another CPU: then it is counted, but not timed. A line:
 *  kworker/0:1-9   [000] d.h1.     1.234567: f2fs_decompress_pages_start: ... cluster_size = 256, ...
 */
static void add_line(const char *line, struct at *cpus, struct figures *f)
{
	char flags[16], name[64];
	const char *p = strstr(line, " [0"), *size = strstr(line, "cluster_size = ");
	unsigned int cpu;
	struct at *at;
	double us;

	if (*line == '#' || !p || sscanf(p, " [%u] %15s %lf: %63[^:]:", &cpu, flags, &us, name) != 4 || cpu >= CPUS)
		return;
	at = &cpus[cpu];
	us *= 1e6;
	if (!strcmp(name, "irq_handler_entry")) {
		at->handler = us;
		at->decompressed = false;
	} else if (!strcmp(name, "irq_handler_exit")) {
		if (at->decompressed && us - at->handler > f->longest_handler)
			f->longest_handler = us - at->handler;
	} else if (!strcmp(name, "f2fs_decompress_pages_start")) {
		at->start = us;
		at->irq = is_atomic(flags);
		at->decompressed = true;
		f->all++;
		f->in_irq += at->irq;
		f->large_in_irq += at->irq && size && atoi(size + strlen("cluster_size = ")) * PAGE > LARGE;
	} else if (!strcmp(name, "f2fs_decompress_pages_end") && at->start) {
		double *longest = at->irq ? &f->longest_irq : &f->longest;

		if (us - at->start > *longest)
			*longest = us - at->start;
		at->start = 0;
	}
}

static void trace_events(const char *on)
{
	write_file(TRACING "events/f2fs/f2fs_decompress_pages_start/enable", on);
	write_file(TRACING "events/f2fs/f2fs_decompress_pages_end/enable", on);
	write_file(TRACING "events/irq/irq_handler_entry/enable", on);
	write_file(TRACING "events/irq/irq_handler_exit/enable", on);
}

static struct figures traced_read(void)
{
	struct at cpus[CPUS] = { 0 };
	struct figures f = { 0 };
	long long kept, written;
	char line[512];
	FILE *trace;

	write_file(TRACING "buffer_size_kb", "8192");
	drop_caches();
	trace_events("1");
	must(read_all(NULL) > 0, "cannot read %s\n", FILE_ON_DISK);
	trace_events("0");
	trace = fopen(TRACING "trace", "r");
	must(trace, "there is no trace\n");
	while (fgets(line, sizeof(line), trace)) {
		if (sscanf(line, "# entries-in-buffer/entries-written: %lld/%lld", &kept, &written) == 2)
			must(kept == written, "the trace is not complete\n");
		add_line(line, cpus, &f);
	}
	fclose(trace);
	return f;
}

/* The kernel's own measure of interrupts off, whoever turned them off, in us; -1 if it has none. */
static long long irqsoff_tracer(void)
{
	FILE *f;
	long long us = -1;

	if (!count_lines(TRACING "available_tracers", "irqsoff"))
		return -1;
	write_file(TRACING "current_tracer", "irqsoff");
	write_file(TRACING "tracing_max_latency", "0");
	drop_caches();
	must(read_all(NULL) > 0, "cannot read %s\n", FILE_ON_DISK);
	f = fopen(TRACING "tracing_max_latency", "r");
	must(f && fscanf(f, "%lld", &us) == 1, "there is no longest time with interrupts off\n");
	fclose(f);
	write_file(TRACING "current_tracer", "nop");
	return us;
}

int main(int argc, char **argv)
{
	long long latency, bytes;
	struct figures f;

	ksft_print_header();
	ksft_set_plan(3);
	must(argc == 2, "usage: f2fs_irqsoff mount-option\n");
	write_file("/sys/block/vda/queue/read_ahead_kb", "1024");
	must(!mount_f2fs("/dev/vda", MS_RDONLY, argv[1]), "cannot mount /dev/vda with %s\n", argv[1]);
	bytes = read_all("/dev/vdb");
	ksft_test_result(bytes > 0, "data right\n");
	f = traced_read();
	latency = irqsoff_tracer();

	ksft_print_msg("%lld decompressions, %lld of them in an interrupt or with interrupts off\n", f.all, f.in_irq);
	ksft_print_msg("longest decompression in a task %.0f us, in an interrupt %.0f us\n", f.longest, f.longest_irq);
	ksft_print_msg("longest interrupt with decompressions %.0f us\n", f.longest_handler);
	if (latency >= 0)
		ksft_print_msg("longest time with interrupts off, by the tracer, %lld us\n", latency);
	ksft_test_result(f.all > 0, "decompressions seen\n");
	ksft_test_result(!f.large_in_irq, "no large cluster in an interrupt\n");
	must(!umount(MNT), "cannot unmount\n");
	ksft_finished();
}

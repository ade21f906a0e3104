// SPDX-License-Identifier: GPL-2.0
/*
 * erofs_unmount TIMES: read pages of the file on /dev/vda while allocations of nodes of trees fail now and then, also those that
 * may reclaim, and unmount; TIMES times. A read may fail with ENOMEM, but what a failed insertion leaves in a tree must not
 * keep the file system mounted.
 *
 * Needs a boot with slab_nomerge, so that nodes have a slab cache of their own.
 */
#include "erofs.h"

#define READS		40
#define STUCK_MS	10000
#define NODES		"/sys/kernel/slab/radix_tree_node/failslab"

static void set_faults(const char *probability)
{
	write_file(NODES, "1");
	write_file("/sys/kernel/debug/failslab/cache-filter", "Y");
	write_file("/sys/kernel/debug/failslab/task-filter", "Y");
	write_file("/sys/kernel/debug/failslab/ignore-gfp-wait", "N");
	fail_always("failslab", true);
	write_file("/sys/kernel/debug/failslab/probability", probability);
}

/* Returns how many reads failed for want of memory; exits if one did in another way. */
static int read_some(int me)
{
	int fd = open_text(), ofd = open_original(), faults = open("/proc/self/make-it-fail", O_WRONLY), err = 0, failed = 0, i;
	off_t size = lseek(fd, 0, SEEK_END);

	(void)me;
	must(faults >= 0, "this kernel cannot make a task's allocations fail\n");
	for (i = 0; i < READS && (!err || err == ENOMEM); i++) {
		off_t at = random() % (size / PAGE) * PAGE;

		must(pwrite(faults, "1", 1, 0) == 1, "cannot ask for faults\n");
		err = check_pages(fd, -1, at, PAGE);
		must(pwrite(faults, "0", 1, 0) == 1, "cannot stop faults\n");
		failed += err == ENOMEM;
		if (!err)
			err = check_pages(fd, ofd, at, PAGE);
	}
	return err && err != ENOMEM ? err : 0;
}

/* Whether it ends; if not, the process that tries cannot be killed. */
static bool unmount(void)
{
	int64_t start = now_ms();
	pid_t pid = fork(), gone = 0;
	int status = 0;

	must(pid >= 0, "cannot fork\n");
	if (!pid)
		_exit(umount(MNT) ? errno : 0);
	while (!gone && now_ms() - start < STUCK_MS) {
		gone = waitpid(pid, &status, WNOHANG);
		sleep_ms(1);
	}
	if (gone == pid)
		must(!status, "cannot unmount, status %d\n", status);
	return gone == pid;
}

int main(int argc, char **argv)
{
	bool right = true, ends = true;
	int times, i;

	ksft_print_header();
	ksft_set_plan(2);
	must(argc == 2, "usage: erofs_unmount times\n");
	times = atoi(argv[1]);
	must(!access(NODES, F_OK), "nodes have no slab cache, boot with slab_nomerge\n");
	if (!memory_may_be_short())
		ksft_exit_skip("kmemleak would turn itself off\n");
	write_file("/proc/sys/kernel/printk", "3");	/* each failure is logged as an error; what is worse ends in a panic */
	write_file("/sys/block/vda/queue/read_ahead_kb", "128");
	seed_random();

	for (i = 0; i < times && right && ends; i++) {
		mount_erofs("");
		set_faults("50");
		right = !in_processes(1, read_some);
		fail_always("failslab", false);
		ends = unmount();
	}
	ksft_print_msg("%d mounts, the last %s\n", i, ends ? "was unmounted" : "does not end");
	ksft_test_result(right, "reads right or without memory\n");
	ksft_test_result(ends, "unmount ends\n");
	ksft_finished();
}

// SPDX-License-Identifier: GPL-2.0
/*
 * f2fs_fill ALGORITHM LOG_CLUSTER_SIZE BYTES: write the first BYTES of /dev/vdb to a compressed file on the empty
 * f2fs of /dev/vda. Makes test disks, and shows that writing compressed files works.
 */
#include "../steady.h"
#include <sys/ioctl.h>

#define F2FS_IOC_GET_COMPRESS_BLOCKS	_IOR(0xf5, 17, uint64_t)

int main(int argc, char **argv)
{
	static char buf[1 << 20];
	char options[200];
	long long left, done = 0;
	uint64_t saved = 0;
	int in, out;

	ksft_print_header();
	ksft_set_plan(2);
	must(argc == 4, "usage: f2fs_fill algorithm log_cluster_size bytes\n");
	left = atoll(argv[3]);
	snprintf(options, sizeof(options), "compress_algorithm=%s,compress_log_size=%s,compress_extension=*",
		 argv[1], argv[2]);
	must(!mount_f2fs("/dev/vda", 0, options), "cannot mount /dev/vda with %s\n", options);
	in = open("/dev/vdb", O_RDONLY);
	out = open(FILE_ON_DISK, O_CREAT | O_EXCL | O_RDWR, 0644);
	must(in >= 0 && out >= 0, "cannot open the files\n");
	while (left > 0) {
		ssize_t n = read(in, buf, left < (long long)sizeof(buf) ? (size_t)left : sizeof(buf));

		if (n <= 0)
			break;
		must(write(out, buf, n) == n, "cannot write at %lld\n", done);
		done += n;
		left -= n;
	}
	must(!left, "/dev/vdb ends %lld bytes early\n", left);
	must(!fsync(out), "cannot fsync\n");
	must(!ioctl(out, F2FS_IOC_GET_COMPRESS_BLOCKS, &saved), "cannot ask for the saved blocks\n");
	close(out);
	ksft_print_msg("%lld bytes, %" PRIu64 " blocks saved\n", done, saved);
	ksft_test_result(saved > 0, "compressed\n");
	drop_caches();
	ksft_test_result(done && read_all("/dev/vdb") == done, "read back\n");
	must(!umount(MNT), "cannot unmount\n");
	ksft_finished();
}

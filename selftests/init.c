// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of the test guest: runs what the kernel command line names after " -- ",
 * reports it as KTAP through the virtio port "steadyread.results" (without such
 * a port: on the console) and powers off. An argument is one of
 *
 *	prog,arg,...		/tests/prog with its arguments
 *	kunit			the results of the KUnit suites that ran at boot
 *	shell			a shell on the console, which reads /etc/profile
 *	steadyread.timeout=N	each program is killed after N seconds (0: never)
 *
 * The results go over a port of their own so that no console text can pass for
 * one, and end in a marker so that a guest which stopped halfway is seen.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define KSFT_SKIP	4
#define KUNIT_DIR	"/sys/kernel/debug/kunit"
#define KMEMLEAK	"/sys/kernel/debug/kmemleak"

static int results;
static int limit = 240;

static void mount_all(void)
{
	static const struct { const char *type, *dir; } mounts[] = {
		{ "proc", "/proc" },
		{ "sysfs", "/sys" },
		{ "devtmpfs", "/dev" },
		{ "debugfs", "/sys/kernel/debug" },
		{ "tracefs", "/sys/kernel/tracing" },
		{ "tmpfs", "/tmp" },
	};

	for (size_t i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
		mkdir(mounts[i].dir, 0755);
		/* What this kernel lacks, the tests that need it will name. */
		mount(mounts[i].type, mounts[i].dir, mounts[i].type, 0, NULL);
	}
}

/* The first line of a file, without its end; empty if it cannot be read. */
static void read_line(const char *path, char *line, int size)
{
	FILE *f = fopen(path, "re");

	if (!f || !fgets(line, size, f))
		*line = 0;
	line[strcspn(line, "\n")] = 0;
	if (f)
		fclose(f);
}

static int open_port(void)
{
	char path[300], name[64];
	struct dirent *port;
	int fd = -1;
	DIR *dir;

	/* The host names its ports a moment after the driver has probed. */
	for (int tries = 0; fd < 0 && tries < 300; tries++) {
		dir = opendir("/sys/class/virtio-ports");
		if (!dir)
			break;
		while (fd < 0 && (port = readdir(dir))) {
			snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name", port->d_name);
			read_line(path, name, sizeof(name));
			snprintf(path, sizeof(path), "/dev/%s", port->d_name);
			if (!strcmp(name, "steadyread.results"))
				fd = open(path, O_WRONLY | O_CLOEXEC);
		}
		closedir(dir);
		if (fd < 0)
			usleep(10000);
	}
	return fd;
}

static int kunit_filter(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int kunit(void)
{
	struct dirent **suites;
	char path[300], *line = NULL, *ok;
	bool failed = false;
	size_t size = 0;
	int n = scandir(KUNIT_DIR, &suites, kunit_filter, alphasort);

	if (n <= 0) {
		printf("# no KUnit suite has run: boot with kunit.enable=1\n");
		return 1;
	}
	printf("KTAP version 1\n1..%d\n", n);
	for (int i = 0; i < n; i++) {
		FILE *f;

		snprintf(path, sizeof(path), KUNIT_DIR "/%s/results", suites[i]->d_name);
		f = fopen(path, "re");
		/* Each file is the KTAP of one suite: here it is the i-th of n. */
		while (f && getline(&line, &size, f) > 0) {
			ok = line + (strncmp(line, "not ", 4) ? 0 : 4);
			if (!strncmp(ok, "ok 1 ", 5)) {
				failed |= ok != line;
				printf("%.*sok %d %s", (int)(ok - line), line, i + 1, ok + 5);
			} else if (strncmp(line, "KTAP ", 5) && strncmp(line, "1..1", 4)) {
				fputs(line, stdout);
			}
		}
		if (f)
			fclose(f);
	}
	return failed;
}

static int shell(void)
{
	char active[256], path[300], *tty;
	int fd;

	/* /dev/console cannot be a controlling terminal, the device behind it can. */
	read_line("/sys/class/tty/console/active", active, sizeof(active));
	tty = strrchr(active, ' ');
	snprintf(path, sizeof(path), "/dev/%s", tty ? tty + 1 : active);
	fd = open(path, O_RDWR);
	for (int i = 0; i < 3; i++)
		dup2(fd, i);
	execl("/bin/busybox", "sh", "-c",
	      "/bin/busybox --install -s /bin; exec /bin/busybox sh -li", NULL);
	perror("/bin/busybox");
	return 1;
}

static bool kmemleak_command(const char *command)
{
	int fd = open(KMEMLEAK, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, command, strlen(command)) > 0;

	if (!done)
		printf("# kmemleak refuses \"%s\": %s\n", command, strerror(errno));
	if (fd >= 0)
		close(fd);
	return done;
}

static int kmemleak(void)
{
	char *line = NULL;
	size_t size = 0;
	bool failed;
	int leaks = 0;
	FILE *f;

	printf("KTAP version 1\n1..1\n");
	failed = !kmemleak_command("scan");

	/* Only what is 5 s old and did not change since an earlier scan is a leak. */
	sleep(6);
	failed |= !kmemleak_command("scan");
	f = fopen(KMEMLEAK, "re");
	if (!f) {
		printf("# %s: %s\n", KMEMLEAK, strerror(errno));
		failed = true;
	}
	while (f && getline(&line, &size, f) > 0) {
		printf("# %s", line);
		leaks += !strncmp(line, "unreferenced object", 19);
		failed = true;
	}
	if (leaks)
		printf("# leaks found: %d\n", leaks);
	printf("%sok 1 no leak\n", failed ? "not " : "");
	return failed;
}

static int exec_test(char *arg)
{
	char command[2048], path[sizeof(command) + 8], *argv[64];
	int argc = 0;

	snprintf(command, sizeof(command), "%s", arg);
	for (char *rest = command; rest && argc < 63;)
		argv[argc++] = strsep(&rest, ",");
	argv[argc] = NULL;
	snprintf(path, sizeof(path), "/tests/%s", argv[0]);
	execv(path, argv);
	printf("# %s cannot be run: %s\n", path, strerror(errno));
	return 127;
}

static void child(char *arg, int out)
{
	static const struct { const char *name; int (*run)(void); } builtin[] = {
		{ "kunit", kunit },
		{ "kmemleak", kmemleak },
		{ "shell", shell },
	};
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	setsid();
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	for (size_t i = 0; i < sizeof(builtin) / sizeof(*builtin); i++)
		if (!strcmp(arg, builtin[i].name))
			exit(builtin[i].run());
	exit(exec_test(arg));
}

/* Pass on what a test has written, each line indented; false when there is no more. */
static bool relay(int from, bool *line_start)
{
	char in[4096], out[3 * sizeof(in)];
	ssize_t n = read(from, in, sizeof(in)), done = 0, len = 0;

	for (ssize_t i = 0; i < n; i++) {
		if (*line_start) {
			out[len++] = ' ';
			out[len++] = ' ';
		}
		out[len++] = in[i];
		*line_start = in[i] == '\n';
	}
	while (done < len) {
		ssize_t written = write(results, out + done, len - done);

		if (written < 0)
			break;
		done += written;
	}
	return n > 0;
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void run(int number, char *arg)
{
	bool line_start = true, running = true, in_time = true;
	int out[2], status = 0, gone_status, pidfd;
	bool limited = limit && strcmp(arg, "shell");
	long end = now_ms() + limit * 1000L;
	pid_t pid, gone = 0;

	dprintf(results, "  # Subtest: %s\n", arg);
	if (pipe2(out, O_CLOEXEC) || (pid = fork()) < 0) {
		dprintf(results, "not ok %d %s # ERROR %s\n", number, arg, strerror(errno));
		return;
	}
	if (!pid)
		child(arg, out[1]);
	close(out[1]);
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	/* Sleep until something happens: a tick of ours would show in a count. */
	pidfd = syscall(SYS_pidfd_open, pid, 0);
	struct pollfd fds[] = { { out[0], POLLIN, 0 }, { pidfd, POLLIN, 0 } };

	while (running && in_time) {
		long left = limited ? end - now_ms() : -1;

		in_time = !limited || left > 0;
		if (!in_time || poll(fds, 2, left) <= 0)
			continue;
		if (fds[0].revents && !relay(out[0], &line_start))
			fds[0].fd = -1;
		running = !fds[1].revents;
	}
	/* All but us is the test's: none of it must live on into the next one. */
	kill(-1, SIGKILL);
	for (int tries = 0; gone >= 0 && tries < 1000; tries++) {
		gone = waitpid(-1, &gone_status, WNOHANG);
		if (gone == pid)
			status = gone_status;
		if (!gone)
			usleep(10000);
	}
	while (relay(out[0], &line_start))
		;
	if (!line_start)
		dprintf(results, "\n");
	if (gone >= 0)
		dprintf(results, "# stuck in the kernel, cannot be killed\n");
	close(out[0]);
	close(pidfd);

	if (!in_time)
		dprintf(results, "not ok %d %s # TIMEOUT after %d s\n", number, arg, limit);
	else if (WIFEXITED(status) && WEXITSTATUS(status) == KSFT_SKIP)
		dprintf(results, "ok %d %s # SKIP\n", number, arg);
	else if (WIFEXITED(status) && !WEXITSTATUS(status))
		dprintf(results, "ok %d %s\n", number, arg);
	else if (WIFEXITED(status))
		dprintf(results, "# exit status %d\nnot ok %d %s\n", WEXITSTATUS(status), number, arg);
	else
		dprintf(results, "# killed by signal %d (%s)\nnot ok %d %s\n",
			WTERMSIG(status), strsignal(WTERMSIG(status)), number, arg);
}

int main(void)
{
	char cmdline[4096], leaks[] = "kmemleak", *tests[2048], *word;
	int console, fd, n = 0;

	mount_all();
	console = open("/dev/console", O_RDWR | O_NOCTTY | O_CLOEXEC);
	for (fd = 0; fd < 3; fd++)
		dup2(console, fd);
	results = open_port();
	if (results < 0)
		results = console;
	setenv("PATH", "/tests:/bin:/sbin:/usr/bin:/usr/sbin", 1);

	/* Not argv: there the kernel mixes in the options that it does not know itself. */
	read_line("/proc/cmdline", cmdline, sizeof(cmdline));
	word = strstr(cmdline, " -- ");
	for (word = word ? strtok(word + 4, " ") : NULL; word; word = strtok(NULL, " "))
		if (sscanf(word, "steadyread.timeout=%d", &limit) != 1)
			tests[n++] = word;
	if (!access(KMEMLEAK, F_OK)) {
		fd = open(KMEMLEAK, O_WRONLY | O_CLOEXEC);
		dprintf(fd, "clear");
		close(fd);
		tests[n++] = leaks;
	}

	dprintf(results, "KTAP version 1\n1..%d\n", n);
	for (int i = 0; i < n; i++)
		run(i + 1, tests[i]);
	dprintf(results, "# steadyread: end\n");

	tcdrain(console);
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

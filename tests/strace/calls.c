/* Calls all system calls of x86-64 with known arguments, most of which fail, for tests/strace.sh.
 *
 *   program        ends with exit_group(2)
 *   program exit   ends with exit(2)
 */
#include "calls.h"

static char buffer[256];
static char text[] = "some text, with \"quotes\"\n";

static void files(void)
{
	struct stat status;
	long fd = CALL(openat, AT_FDCWD, "/etc/hostname", O_RDONLY | O_CLOEXEC);
	CALL(read, fd, buffer, 3L);
	CALL(pread64, fd, buffer, 2L, 1L);
	CALL(lseek, fd, 1L, SEEK_CUR);
	CALL(fstat, fd, &status);
	CALL(fcntl, fd, F_GETFD, 0L);
	CALL(fcntl, fd, F_GETFL, 0L);
	CALL(fcntl, fd, F_SETFD, 0L);
	CALL(ioctl, fd, 0x5401L, buffer);
	CALL(fadvise64, fd, 0L, 0L, 1L);
	CALL(flock, fd, LOCK_SH | LOCK_NB);
	CALL(dup3, fd, 60L, O_CLOEXEC);
	CALL(close_range, 60L, 61L, 0L);
	CALL(close, fd);
	CALL(open, "/nosuch", O_RDWR | O_CREAT | O_EXCL | O_DIRECTORY, 0640L);
	CALL(open, "/nosuch/x", O_WRONLY | O_TRUNC | O_APPEND);
	CALL(creat, "/nosuch/x", 0600L);
	CALL(openat, NOFD, "x", O_PATH);
	CALL(openat, AT_FDCWD, BAD, O_RDONLY);
	CALL(stat, "/nosuch", &status);
	CALL(lstat, "/dev/null", &status);
	CALL(newfstatat, AT_FDCWD, "/etc", &status, 0L);
	CALL(access, "/nosuch", R_OK | W_OK);
	CALL(faccessat, AT_FDCWD, "/nosuch", X_OK);
	CALL(readlink, "/proc/self/cwd", buffer, 200L);
	CALL(readlinkat, AT_FDCWD, "/nosuch", buffer, 200L);
	CALL(rename, "/nosuch", "/nosuch2");
	CALL(renameat2, AT_FDCWD, "/nosuch", AT_FDCWD, "/nosuch2", 1L);
	CALL(link, "/nosuch", "/nosuch2");
	CALL(symlink, "target", "/nosuch/link");
	CALL(unlink, "/nosuch");
	CALL(unlinkat, NOFD, "x", AT_REMOVEDIR);
	CALL(mkdir, "/nosuch/d", 0755L);
	CALL(mkdirat, AT_FDCWD, "/nosuch/d", 01777L);
	CALL(rmdir, "/nosuch");
	CALL(mknod, "/nosuch/n", S_IFIFO | 0644L, 0L);
	CALL(chdir, "/nosuch");
	CALL(fchdir, NOFD);
	CALL(getcwd, buffer, sizeof buffer);
	CALL(chmod, "/nosuch", 0644L);
	CALL(fchmod, NOFD, 0600L);
	CALL(chown, "/nosuch", 1L, 2L);
	CALL(truncate, "/nosuch", 5L);
	CALL(ftruncate, NOFD, 6L);
	CALL(umask, 022L);
	CALL(statfs, "/nosuch", buffer);
	CALL(getxattr, "/nosuch", "user.x", buffer, 9L);
	CALL(setxattr, "/nosuch", "user.x", "value", 5L, 0L);
	CALL(write, NOFD, text, sizeof text - 1);
	CALL(pwrite64, NOFD, "abc", 3L, 7L);
	struct iovec vectors[2] = { { "ab", 2 }, { "cde", 3 } };
	CALL(writev, NOFD, vectors, 2L);
	CALL(getcwd, buffer, sizeof buffer);
	memset(buffer, 'x', sizeof buffer);
	CALL(readlink, "/proc/self/exe", buffer, sizeof buffer);
	memset(buffer, 'x', sizeof buffer);
	CALL(readlinkat, AT_FDCWD, "/proc/self/exe", buffer, 3L);
	CALL(mq_timedsend, NOFD, "a\nb\0c", 5L, 3L, NULL);
	CALL(fsync, NOFD);
	CALL(sendfile, NOFD, 78L, NULL, 4L);
	CALL(splice, NOFD, NULL, 78L, NULL, 5L, 0L);
	CALL(close, NOFD);
	int ends[2];
	CALL(pipe2, ends, O_NONBLOCK);
	CALL(dup2, ends[0], 50L);
	CALL(close, ends[0]);
	CALL(close, ends[1]);
	CALL(close, 50L);
	struct timespec times[2] = { { 1, 2 }, { 3, 4 } };
	CALL(utimensat, AT_FDCWD, "/nosuch", times, 0L);
	CALL(mount, "none", "/nosuch", "tmpfs", 0L, NULL);
	CALL(umount2, "/nosuch", 0L);
	CALL(chroot, "/nosuch");
	CALL(memfd_create, "name", 1L);
	CALL(inotify_init1, O_CLOEXEC);
}

/* Addresses whose size the kernel writes, longer and shorter than the room for them. */
static void received(struct sockaddr_un *local)
{
	struct sockaddr_un other;
	socklen_t size = sizeof other;
	int value;
	memset(&other, 'x', sizeof other);
	strcpy(local->sun_path, "rperf_trace_socket_with_a_path_of_more_than_28_bytes");
	long fd = CALL(socket, AF_UNIX, SOCK_STREAM, 0L);
	CALL(bind, fd, local, sizeof *local);
	CALL(listen, fd, 5L);
	long client = CALL(socket, AF_UNIX, SOCK_STREAM, 0L);
	CALL(connect, client, local, sizeof *local);
	long server = CALL(accept, fd, &other, &size);
	size = sizeof other;
	CALL(getsockname, server, &other, &size);
	size = sizeof other;
	CALL(getpeername, client, &other, &size);
	size = 4;
	CALL(getsockopt, fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &size);
	CALL(sendto, server, "a", 1L, 0L, NULL, 0L);
	size = sizeof other;
	CALL(recvfrom, client, buffer, 10L, 0L, &other, &size);
	CALL(close, server);
	CALL(close, client);
	CALL(close, fd);
	CALL(unlink, local->sun_path);
}

static void sockets(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(9) };
	struct sockaddr_un local = { .sun_family = AF_UNIX, .sun_path = "/nosuch/socket" };
	int on = 1, pair[2];
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	long fd = CALL(socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0L);
	CALL(setsockopt, fd, SOL_SOCKET, SO_REUSEADDR, &on, 4L);
	CALL(connect, fd, &address, sizeof address);
	CALL(getsockname, fd, BAD, BAD);
	CALL(shutdown, fd, SHUT_WR);
	CALL(close, fd);
	fd = CALL(socket, AF_UNIX, SOCK_DGRAM, 0L);
	CALL(connect, fd, &local, sizeof local);
	CALL(close, fd);
	CALL(socketpair, AF_UNIX, SOCK_STREAM, 0L, pair);
	CALL(sendto, pair[0], "hello", 5L, MSG_DONTWAIT, NULL, 0L);
	CALL(recvfrom, pair[1], buffer, 100L, MSG_DONTWAIT, NULL, NULL);
	CALL(close, pair[0]);
	CALL(close, pair[1]);
	received(&local);
	CALL(bind, NOFD, &address, sizeof address);
	CALL(listen, NOFD, 5L);
	CALL(accept4, NOFD, NULL, NULL, SOCK_NONBLOCK);
}

static void waiting(void)
{
	struct timespec time = { 0, 1000 };
	struct pollfd none = { NOFD, 0, 0 };
	struct pollfd set[2] = { { NOFD, POLLIN | POLLOUT, 0 }, { -1, POLLPRI, 0 } };
	struct epoll_event event = { EPOLLIN | EPOLLET, { .u64 = 5 } };
	CALL(nanosleep, &time, NULL);
	CALL(clock_nanosleep, CLOCK_MONOTONIC, 0L, &time, NULL);
	CALL(clock_gettime, 99L, &time);
	CALL(clock_getres, CLOCK_MONOTONIC, &time);
	CALL(poll, set, 2L, 0L);
	CALL(poll, &none, 1L, 0L);
	CALL(ppoll, set + 1, 1L, &time, NULL, 8L);
	long fd = CALL(epoll_create1, EPOLL_CLOEXEC);
	CALL(epoll_ctl, fd, EPOLL_CTL_ADD, NOFD, &event);
	CALL(epoll_wait, fd, &event, 1L, 0L);
	CALL(close, fd);
	CALL(eventfd2, 3L, O_CLOEXEC);
	CALL(timerfd_create, CLOCK_MONOTONIC, O_NONBLOCK);
	int word = 7;
	CALL(futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1L, NULL, NULL, 0L);
	CALL(futex, &word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 6L, NULL, NULL, 0L);
}

static void memory(void)
{
	char *page = (char *)CALL(mmap, NULL, 8192L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1L, 0L);
	CALL(mprotect, page, 4096L, PROT_READ);
	CALL(madvise, page, 4096L, MADV_DONTNEED);
	CALL(mremap, page, 8192L, 4096L, 0L);
	CALL(msync, page, 4096L, MS_SYNC);
	CALL(mlock, page, 4096L);
	CALL(munlock, page, 4096L);
	CALL(munmap, page, 4096L);
	CALL(mmap, NULL, 4096L, PROT_EXEC, MAP_SHARED, NOFD, 4096L);
	CALL(brk, NULL);
	CALL(mincore, NULL, 0L, buffer);
}

static void processes(void)
{
	struct rlimit limit;
	sigset_t set;
	unsigned long act[4] = { 1, 0x04000000 | 0x10000000, 0, 2 };
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CALL(kill, NOPID, SIGTERM);
	CALL(tgkill, NOPID, 0x7ffffff1L, SIGUSR1);
	CALL(rt_sigaction, SIGUSR2, act, NULL, 8L);
	CALL(rt_sigprocmask, SIG_BLOCK, &set, NULL, 8L);
	CALL(getrlimit, RLIMIT_CORE, &limit);
	CALL(prlimit64, 0L, RLIMIT_STACK, NULL, &limit);
	CALL(setrlimit, 99L, &limit);
	CALL(prctl, PR_SET_DUMPABLE, 1L, 0L, 0L, 0L);
	CALL(prctl, PR_SET_PDEATHSIG, SIGHUP, 0L, 0L, 0L);
	CALL(getpriority, PRIO_PROCESS, 0L);
	CALL(sched_getparam, NOPID, BAD);
	CALL(sched_setscheduler, NOPID, SCHED_FIFO, BAD);
	CALL(unshare, CLONE_NEWNS | 1L);
	CALL(setns, NOFD, CLONE_NEWNET);
	CALL(wait4, NOPID, NULL, WNOHANG, NULL);
	CALL(waitid, P_PID, NOPID, NULL, WEXITED | WNOHANG, NULL);
	CALL(execve, "/nosuch", (char *[]){ "a", "b \"c\"", NULL }, (char *[]){ NULL });
	CALL(setuid, 0L);
	CALL(setpgid, NOPID, 5L);
	CALL(getrandom, buffer, 0L, 1L);
	CALL(bpf, 77L, NULL, 0L);
	CALL(keyctl, 0L, 1L, 0L);
	CALL(seccomp, 99L, 0L, NULL);
	CALL(perf_event_open, NULL, 0L, -1L, -1L, 8L);
	CALL(getitimer, ITIMER_REAL, BAD);
	CALL(uname, BAD);
	CALL(sysinfo, BAD);
	CALL(getpgid, NOPID);
	CALL(capget, BAD, NULL);
	CALL(personality, 0xffffffffL);
	CALL(sync_file_range, NOFD, 0L, 4096L, 2L);
	CALL(name_to_handle_at, NOFD, "x", BAD, BAD, 0L);
}

int main(int count, char **arguments)
{
	/* A mark from which the lines are compared. */
	CALL(getpgid, 0x7ffffffeL);
	files();
	sockets();
	waiting();
	memory();
	processes();
	more_files();
	more_tasks(count > 1 ? arguments[1] : "");
	return 0;
}

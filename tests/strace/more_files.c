/* Calls of files, sockets, extended attributes, mounts and asynchronous input and output. */
#include "calls.h"
#include <linux/fsmap.h>
#include <linux/io_uring.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/stat.h>
#include <utime.h>

/* Calls that are newer than the headers. */
#define SYS_cachestat 451
#define SYS_fchmodat2 452
#define SYS_statmount 457
#define SYS_listmount 458
#define SYS_setxattrat 463
#define SYS_getxattrat 464
#define SYS_listxattrat 465
#define SYS_removexattrat 466
#define SYS_open_tree_attr 467
#define SYS_file_getattr 468
#define SYS_file_setattr 469

static char buffer[4096];

static void names(void)
{
	struct timeval pair[2] = { { 1, 2 }, { 3, 4 } };
	struct utimbuf times = { 5, 6 };
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS };
	struct statx status;
	CALL(acct, "/nosuch");
	CALL(faccessat2, AT_FDCWD, "/nosuch", R_OK, AT_EACCESS);
	CALL(fchmodat, AT_FDCWD, "/nosuch", 0640L);
	CALL(fchmodat2, AT_FDCWD, "/nosuch", 0640L, 0x100L);
	CALL(fchown, NOFD, 1L, 2L);
	CALL(fchownat, AT_FDCWD, "/nosuch", 1L, 2L, AT_SYMLINK_NOFOLLOW);
	CALL(lchown, "/nosuch", 1L, -1L);
	CALL(futimesat, AT_FDCWD, "/nosuch", pair);
	CALL(utimes, "/nosuch", pair);
	CALL(utime, "/nosuch", &times);
	CALL(linkat, AT_FDCWD, "/nosuch", AT_FDCWD, "/nosuch2", AT_SYMLINK_FOLLOW);
	CALL(mknodat, AT_FDCWD, "/nosuch/n", S_IFIFO | 0600L, 0L);
	CALL(renameat, AT_FDCWD, "/nosuch", NOFD, "x");
	CALL(symlinkat, "target", AT_FDCWD, "/nosuch/link");
	CALL(openat2, AT_FDCWD, "/nosuch", &how, sizeof how);
	CALL(statx, AT_FDCWD, "/dev/null", AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_MODE, &status);
	CALL(statx, AT_FDCWD, "/nosuch", AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &status);
	CALL(uselib, "/nosuch");
	CALL(swapon, "/nosuch", 0x8001L);
	CALL(swapoff, "/nosuch");
	CALL(pivot_root, "/nosuch", "/nosuch2");
	CALL(quotactl, 0x80000700L, "/nosuch", 5L, BAD);
	CALL(quotactl_fd, NOFD, 0x80000700L, 5L, BAD);
	CALL(sysfs, 99L, 1L, 2L);
	CALL(ustat, 0xfffffL, BAD);
	CALL(inotify_init);
	CALL(inotify_add_watch, NOFD, "/nosuch", 0x00000002L | 0x01000000L);
	CALL(inotify_rm_watch, NOFD, 5L);
	CALL(fanotify_init, 0x3L, O_RDONLY | O_CLOEXEC);
	CALL(fanotify_mark, NOFD, 0x1L, 0x20L, AT_FDCWD, "/nosuch");
	CALL(name_to_handle_at, AT_FDCWD, "/nosuch", BAD, BAD, AT_SYMLINK_FOLLOW);
	CALL(open_by_handle_at, NOFD, BAD, O_RDONLY);
	CALL(lookup_dcookie, 5L, buffer, 100L);
}

static void attributes(void)
{
	struct { unsigned long value; unsigned size, flags; } value = { (unsigned long)"value", 5, 1 };
	struct { unsigned long flags; unsigned sizes[4]; } file = { 5, { 0 } };
	CALL(lgetxattr, "/nosuch", "user.x", buffer, 9L);
	CALL(fgetxattr, NOFD, "user.x", buffer, 9L);
	CALL(lsetxattr, "/nosuch", "user.x", "value", 5L, 1L);
	CALL(fsetxattr, NOFD, "user.x", "value", 5L, 2L);
	CALL(listxattr, "/nosuch", buffer, 9L);
	CALL(llistxattr, "/nosuch", buffer, 9L);
	CALL(flistxattr, NOFD, buffer, 9L);
	CALL(removexattr, "/nosuch", "user.x");
	CALL(lremovexattr, "/nosuch", "user.x");
	CALL(fremovexattr, NOFD, "user.x");
	CALL(setxattrat, AT_FDCWD, "/nosuch", 0x100L, "user.x", &value, sizeof value);
	CALL(getxattrat, AT_FDCWD, "/nosuch", 0x100L, "user.x", &value, sizeof value);
	CALL(listxattrat, AT_FDCWD, "/nosuch", 0x100L, buffer, 9L);
	CALL(removexattrat, AT_FDCWD, "/nosuch", 0x100L, "user.x");
	CALL(file_getattr, AT_FDCWD, "/nosuch", &file, sizeof file, 0x100L);
	CALL(file_setattr, AT_FDCWD, "/nosuch", &file, sizeof file, 0x100L);
}

static void mounts(void)
{
	struct mount_attr attribute = { .attr_set = MOUNT_ATTR_RDONLY, .propagation = 1 << 18 };
	struct { unsigned size, spare; unsigned long id, param; } request = { 24, 0, 5, 6 };
	CALL(fsopen, "nosuch", 1L);
	CALL(fsconfig, NOFD, 1L, "key", "value", 0L);
	CALL(fsmount, NOFD, 1L, MOUNT_ATTR_NOSUID);
	CALL(fspick, AT_FDCWD, "/nosuch", 3L);
	CALL(open_tree, AT_FDCWD, "/nosuch", OPEN_TREE_CLONE | AT_RECURSIVE);
	CALL(open_tree_attr, AT_FDCWD, "/nosuch", OPEN_TREE_CLONE, &attribute, sizeof attribute);
	CALL(move_mount, NOFD, "x", AT_FDCWD, "/nosuch", MOVE_MOUNT_F_EMPTY_PATH);
	CALL(mount_setattr, AT_FDCWD, "/nosuch", AT_RECURSIVE, &attribute, sizeof attribute);
	CALL(statmount, &request, BAD, 5L, 1L);
	CALL(listmount, &request, BAD, 5L, 1L);
}

static void descriptors(void)
{
	struct iovec vectors[3] = { { "ab", 2 }, { "", 0 }, { "cde", 3 } };
	struct iovec rooms[2] = { { buffer, 2 }, { buffer + 8, 3 } };
	struct { unsigned long offset, length; } range = { 4096, 8192 }, pages[3] = { { 0 } };
	int ends[2];
	long fd = CALL(openat, AT_FDCWD, "/etc/passwd", O_RDONLY);
	CALL(readv, fd, rooms, 2L);
	CALL(preadv, fd, rooms, 2L, 1L, 0L);
	CALL(preadv2, fd, rooms, 2L, 1L, 0L, 2L);
	CALL(readahead, fd, 1L, 2L);
	CALL(cachestat, fd, &range, pages, 9L);
	CALL(cachestat, fd, &range, pages, 0L);
	CALL(fstatfs, NOFD, BAD);
	CALL(dup, fd);
	CALL(close, fd + 1);
	CALL(close, fd);
	CALL(pwritev, NOFD, vectors, 3L, 1L, 0L);
	CALL(pwritev2, NOFD, vectors, 3L, -1L, -1L, 8L);
	CALL(vmsplice, NOFD, vectors, 3L, 2L);
	CALL(copy_file_range, NOFD, NULL, 78L, NULL, 5L, 0L);
	CALL(tee, NOFD, 78L, 5L, 3L);
	CALL(fallocate, NOFD, 3L, 1L, 2L);
	CALL(fdatasync, NOFD);
	CALL(syncfs, NOFD);
	CALL(sync);
	CALL(getdents, NOFD, BAD, 5L);
	CALL(getdents64, NOFD, BAD, 5L);
	CALL(pipe, ends);
	CALL(close, ends[0]);
	CALL(close, ends[1]);
	CALL(pipe, BAD);
}

static void messages(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(9) };
	struct iovec vectors[2] = { { "ab", 2 }, { "cde", 3 } };
	struct msghdr message = { .msg_name = &address, .msg_namelen = sizeof address, .msg_iov = vectors, .msg_iovlen = 2 };
	struct mmsghdr many[1] = { { message, 0 } };
	struct timespec time = { 1, 2 };
	struct iovec rooms[2] = { { buffer, 1 }, { buffer + 8, 100 } };
	struct sockaddr_un sender = { .sun_family = AF_UNIX };
	struct msghdr received = { .msg_name = &sender, .msg_namelen = sizeof sender, .msg_iov = rooms, .msg_iovlen = 2 };
	int pair[2];
	CALL(socketpair, AF_UNIX, SOCK_DGRAM, 0L, pair);
	message.msg_name = NULL;
	message.msg_namelen = 0;
	CALL(sendmsg, pair[0], &message, 0L);
	CALL(recvmsg, pair[1], &received, 0L);
	struct iovec other = { "fgh", 3 };
	struct mmsghdr two[2] = { { message, 0 }, { { .msg_iov = &other, .msg_iovlen = 1 }, 0 } };
	CALL(sendmmsg, pair[0], two, 2L, 0L);
	struct iovec spaces[2] = { { buffer + 200, 50 }, { buffer + 300, 50 } };
	struct mmsghdr got[2] = { { { .msg_iov = spaces, .msg_iovlen = 1 }, 0 }, { { .msg_iov = spaces + 1, .msg_iovlen = 1 }, 0 } };
	CALL(recvmmsg, pair[1], got, 2L, MSG_DONTWAIT, NULL);
	CALL(close, pair[0]);
	CALL(close, pair[1]);
	message.msg_name = &address;
	message.msg_namelen = sizeof address;
	CALL(sendmsg, NOFD, &message, MSG_DONTWAIT);
	CALL(recvmsg, NOFD, &message, MSG_PEEK);
	CALL(sendmmsg, NOFD, many, 1L, MSG_NOSIGNAL);
	CALL(recvmmsg, NOFD, many, 1L, MSG_WAITFORONE, &time);
}

static void waiting(void)
{
	fd_set none;
	struct timespec time = { 0, 1000 };
	struct timeval moment = { 0, 1000 };
	struct itimerspec timer = { { 1, 2 }, { 3, 4 } };
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	FD_ZERO(&none);
	CALL(select, 0L, NULL, NULL, NULL, &moment);
	CALL(pselect6, 0L, NULL, NULL, NULL, &time, NULL);
	CALL(epoll_create, 5L);
	CALL(epoll_pwait, NOFD, BAD, 1L, 0L, &set, 8L);
	CALL(epoll_pwait2, NOFD, BAD, 1L, &time, &set, 8L);
	CALL(epoll_wait_old, 1L, 2L, 3L);
	CALL(epoll_ctl_old, 1L, 2L, 3L, 4L);
	CALL(eventfd, 3L);
	CALL(signalfd, NOFD, &set, 8L);
	CALL(signalfd4, NOFD, &set, 8L, O_NONBLOCK);
	CALL(timerfd_settime, NOFD, 1L, &timer, NULL);
	CALL(timerfd_gettime, NOFD, BAD);
	CALL(userfaultfd, 0xf0L);
}

static void queues(void)
{
	struct io_uring_params params = { .flags = 0x80000000 };
	struct timespec time = { 1, 2 };
	unsigned long priority;
	CALL(io_setup, 5L, BAD);
	CALL(io_destroy, 5L);
	CALL(io_submit, 5L, 1L, BAD);
	CALL(io_cancel, 5L, BAD, BAD);
	CALL(io_getevents, 5L, 1L, 2L, BAD, &time);
	CALL(io_pgetevents, 5L, 1L, 2L, BAD, &time, NULL);
	CALL(io_uring_setup, 5L, &params);
	CALL(io_uring_enter, NOFD, 1L, 2L, 1L, NULL, 8L);
	CALL(io_uring_register, NOFD, 2L, NULL, 1L);
	CALL(mq_open, "nosuch", O_RDWR, 0600L, NULL);
	CALL(mq_unlink, "nosuch");
	CALL(mq_timedreceive, NOFD, buffer, 5L, &priority, &time);
	CALL(mq_notify, NOFD, NULL);
	CALL(mq_getsetattr, NOFD, NULL, NULL);
}

void more_files(void)
{
	names();
	attributes();
	mounts();
	descriptors();
	messages();
	waiting();
	queues();
}

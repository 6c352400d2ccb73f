/* What the parts of the program have in common: headers, and system calls by their names in the kernel's tables. */
#pragma once
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>


#define CALL(name, ...) syscall(SYS_##name, ##__VA_ARGS__)
#define NOFD 77
/* An address that is never readable. */
#define BAD ((void *)8)
/* A process that does not exist. */
#define NOPID 0x7ffffff0L

/* Calls of files, sockets and mounts; and all others. */
void more_files(void);
void more_tasks(const char *mode);

/* Calls of processes, signals, memory, time and the system. */
#include "calls.h"
#include <linux/sched.h>
#include <sys/timex.h>

#define SYS_map_shadow_stack 453
#define SYS_futex_wake 454
#define SYS_futex_wait 455
#define SYS_futex_requeue 456
#define SYS_lsm_get_self_attr 459
#define SYS_lsm_set_self_attr 460
#define SYS_lsm_list_modules 461
#define SYS_mseal 462
#define SYS_uprobe 336

static void on_signal(int signal) { (void)signal; }

/* The child has the stack of its parent, so it must not return from a function. */
static void forked_with_shared_memory(void)
{
	long result = SYS_vfork;
	__asm__ volatile("syscall\n\ttest %%rax, %%rax\n\tjnz 1f\n\tmov %1, %%eax\n\txor %%edi, %%edi\n\tsyscall\n1:"
			 : "+a"(result) : "i"(SYS_exit_group) : "rcx", "rdi", "r11", "memory");
	CALL(wait4, result, NULL, 0L, NULL);
}

static void children(void)
{
	int status;
	struct clone_args args = { .flags = CLONE_FS, .exit_signal = SIGCHLD };
	long child = CALL(fork);
	if (child == 0)
		CALL(exit_group, 3L);
	CALL(wait4, child, &status, 0L, NULL);
	forked_with_shared_memory();
	child = CALL(clone, CLONE_FS | SIGCHLD, 0L, NULL, NULL, 0L);
	if (child == 0)
		CALL(exit_group, 4L);
	CALL(wait4, child, &status, 0L, NULL);
	child = CALL(clone3, &args, sizeof args);
	if (child == 0)
		CALL(exit_group, 5L);
	CALL(wait4, child, &status, 0L, NULL);
	/* Shorter than the structure. */
	args.flags = CLONE_VM | CLONE_SIGHAND | CLONE_CLEAR_SIGHAND;
	CALL(clone3, &args, 64L);
	CALL(clone3, &args, 5L);
}

static void identities(void)
{
	CALL(getpid);
	CALL(gettid);
	CALL(getppid);
	CALL(getpgrp);
	CALL(getsid, NOPID);
	CALL(getuid);
	CALL(geteuid);
	CALL(getgid);
	CALL(getegid);
	CALL(getgroups, -1L, BAD);
	CALL(getresuid, BAD, BAD, BAD);
	CALL(getresgid, BAD, BAD, BAD);
	CALL(setgid, -1L);
	CALL(setregid, -1L, -1L);
	CALL(setreuid, -1L, -1L);
	CALL(setresgid, -1L, -1L, -1L);
	CALL(setresuid, -1L, -1L, -1L);
	CALL(setfsgid, -1L);
	CALL(setfsuid, -1L);
	CALL(set_tid_address, BAD);
	CALL(set_robust_list, BAD, 5L);
	CALL(get_robust_list, NOPID, BAD, BAD);
	CALL(rseq, BAD, 32L, 1L, 0x53053053L);
	CALL(pidfd_open, NOPID, O_NONBLOCK);
	CALL(pidfd_getfd, NOFD, 5L, 0L);
	CALL(pidfd_send_signal, NOFD, SIGTERM, NULL, 0L);
	CALL(kcmp, NOPID, 0x7ffffff1L, 0L, 1L, 2L);
	CALL(ptrace, 4L, NOPID, 5L, 6L);
	CALL(process_vm_readv, NOPID, NULL, 0L, NULL, 0L, 0L);
	CALL(process_vm_writev, NOPID, NULL, 0L, NULL, 0L, 0L);
	CALL(process_madvise, NOFD, NULL, 0L, MADV_COLD, 0L);
	CALL(process_mrelease, NOFD, 0L);
}

static void programs(void)
{
	CALL(execveat, AT_FDCWD, "/nosuch", (char *[]){ "a", "b", NULL }, (char *[]){ NULL }, AT_SYMLINK_NOFOLLOW);
	CALL(arch_prctl, 0x1002L, -1L);
	CALL(modify_ldt, 99L, BAD, 5L);
	CALL(set_thread_area, BAD);
	CALL(get_thread_area, BAD);
	CALL(ioperm, 0x80000L, 1L, 1L);
	CALL(iopl, 9L);
	CALL(landlock_create_ruleset, NULL, 0L, 1L);
	CALL(landlock_add_rule, NOFD, 1L, BAD, 0L);
	CALL(landlock_restrict_self, NOFD, 0L);
	CALL(lsm_get_self_attr, 100L, BAD, BAD, 5L);
	CALL(lsm_set_self_attr, 100L, BAD, 4L, 5L);
	CALL(lsm_list_modules, BAD, BAD, 5L);
	CALL(uprobe);
	CALL(add_key, "nosuch", "description", "payload", 7L, -3L);
	CALL(request_key, "nosuch", "description", NULL, -3L);
	CALL(membarrier, 0x10000L, 0L, 0L);
	CALL(getcpu, NULL, NULL, NULL);
}

static void scheduling(void)
{
	struct sched_param param = { 5 };
	struct { unsigned size, policy; unsigned long flags; int nice, priority; unsigned long times[3]; } attr = { 48, 0, 1, 5, 0, { 0 } };
	unsigned long mask[2] = { 3, 0 };
	CALL(sched_yield);
	CALL(sched_get_priority_max, SCHED_RR);
	CALL(sched_get_priority_min, SCHED_FIFO);
	CALL(sched_getaffinity, NOPID, 16L, mask);
	CALL(sched_setaffinity, NOPID, 16L, mask);
	CALL(sched_getattr, NOPID, &attr, 48L, 0L);
	CALL(sched_setattr, NOPID, &attr, 0L);
	CALL(sched_getscheduler, NOPID);
	CALL(sched_setparam, NOPID, &param);
	CALL(sched_setscheduler, NOPID, SCHED_RR | 0x40000000, &param);
	CALL(sched_rr_get_interval, NOPID, BAD);
	CALL(setpriority, PRIO_PROCESS, NOPID, 5L);
	CALL(ioprio_get, 1L, NOPID);
	CALL(ioprio_set, 1L, NOPID, 0x4005L);
}

static void signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	siginfo_t info = { .si_signo = SIGUSR1, .si_code = SI_QUEUE };
	struct timespec none = { 0, 0 };
	stack_t stack = { .ss_sp = BAD, .ss_flags = SS_DISABLE, .ss_size = 0 };
	sigset_t set, old;
	long process = CALL(getpid);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	CALL(tkill, NOPID, SIGUSR1);
	/* The handler ends with rt_sigreturn(2). */
	CALL(tgkill, process, process, SIGUSR1);
	CALL(rt_sigprocmask, SIG_BLOCK, &set, &old, 8L);
	CALL(tgkill, process, process, SIGUSR1);
	CALL(rt_sigpending, &old, 8L);
	CALL(rt_sigtimedwait, &set, NULL, &none, 8L);
	CALL(rt_sigtimedwait, &set, NULL, &none, 8L);
	CALL(tgkill, process, process, SIGUSR1);
	sigemptyset(&old);
	CALL(rt_sigsuspend, &old, 8L);
	CALL(rt_sigqueueinfo, NOPID, SIGUSR1, &info);
	CALL(rt_tgsigqueueinfo, NOPID, 0x7ffffff1L, SIGUSR1, &info);
	CALL(sigaltstack, &stack, NULL);
	CALL(alarm, 1L);
	CALL(pause);
	CALL(restart_syscall);
}

static void memory(void)
{
	unsigned long nodes[1] = { 1 };
	struct { unsigned long value, address; unsigned flags, reserved; } waiter = { 5, 0, 0x82, 0 };
	struct timespec time = { 1, 2 };
	int word = 7;
	CALL(mlock2, NULL, 0L, 9L);
	CALL(mlockall, 9L);
	CALL(munlockall);
	CALL(mseal, 4096L, 1L, 9L);
	CALL(memfd_secret, 9L);
	CALL(mbind, NULL, 4096L, 99L, nodes, 5L, 1L);
	CALL(set_mempolicy, 99L, nodes, 5L);
	CALL(get_mempolicy, NULL, NULL, 0L, NULL, 99L);
	CALL(set_mempolicy_home_node, 1L, 4096L, 0L, 1L);
	CALL(migrate_pages, NOPID, 5L, nodes, nodes);
	CALL(move_pages, NOPID, 0L, NULL, NULL, NULL, 2L);
	CALL(pkey_alloc, 1L, 3L);
	CALL(pkey_free, 99L);
	CALL(pkey_mprotect, NULL, 1L, PROT_READ, 99L);
	CALL(remap_file_pages, NULL, 4096L, 0L, 5L, 0L);
	CALL(map_shadow_stack, 0L, 0L, 9L);
	CALL(futex_wait, &word, 6L, 0xffffffffL, 0x82L, NULL, 0L);
	CALL(futex_wake, &word, 0xffffffffL, 1L, 0x82L);
	CALL(futex_requeue, NULL, 0L, 1L, 1L);
	CALL(futex_waitv, &waiter, 1L, 9L, &time, CLOCK_MONOTONIC);
	CALL(semget, 0x12345678L, 1L, 0600L);
	CALL(semop, -1L, BAD, 1L);
	CALL(semtimedop, -1L, BAD, 1L, &time);
	CALL(semctl, -1L, 0L, 0L, 0L);
	CALL(shmget, 0x12345678L, 5L, 0600L);
	CALL(shmat, -1L, NULL, 010000L);
	CALL(shmdt, 1L);
	CALL(shmctl, -1L, 0L, NULL);
	CALL(msgget, 0x12345678L, 0600L);
	CALL(msgsnd, -1L, BAD, 5L, 04000L);
	CALL(msgrcv, -1L, BAD, 5L, 1L, 04000L);
	CALL(msgctl, -1L, 0L, NULL);
}

static void clocks(void)
{
	struct timespec time = { 1, 2000000000 };
	struct timeval moment = { 1, 2000000 };
	struct timezone zone = { 60, 0 };
	struct itimerval timer = { { 0, 0 }, { 100, 5 } }, old;
	struct itimerspec setting = { { 1, 2 }, { 3, 4 } };
	struct timex adjusted = { .modes = ADJ_TICK, .tick = 1 };
	struct sigevent event = { .sigev_notify = SIGEV_NONE };
	int id = 0;
	CALL(gettimeofday, NULL, &zone);
	CALL(settimeofday, &moment, NULL);
	CALL(time, BAD);
	CALL(times, BAD);
	CALL(getrusage, 99L, BAD);
	CALL(clock_settime, CLOCK_REALTIME, &time);
	CALL(adjtimex, &adjusted);
	CALL(clock_adjtime, CLOCK_MONOTONIC, &adjusted);
	CALL(setitimer, ITIMER_VIRTUAL, &timer, NULL);
	CALL(setitimer, ITIMER_VIRTUAL, &timer, &old);
	CALL(setitimer, ITIMER_PROF, NULL, &old);
	CALL(timer_create, CLOCK_MONOTONIC, &event, &id);
	CALL(timer_settime, (long)id, 1L, &setting, NULL);
	CALL(timer_settime, 0x7fffffffL, 1L, &setting, NULL);
	CALL(timer_gettime, 0x7fffffffL, BAD);
	CALL(timer_getoverrun, 0x7fffffffL);
	CALL(timer_delete, 0x7fffffffL);
	CALL(timer_delete, (long)id);
}

/* What changes the system needs rights that were given up before. */
static void system_wide(void)
{
	gid_t groups[2] = { 1, 2 };
	CALL(reboot, 1L, 2L, 3L, BAD);
	CALL(syslog, 99L, BAD, 5L);
	CALL(delete_module, "nosuch", O_NONBLOCK);
	CALL(setsid);
	CALL(setresgid, 65534L, 65534L, 65534L);
	CALL(setresuid, 65534L, 65534L, 65534L);
	CALL(setgroups, 2L, groups);
	CALL(sethostname, "name", 4L);
	CALL(setdomainname, "name", 4L);
	CALL(init_module, NULL, 0L, "");
	CALL(finit_module, NOFD, "", 1L);
	CALL(kexec_load, 5L, 1L, NULL, 9L);
	CALL(kexec_file_load, NOFD, 78L, 2L, "x", 9L);
	CALL(capset, BAD, BAD);
	CALL(vhangup);
	/* Without an implementation in any kernel of today. */
	CALL(_sysctl, BAD);
	CALL(afs_syscall, 1L, 2L);
	CALL(create_module, BAD, 5L);
	CALL(get_kernel_syms, BAD);
	CALL(getpmsg, 1L, 2L);
	CALL(nfsservctl, 1L, BAD, BAD);
	CALL(putpmsg, 1L, 2L);
	CALL(query_module, BAD, 1L, BAD, 5L, BAD);
	CALL(security, 1L, 2L);
	CALL(tuxcall, 1L, 2L);
	CALL(vserver, 1L, 2L);
}

void more_tasks(const char *mode)
{
	children();
	identities();
	programs();
	scheduling();
	signals();
	memory();
	clocks();
	system_wide();
	if (mode[0])
		CALL(exit, 7L);
	CALL(exit_group, 8L);
}

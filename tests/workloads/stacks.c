// All kinds of stacks that compilers and libraries create. The name of the innermost function identifies the kind.
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#define ALONE __attribute__((noinline, noclone))
#define BURN(name)                                                                                                     \
	ALONE void name(void)                                                                                          \
	{                                                                                                              \
		for (unsigned long i = 0; i < rounds; i++)                                                             \
			sink += i * i + __LINE__; /* All functions differ, so that the compiler does not merge them. */ \
	}

static volatile unsigned long sink;
static unsigned long rounds = 200000;

BURN(burn_leaf)
BURN(burn_deep)
BURN(burn_tail)
BURN(burn_alloca)
BURN(burn_realigned)
BURN(burn_jump)
BURN(burn_after_jump)
BURN(burn_handler)
BURN(burn_handler_elsewhere)
BURN(burn_compare)
BURN(burn_coroutine)
BURN(burn_thread)

ALONE int deep(int depth)
{
	if (depth == 0) {
		burn_deep();
		return 0;
	}
	int below = deep(depth - 1);
	__asm__ volatile("" : "+r"(below));
	return below + 1;
}

ALONE void tail_last(void)
{
	burn_tail();
	sink++;
}

ALONE void tail_first(void)
{
	sink++;
	tail_last();
}

ALONE void with_alloca(size_t size)
{
	char *bytes = alloca(size);
	memset(bytes, 1, size);
	burn_alloca();
	sink += bytes[size / 2];
}

ALONE void touch(void *aligned, void *variable)
{
	burn_realigned();
	__asm__ volatile("" ::"r"(aligned), "r"(variable) : "memory");
}

ALONE void realigned(size_t size)
{
	char aligned[64] __attribute__((aligned(64)));
	touch(aligned, alloca(size));
	sink++;
}

static jmp_buf place;

ALONE void jumps(void)
{
	burn_jump();
	longjmp(place, 1);
}

ALONE void with_jump(void)
{
	if (setjmp(place) == 0)
		jumps();
	burn_after_jump();
	sink++;
}

static void handler(int signal)
{
	(void)signal;
	burn_handler();
	sink++;
}

static void handler_elsewhere(int signal)
{
	(void)signal;
	burn_handler_elsewhere();
	sink++;
}

ALONE void interrupted(int signal)
{
	raise(signal);
	sink++;
}

static int compare(const void *left, const void *right)
{
	burn_compare();
	return *(const int *)left - *(const int *)right;
}

ALONE void through_library(void)
{
	int numbers[] = {3, 1, 2};
	qsort(numbers, 3, sizeof(int), compare);
	sink += numbers[0];
}

static ucontext_t outside, inside;
static char coroutine_stack[65536];

static void coroutine(void)
{
	burn_coroutine();
	sink++;
}

ALONE void with_coroutine(void)
{
	getcontext(&inside);
	inside.uc_stack.ss_sp = coroutine_stack;
	inside.uc_stack.ss_size = sizeof coroutine_stack;
	inside.uc_link = &outside;
	makecontext(&inside, coroutine, 0);
	swapcontext(&outside, &inside);
}

static long milliseconds(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// Sampling periods restart when a thread is scheduled in: with rounds of equal length all samples would be in the same place.
ALONE static void stagger(unsigned round)
{
	for (unsigned long i = 0; i < round % 16 * (rounds / 8); i++)
		sink += i;
}

// A thread that exits within its first period is never sampled, so it runs for several.
static void *in_thread(void *unused)
{
	do {
		burn_thread();
		sink++;
	} while (milliseconds(CLOCK_THREAD_CPUTIME_ID) < 3);
	return unused;
}

ALONE void with_thread(void)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, in_thread, NULL) == 0)
		pthread_join(thread, NULL);
}

static void on_own_stack(int signal)
{
	static char bytes[65536];
	stack_t stack = {.ss_sp = bytes, .ss_size = sizeof bytes};
	struct sigaction action = {.sa_handler = handler_elsewhere, .sa_flags = SA_ONSTACK};
	sigaltstack(&stack, NULL);
	sigaction(signal, &action, NULL);
}

int main(int count, char **words)
{
	// CPU time, because a busy machine runs the program for less of the wall-clock time.
	long end = milliseconds(CLOCK_PROCESS_CPUTIME_ID) + (count > 1 ? atol(words[1]) : 1000);
	signal(SIGUSR1, handler);
	on_own_stack(SIGUSR2);
	unsigned round = 0;
	do {
		stagger(round++);
		burn_leaf();
		sink += deep(30);
		tail_first();
		with_alloca(500);
		realigned(100);
		with_jump();
		interrupted(SIGUSR1);
		interrupted(SIGUSR2);
		through_library();
		with_coroutine();
		with_thread();
	} while (milliseconds(CLOCK_PROCESS_CPUTIME_ID) < end);
	return 0;
}

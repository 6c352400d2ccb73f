// Known call chains with frame pointers: main -> outer -> middle -> leaf, and a path through the C library.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noinline)) static void leaf(unsigned long rounds)
{
	for (unsigned long i = 0; i < rounds; i++)
		sink += i * i;
}

__attribute__((noinline)) void middle(unsigned long rounds)
{
	leaf(rounds);
	sink++;
}

__attribute__((noinline)) void outer(unsigned long rounds)
{
	middle(rounds);
	sink++;
}

static int compare(const void *a, const void *b)
{
	leaf(8);
	return memcmp(a, b, sizeof(int));
}

__attribute__((noinline)) void through_library(void)
{
	static int values[4096];

	for (int i = 0; i < 4096; i++)
		values[i] = (i * 7919) & 0xfff;
	qsort(values, 4096, sizeof(values[0]), compare);
}

__attribute__((noinline)) void system_calls(void)
{
	struct timespec now;
	char byte;

	for (int i = 0; i < 2000; i++) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		sink += getppid();
	}
	if (read(-1, &byte, 1) < 0)
		sink++;
	char *page = malloc(1 << 22);
	memset(page, 1, 1 << 22);
	free(page);
}

int main(int argc, char **argv)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	double milliseconds = argc > 1 ? atof(argv[1]) : 100;
	double end = now.tv_sec * 1e3 + now.tv_nsec / 1e6 + milliseconds;

	do {
		outer(100000);
		through_library();
		system_calls();
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec * 1e3 + now.tv_nsec / 1e6 < end);
	return 0;
}

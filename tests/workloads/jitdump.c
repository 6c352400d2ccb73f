// Code made at run time and written to jit-PID.dump, at addresses that are used again: jitdump DIR [MS]
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

// push %rbp; mov %rsp,%rbp; mov %edi,%ecx; 1: dec %ecx; jnz 1b; pop %rbp; ret
static const unsigned char loop_code[] = { 0x55, 0x48, 0x89, 0xe5, 0x89, 0xf9, 0xff, 0xc9,
					   0x75, 0xfc, 0x5d, 0xc3 };
static unsigned char *code;
static FILE *dump;
static uint64_t number;
static double phase;

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void words(uint32_t a, uint32_t b)
{
	uint32_t both[] = { a, b };

	fwrite(both, sizeof(both), 1, dump);
}

static void longs(const uint64_t *values, int count)
{
	fwrite(values, sizeof(*values), count, dump);
}

static void begin(uint32_t kind, uint32_t size)
{
	uint64_t time = now();

	words(kind, 16 + size);
	longs(&time, 1);
	words(getpid(), getpid());
}

// As runtimes do that keep code read-only: the kernel tells of each change as of a new mapping.
static void *put(int offset)
{
	mprotect(code, 4096, PROT_READ | PROT_WRITE);
	memcpy(code + offset, loop_code, sizeof(loop_code));
	mprotect(code, 4096, PROT_READ | PROT_EXEC);
	return code + offset;
}

static void load(const char *name, int offset)
{
	uint64_t at = (uintptr_t)put(offset);

	begin(0, 40 + strlen(name) + 1 + sizeof(loop_code));
	longs((uint64_t[]){ at, at, sizeof(loop_code), number++ }, 4);
	fwrite(name, strlen(name) + 1, 1, dump);
	fwrite(loop_code, sizeof(loop_code), 1, dump);
}

static void move(int moved, int from, int to)
{
	uint64_t old = (uintptr_t)code + from, at = (uintptr_t)put(to);

	begin(1, 48);
	longs((uint64_t[]){ at, old, at, sizeof(loop_code), moved }, 5);
}

static void run(int offset)
{
	double end = clock() + phase;

	while (clock() < end)
		((void (*)(int))(code + offset))(20000);
}

int main(int argc, char **argv)
{
	char path[4096];

	if (argc < 2)
		return 1;
	phase = (argc > 2 ? atof(argv[2]) : 60) * (CLOCKS_PER_SEC / 1000);
	snprintf(path, sizeof(path), "%s/jit-%d.dump", argv[1], getpid());
	dump = fopen(path, "w+");
	code = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!dump || code == MAP_FAILED)
		return 1;
	words(0x4a695444, 1);
	words(40, 62);
	words(0, getpid());
	longs((uint64_t[]){ now(), 0 }, 2);
	// Recorders see this mapping.
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0) == MAP_FAILED)
		return 1;
	load("interpreted", 0);
	run(0);
	load("compiled", 0);
	run(0);
	move(1, 0, 1024);
	load("another", 0);
	run(1024);
	run(0);
	load("overlapping", 8);
	load("interpreted", 0);
	run(0);
	return fclose(dump);
}

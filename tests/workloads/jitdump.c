// JIT code written to jit-PID.dump, at reused addresses, with source lines and unwind tables: jitdump DIR [MS]
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
// push %rbp; mov $1,%ebp; sub $16,%rsp; call *%rdi; add $16,%rsp; pop %rbp; ret
static const unsigned char calling_code[] = { 0x55, 0xbd, 0x01, 0x00, 0x00, 0x00, 0x48, 0x83, 0xec,
					      0x10, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3 };
// For tables that begin 24 bytes after the start of calling_code: .eh_frame (60 bytes), .eh_frame_hdr.
static const unsigned char calling_frames[] = {
	20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0,
	28, 0, 0, 0, 28, 0, 0, 0, 0xc8, 0xff, 0xff, 0xff, sizeof(calling_code), 0, 0, 0, 0,
	// After push, sub, add and pop.
	0x41, 0x0e, 16, 0x86, 2, 0x49, 0x0e, 32, 0x46, 0x0e, 16, 0x41, 0x0e, 8, 0,
	0, 0, 0, 0,
	1, 0x1b, 0x03, 0x3b, 0xc0, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0xac, 0xff, 0xff, 0xff, 0xdc, 0xff, 0xff, 0xff
};
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

// Like runtimes that keep code read-only: the kernel reports each change of protection as a new mapping.
static void *put(int offset, const void *bytes, int size)
{
	mprotect(code, 4096, PROT_READ | PROT_WRITE);
	memcpy(code + offset, bytes, size);
	mprotect(code, 4096, PROT_READ | PROT_EXEC);
	return code + offset;
}

static void load_bytes(const char *name, int offset, const void *bytes, int size)
{
	uint64_t at = (uintptr_t)put(offset, bytes, size);

	begin(0, 40 + strlen(name) + 1 + size);
	longs((uint64_t[]){ at, at, size, number++ }, 4);
	fwrite(name, strlen(name) + 1, 1, dump);
	fwrite(bytes, size, 1, dump);
}

static void load(const char *name, int offset)
{
	load_bytes(name, offset, loop_code, sizeof(loop_code));
}

// The source lines of the code that is loaded next, by offset.
static void lines(int offset, const char *file, int count, const int (*all)[2])
{
	uint64_t at = (uintptr_t)code + offset, time = now();

	words(2, 32 + count * (16 + strlen(file) + 1));
	longs((uint64_t[]){ time, at, count }, 3);
	for (int i = 0; i < count; i++) {
		longs((uint64_t[]){ at + all[i][0] }, 1);
		words(all[i][1], 0);
		fwrite(file, strlen(file) + 1, 1, dump);
	}
}

// The unwind tables of the code that is loaded next.
static void frames(const unsigned char *tables, uint64_t size)
{
	uint64_t time = now();

	words(4, 40 + size);
	longs((uint64_t[]){ time, size, 20, 0 }, 4);
	fwrite(tables, size, 1, dump);
}

static void move(int moved, int from, int to)
{
	uint64_t old = (uintptr_t)code + from, at = (uintptr_t)put(to, loop_code, sizeof(loop_code));

	begin(1, 48);
	longs((uint64_t[]){ at, old, at, sizeof(loop_code), moved }, 5);
}

static void run(int offset)
{
	double end = clock() + phase;

	while (clock() < end)
		((void (*)(int))(code + offset))(20000);
}

__attribute__((noinline)) static void called(void)
{
	double end = clock() + phase;

	while (clock() < end)
		for (volatile int i = 0; i < 20000; i++)
			;
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
	lines(2048, "/src/calling.js", 3, (const int[][2]){ { 0, 10 }, { 10, 12 }, { 12, 13 } });
	frames(calling_frames, sizeof(calling_frames));
	load_bytes("calling", 2048, calling_code, sizeof(calling_code));
	((void (*)(void (*)(void)))(code + 2048))(called);
	lines(3072, "/src/loop.js", 3, (const int[][2]){ { 0, 20 }, { 6, 22 }, { 10, 23 } });
	load("looping", 3072);
	run(3072);
	return fclose(dump);
}

// JIT code listed in /tmp/perf-PID.map, and JIT code that is not listed.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

// push %rbp; mov %rsp,%rbp; mov %edi,%ecx; 1: dec %ecx; jnz 1b; pop %rbp; ret
static const unsigned char loop_code[] = { 0x55, 0x48, 0x89, 0xe5, 0x89, 0xf9, 0xff, 0xc9,
					   0x75, 0xfc, 0x5d, 0xc3 };

int main(int argc, char **argv)
{
	double end = clock() + (argc > 1 ? atof(argv[1]) : 100) * (CLOCKS_PER_SEC / 1000);
	int listed = argc > 2 ? atoi(argv[2]) : 1;
	unsigned char *code = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char name[64];

	if (code == MAP_FAILED)
		return 1;
	for (int i = 0; i < 4; i++)
		memcpy(code + 1024 * i, loop_code, sizeof(loop_code));
	if (listed) {
		snprintf(name, sizeof(name), "/tmp/perf-%d.map", getpid());
		FILE *map = fopen(name, "w");
		if (!map)
			return 1;
		fprintf(map, "%lx %zx jitted first\n", (long)code, sizeof(loop_code));
		fprintf(map, "%lx %zx Lcom/example/Second;::run(I)V\n", (long)code + 1024,
			sizeof(loop_code));
		fprintf(map, "0x%lx 0x%zx third\n", (long)code + 2048, sizeof(loop_code));
		fclose(map);
	}
	while (clock() < end)
		for (int i = 0; i < 4; i++)
			((void (*)(int))(code + 1024 * i))(20000);
	return 0;
}

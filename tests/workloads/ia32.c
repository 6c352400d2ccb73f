// A 32-bit program that needs no library: its system calls are its own.
#define ALONE __attribute__((noinline, noclone))

static volatile unsigned long sink;

ALONE void burn(void)
{
	for (unsigned long i = 0; i < 20000000; i++)
		sink += i;
}

ALONE int deep(int depth)
{
	if (depth == 0) {
		burn();
		return 0;
	}
	int below = deep(depth - 1);
	__asm__ volatile("" : "+r"(below));
	return below + 1;
}

ALONE void with_alloca(int size)
{
	char *bytes = __builtin_alloca(size);
	burn();
	__asm__ volatile("" ::"r"(bytes) : "memory");
}

__attribute__((noreturn, used)) void run(void)
{
	for (int i = 0; i < 3; i++) {
		sink += deep(8);
		with_alloca(100);
	}
	// exit(2)
	__asm__ volatile("int $0x80" ::"a"(1), "b"(0));
	__builtin_unreachable();
}

__asm__(".globl _start\n"
	"_start:\n"
	".cfi_startproc\n"
	".cfi_undefined eip\n"
	"call run\n"
	"hlt\n"
	".cfi_endproc\n");

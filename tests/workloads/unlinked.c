// A program whose file is deleted while it runs.
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) static void busy(void)
{
	for (volatile int i = 0; i < 100000; i++)
		;
}

int main(int argc, char **argv)
{
	double end = clock() + (argc > 1 ? atof(argv[1]) : 100) * (CLOCKS_PER_SEC / 1000);

	unlink(argv[0]);
	while (clock() < end)
		busy();
	return 0;
}

/* Recurses to the depth of the argument, then works for half a second of CPU time. */
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

__attribute__((noinline)) static void work(void)
{
	while (clock() < CLOCKS_PER_SEC / 2)
		for (unsigned long i = 0; i < 10000; i++)
			sink += i;
}

__attribute__((noinline)) static int below(int depth)
{
	if (depth == 0)
		work();
	else
		sink += (unsigned long)below(depth - 1);
	return depth + 1;
}

int main(int count, char **words)
{
	return below(count > 1 ? atoi(words[1]) : 0) == 0;
}

/* Variables with the same name in several blocks and inlined functions, constant values, and a call of a library function. */
#include <stdio.h>
#include <unistd.h>

int sum = 1;

static inline int inner(int n)
{
	int t = n * 3;
	sum += t;
	return t + 1;
}

/* Its code begins with the inlined code of inner, which has its own n. */
__attribute__((noinline)) int first(int n)
{
	return inner(n + 5);
}

/* The code of the block with its own n may begin at the function's entry. */
__attribute__((noinline)) int shadow(int n)
{
	sum += n;
	{
		int n = sum * 7;
		sum ^= n;
	}
	return sum;
}

__attribute__((noinline)) int known(int n)
{
	int byte = 200;
	unsigned char small = 200;
	int minus = -5;
	sum += n;
	if (sum > 3)
		sum += byte + small;
	return n + byte + small + minus;
}

__attribute__((noinline)) int wordy(int a_name_that_is_longer_than_what_kernels_take)
{
	sum += a_name_that_is_longer_than_what_kernels_take;
	return sum;
}

__attribute__((noinline)) int named(int n)
{
	sum += n;
	return sum;
}

int other_name(int n) __attribute__((alias("named")));

static int chosen_sse2(int n) { return n + 1; }

static int (*choose(void))(int) { return chosen_sse2; }

int chosen(int n) __attribute__((ifunc("choose")));

int main(void)
{
	for (int i = 1; i <= 3; i++) {
		printf("first: n=%d\n", i);
		first(i);
		printf("shadow: n=%d\n", i + 10);
		shadow(i + 10);
		printf("known: n=%d before=%d\n", i + 20, sum);
		int back = known(i + 20);
		printf("after: sum=%d ret=%d\n", sum, back);
		printf("wordy: n=%d\n", i);
		wordy(i);
		printf("named: n=%d\n", i + 30);
		other_name(i + 30);
		sum += chosen(i) > 0;
		sum += getpid() > 0;
	}
	return 0;
}

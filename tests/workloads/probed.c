/* Prints the values that probes record: `leaf: n=10`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum color { RED, GREEN };

struct inner {
	short a;
	int b[4];
};

struct item {
	int id;
	unsigned flag : 3;
	unsigned mode : 5;
	char *name;
	long val;
	struct inner in;
	struct item *next;
	char tag[8];
	int grid[2][3];
	union {
		int u;
		float f;
	};
};

long total = 3, zeroed;
static int hidden = 5;

static inline long twice(long v)
{
	long r = v * 2;
	total += hidden;
	return r;
}

__attribute__((noinline)) long leaf(long n)
{
	long s = 0;
	for (long i = 0; i < n; i++)
		s += i * n;
	return s;
}

__attribute__((noinline)) long middle(struct item *it, int count)
{
	long s = leaf(it->val);

	total += s;
	s += twice(count);
	return s + count;
}

__attribute__((noinline)) long other(long n)
{
	return twice(n) + twice(n + 1);
}

__attribute__((noinline)) double mix(double d, enum color c, const char *text, unsigned char small)
{
	char buffer[16];
	snprintf(buffer, sizeof buffer, "%s%d", text, (int)c);
	return d + small + strlen(buffer);
}

int main(int argc, char **argv)
{
	struct item it = { .id = 7, .flag = 5, .mode = 9, .name = "alpha", .tag = "tagged" };
	it.in.b[2] = 42;
	it.in.a = 4;
	it.u = 31, zeroed = 77;
	it.grid[1][2] = 66;
	it.next = &it;
	int rounds = argc > 1 ? atoi(argv[1]) : 1;
	for (int i = 0; i < rounds; i++) {
		it.val = 10 + i;
		printf("leaf: n=%ld\n", it.val);
		printf("middle: name=\"%s\" val=%ld count=%d flag=%d mode=%d b=%d tag=\"%s\"\n", it.name,
		       it.val, i + 1, it.flag, it.mode, it.in.b[2], it.tag);
		printf("global: total=%ld\n", total);
		printf("back: ret=%ld\n", middle(&it, i + 1));
		other(i);
		printf("more: round=%d leaf=%ld id=%d a=%d u=%d grid=%d hidden=%d\n", i,
		       it.val * it.val * (it.val - 1) / 2, it.id, it.in.a, it.u, it.grid[1][2], hidden);
		printf("mix: c=%d text=\"%s\" small=%d\n", GREEN, "text", 200);
		mix(1.5, GREEN, "text", 200);
	}
	return 0;
}

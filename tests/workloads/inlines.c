/* Functions that are inlined into each other, and tables of them. */
#include <stdio.h>
#include <stdlib.h>

struct pair {
    int key;
    int value;
};

static inline int clamp(int x) { return x < 0 ? 0 : x; }
static inline int twice(int x) { return 2 * clamp(x - 3); }
static inline unsigned mix(unsigned x) {
    for (int i = 0; i < 8; i++) x ^= (x << 7) + i;
    return x;
}

static int by_key(const void *a, const void *b) {
    const struct pair *x = a, *y = b;
    return twice(x->key) - twice(y->key);
}

__attribute__((noinline)) int once(unsigned seed) {
    static struct pair pairs[512];
    int sum = 0;
    for (int i = 0; i < 512; i++) {
        seed = mix(seed + i);
        pairs[i].key = seed >> 16;
        pairs[i].value = twice(seed & 255);
    }
    qsort(pairs, 512, sizeof *pairs, by_key);
    for (int i = 0; i < 512; i++) sum += clamp(pairs[i].value - i);
    return sum;
}

int main(void) {
    long sum = 0;
    for (unsigned i = 1; i < 3000; i++) sum += once(i);
    printf("%ld\n", sum);
    return 0;
}

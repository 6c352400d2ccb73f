// A function that the compiler clones for its callers: scaled.constprop.0.
static __attribute__((noinline)) int scaled(int value, int by)
{
    volatile int sum = 0;
    for (int i = 0; i < value; i++)
        sum += by;
    return sum;
}

int main(int argc, char **argv)
{
    (void)argv;
    return scaled(argc, 7) + scaled(argc + 1, 7);
}

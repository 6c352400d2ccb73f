// A program to record: inlined functions, callers, a long name that mutations overwrite, and some system calls. workload [ROUNDS]
#include <cstdlib>
#include <unistd.h>

namespace shapes {
template <typename T> struct Sum {
    T value;
    __attribute__((always_inline)) void add(T more) { value += more; }
};
} // namespace shapes

static volatile long total;

extern "C" __attribute__((noinline)) void a_function_whose_name_has_room_for_the_names_of_files_that_lead_elsewhere(long n) {
    shapes::Sum<long> sum = {0};
    for (long i = 0; i < n; i++) {
        sum.add(i * 3);
        total = sum.value;
    }
}

__attribute__((noinline)) static long recursive(int depth, long n) {
    if (depth > 0)
        return recursive(depth - 1, n) + 1;
    a_function_whose_name_has_room_for_the_names_of_files_that_lead_elsewhere(n);
    return total;
}

int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 10;
    for (long i = 0; i < rounds; i++) {
        recursive(i % 5, 200000);
        usleep(100);
        if (write(1, "", 0) < 0)
            return 1;
    }
    return 0;
}

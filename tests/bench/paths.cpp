// A call graph of 2,000 functions, each of which calls any other: two threads walk random paths through it, so that
// nearly every stack is distinct. A path is MIN_DEPTH to MAX_DEPTH calls deep (most are short) and takes microseconds.
// Build: g++ -O2 -g -fno-omit-frame-pointer -pthread paths.cpp -o paths;  run: ./paths SECONDS MIN_DEPTH MAX_DEPTH [FUNCTIONS]
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <utility>

using Clock = std::chrono::steady_clock;
constexpr unsigned all = 2000;

struct Walk {
    uint64_t state;
    unsigned functions;
    uint64_t next() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state;
    }
};

using Function = uint64_t (*)(Walk&, unsigned);
extern const Function* const functions;

template <unsigned Number> __attribute__((noinline)) uint64_t function(Walk& walk, unsigned depth) {
    if (depth > 0) return functions[walk.next() % walk.functions](walk, depth - 1) + Number;
    uint64_t total = Number;
    for (unsigned i = 0; i < 4000; ++i) total = total * 31 + walk.next();
    return total;
}

template <unsigned... Numbers> const Function* table(std::integer_sequence<unsigned, Numbers...>) {
    static const Function made[] = {function<Numbers>...};
    return made;
}

const Function* const functions = table(std::make_integer_sequence<unsigned, all>());

static unsigned number(int count, char** words, int at, unsigned otherwise) {
    return at < count ? static_cast<unsigned>(std::atoi(words[at])) : otherwise;
}

int main(int count, char** words) {
    auto end = Clock::now() + std::chrono::seconds(number(count, words, 1, 10));
    unsigned least = number(count, words, 2, 8), most = number(count, words, 3, 60);
    unsigned some = number(count, words, 4, all);
    if (most < least || some == 0 || some > all) return 1;
    auto wander = [=](uint64_t seed) {
        Walk walk{seed, some};
        volatile uint64_t sink = 0;
        while (Clock::now() < end) {
            uint64_t depth = most;
            for (int i = 0; i < 8; ++i) depth = std::min(depth, least + walk.next() % (most - least + 1));
            sink = sink + functions[walk.next() % some](walk, static_cast<unsigned>(depth));
        }
    };
    std::thread other(wander, 1);
    wander(2);
    other.join();
}

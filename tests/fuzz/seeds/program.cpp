// A small program with varied debug information: inlined functions, members, bit fields, location lists, USDT probes.

#if __SIZEOF_POINTER__ == 8
#define WORD ".8byte"
#else
#define WORD ".4byte"
#endif

namespace shapes {

struct Node {
    Node *next;
    char name[8];
    int number;
    unsigned bits : 5, more : 11;
    struct {
        union {
            long a;
            double b;
        };
    };
};

template <typename T> struct Pair {
    T first, second;
    T sum() const { return first + second; }
};

enum Kind { Round, Square = 7 };

} // namespace shapes

using shapes::Node;

static volatile int total;
static thread_local int own;
const char *text = "text";

static inline __attribute__((always_inline)) int leaf(int n, const Node *it) {
    int twice = n * 2;
    total += twice;
    return twice + it->number + it->bits;
}

__attribute__((noinline)) int work(Node *it, int count, shapes::Kind kind) {
    int sum = 0;
    for (int i = 0; i < count; i++) {
        int step = leaf(i, it);
        sum += step + kind;
        asm volatile("990: nop\n"
                     ".pushsection .note.stapsdt,\"\",\"note\"\n"
                     ".balign 4\n.4byte 992f-991f,994f-993f,3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"
                     "993: " WORD " 990b,0,0\n.asciz \"demo\"\n.asciz \"tick\"\n.asciz \"-4@%0 8@%1 4@$5\"\n994: .balign 4\n"
                     ".popsection\n" ::"r"(step), "m"(it->next));
    }
    shapes::Pair<long> pair = {sum, count};
    own = sum;
    return pair.sum() + (it->next ? work(it->next, count - 1, kind) : 0);
}

extern "C" int walk(int count) {
    Node last = {nullptr, "last", 1, 2, 3, {{4}}};
    Node first = {&last, "first", 5, 6, 7, {{8}}};
    return work(&first, count, shapes::Square);
}

extern "C" void _start() {
    walk(3);
    for (;;) {
    }
}

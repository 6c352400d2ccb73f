// Functions that a compiler inlines into each other: templates, lambdas, algorithms, several levels deep.
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

namespace app {
struct Node {
    int key;
    double weight;
};

template <class T> static inline T mix(T a, T b) {
    T mixed = a * 31 + b;
    for (int i = 0; i < 20; i++) mixed ^= (mixed << 7) + i;
    return mixed;
}

class Work {
public:
    explicit Work(unsigned n) : nodes(n) {}
    inline void fill(unsigned seed) {
        for (auto &node : nodes) {
            seed = mix<unsigned>(seed, 17u);
            node.key = seed;
            node.weight = seed / 3.0;
        }
    }
    void sort() {
        std::sort(nodes.begin(), nodes.end(), [](const Node &a, const Node &b) { return a.key < b.key; });
    }
    double sum() const {
        return std::accumulate(nodes.begin(), nodes.end(), 0.0, [](double a, const Node &node) { return a + node.weight; });
    }

private:
    std::vector<Node> nodes;
};
}

static inline int clamp(int x) { return x < 0 ? 0 : x; }
static inline int twice(int x) { return 2 * clamp(x - 3); }

__attribute__((noinline)) int letters(const std::string &text) {
    int sum = 0;
    for (char c : text) sum += twice(c);
    return sum;
}

__attribute__((noinline)) double once(unsigned i) {
    app::Work work(200);
    work.fill(i);
    work.sort();
    return work.sum() + letters(std::to_string(i));
}

int main(int argc, char **) {
    double total = 0;
    for (unsigned i = 0; i < 400u * argc; i++) total += once(i);
    std::printf("%f\n", total);
}

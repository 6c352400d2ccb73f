// A C++ load in two threads: template comparators under std::sort, regular expressions, maps of strings, virtual
// calls, a recursive-descent reader of random documents and an interpreter of random expressions, whose nodes are
// dozens of template instances. The last two walk other call paths with every tree: tens of thousands of distinct ones.
// Build: g++ -O2 -g -fno-omit-frame-pointer -pthread load.cpp -o load;  run: ./load SECONDS
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <regex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#define OUTLINE __attribute__((noinline))
using Clock = std::chrono::steady_clock;
using Random = std::mt19937;

// Binary search trees: one function that calls itself, to a depth of some twenty.
struct Node {
    int key;
    std::unique_ptr<Node> left, right;
    explicit Node(int k) : key(k) {}
};

OUTLINE void insert(std::unique_ptr<Node>& at, int key) {
    if (!at) at = std::make_unique<Node>(key);
    else if (key < at->key) insert(at->left, key);
    else if (key > at->key) insert(at->right, key);
}

OUTLINE long sum(const std::unique_ptr<Node>& at) { return at ? at->key + sum(at->left) + sum(at->right) : 0; }

// Sorting: an instance of introsort and its heap for every type and comparator.
template <int Kind> struct Order {
    template <typename T> OUTLINE bool operator()(const T& a, const T& b) const {
        if constexpr (Kind == 0) return a < b;
        else if constexpr (Kind == 1) return b < a;
        else return std::hash<T>{}(a) < std::hash<T>{}(b);
    }
};

template <typename T, int Kind> OUTLINE void sort_as(std::vector<T> values) {
    std::sort(values.begin(), values.end(), Order<Kind>());
    std::make_heap(values.begin(), values.end(), Order<(Kind + 1) % 3>());
}

template <typename T> OUTLINE void sort_all(const std::vector<T>& values) {
    sort_as<T, 0>(values);
    sort_as<T, 1>(values);
    sort_as<T, 2>(values);
}

// Expressions: every kind of node is a class of its own, evaluated through a virtual call.
struct Expression {
    virtual ~Expression() = default;
    virtual double value(double x) const = 0;
    virtual unsigned hash(unsigned seed) const = 0;
};
using Tree = std::unique_ptr<Expression>;

Tree grow(Random& random, int depth);

template <unsigned Kind> OUTLINE double combine(double a, double b) {
    switch (Kind % 4) {
    case 0: return a + b * Kind;
    case 1: return a - std::sqrt(std::abs(b));
    case 2: return a * 0.5 + std::fmod(b, Kind + 1.5);
    default: return a < b ? std::sin(a) : b;
    }
}

template <unsigned Kind> struct Term : Expression {
    Tree left, right;
    Term(Random& random, int depth) : left(grow(random, depth - 1)), right(grow(random, depth - 1)) {}
    OUTLINE double value(double x) const override {
        double a = left ? left->value(x + Kind) : x;
        double b = right ? right->value(a) : Kind;
        return combine<Kind>(a, b);
    }
    OUTLINE unsigned hash(unsigned seed) const override {
        unsigned a = left ? left->hash(seed * 31 + Kind) : seed;
        return right ? right->hash(a ^ Kind) + a : a * 2654435761u;
    }
};

template <unsigned... Kinds> Tree make(Random& random, int depth, std::integer_sequence<unsigned, Kinds...>) {
    using Maker = Tree (*)(Random&, int);
    static const Maker makers[] = {[](Random& r, int d) -> Tree { return std::make_unique<Term<Kinds>>(r, d); }...};
    return makers[random() % sizeof...(Kinds)](random, depth);
}

Tree grow(Random& random, int depth) {
    if (depth <= 0 || random() % 8 == 0) return nullptr;
    return make(random, depth, std::make_integer_sequence<unsigned, 16>());
}

// Documents: text of nested lists and objects, written and read by functions that call each other.
OUTLINE void write_value(Random& random, std::string& to, int depth) {
    unsigned kind = depth == 0 ? random() % 2 : random() % 4;
    if (kind == 0) to += std::to_string(random() % 100000);
    else if (kind == 1) to.append("\"word").append(std::to_string(random() % 50)).append("\"");
    else {
        to += kind == 2 ? '[' : '{';
        for (unsigned i = 0, n = 1 + random() % 4; i < n; ++i) {
            if (i > 0) to += ',';
            if (kind == 3) to.append("\"key").append(std::to_string(random() % 20)).append("\":");
            write_value(random, to, depth - 1);
        }
        to += kind == 2 ? ']' : '}';
    }
}

struct Reader {
    const std::string& text;
    std::size_t at = 0;
    std::map<std::string, long> seen;

    OUTLINE long value() {
        switch (text[at]) {
        case '[': return list();
        case '{': return object();
        case '"': return seen[string()]++;
        default: return number();
        }
    }
    OUTLINE long list() {
        long total = 0;
        do {
            ++at;
            total += value();
        } while (text[at] == ',');
        ++at;
        return total;
    }
    OUTLINE long object() {
        std::map<std::string, long> fields;
        do {
            ++at;
            std::string key = string();
            ++at;
            fields[key] += value();
        } while (text[at] == ',');
        ++at;
        return std::max_element(fields.begin(), fields.end(), Order<0>()) == fields.end() ? 0 : fields.begin()->second;
    }
    OUTLINE std::string string() {
        std::size_t end = text.find('"', at + 1);
        std::string found = text.substr(at + 1, end - at - 1);
        at = end + 1;
        return found;
    }
    OUTLINE long number() {
        long found = 0;
        for (; text[at] >= '0' && text[at] <= '9'; ++at) found = found * 10 + (text[at] - '0');
        return found;
    }
};

OUTLINE std::size_t match_some(const std::string& text) {
    static const std::regex patterns[] = {std::regex("([a-z]+)([0-9]+)(,|\\])+"), std::regex("\\{(\"key1[0-9]\":[^,]*,?)+")};
    std::size_t found = 0;
    for (const auto& pattern : patterns) {
        std::smatch match;
        if (std::regex_search(text, match, pattern)) found += match.size();
    }
    return found;
}

void work(Clock::time_point end, unsigned seed) {
    Random random(seed);
    volatile double sink = 0;
    while (Clock::now() < end) {
        std::vector<double> doubles(300);
        std::vector<std::string> words(100);
        std::string text;
        for (auto& each : doubles) each = static_cast<double>(random());
        for (auto& each : words) each = "name" + std::to_string(random() % 1000);
        sort_all(doubles);
        sort_all(words);
        write_value(random, text, 6);
        sink = sink + Reader{text, 0, {}}.value() + match_some(text.substr(0, 200));
        std::unique_ptr<Node> tree;
        for (int i = 0; i < 100; ++i) insert(tree, static_cast<int>(random() % 100000));
        Tree expression = grow(random, 5);
        for (int i = 0; expression && i < 30; ++i) sink = sink + expression->value(i) + expression->hash(i) + sum(tree);
    }
}

int main(int argc, char** argv) {
    auto end = Clock::now() + std::chrono::seconds(argc > 1 ? std::atoi(argv[1]) : 10);
    std::thread other(work, end, 1u);
    work(end, 2u);
    other.join();
}

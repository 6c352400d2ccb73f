// A C++ load with templates, virtual calls, recursion, regular expressions and sorting, in two
// threads, so that recorded stacks are many and differ in depth.
// Build: g++ -O2 -g -fno-omit-frame-pointer -pthread load.cpp -o load;  run: ./load SECONDS
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <regex>
#include <string>
#include <thread>
#include <vector>

using Clock = std::chrono::steady_clock;

struct Node {
    int key;
    std::unique_ptr<Node> left, right;
    explicit Node(int k) : key(k) {}
};

__attribute__((noinline)) void insert(std::unique_ptr<Node>& at, int key) {
    if (!at) at = std::make_unique<Node>(key);
    else if (key < at->key) insert(at->left, key);
    else if (key > at->key) insert(at->right, key);
}

__attribute__((noinline)) long sum(const std::unique_ptr<Node>& at) {
    return at ? at->key + sum(at->left) + sum(at->right) : 0;
}

struct Shape {
    virtual ~Shape() = default;
    virtual double area(int depth) const = 0;
};
struct Square : Shape {
    double side = 2;
    __attribute__((noinline)) double area(int depth) const override {
        return depth == 0 ? side * side : area(depth - 1) * 0.5 + side;
    }
};
struct Circle : Shape {
    double radius = 3;
    __attribute__((noinline)) double area(int depth) const override {
        double total = 0;
        for (int i = 0; i < 3; ++i) total += depth == 0 ? 3.14159 * radius * radius : area(depth - 1) / 3;
        return total;
    }
};

template <typename T>
__attribute__((noinline)) void sort_some(std::mt19937& random, std::vector<T>& values) {
    for (auto& value : values) value = static_cast<T>(random());
    std::sort(values.begin(), values.end(), [](const T& a, const T& b) { return a > b; });
}

__attribute__((noinline)) std::size_t match_some(const std::vector<std::string>& lines) {
    static const std::regex pattern("([a-z]+)_([0-9]+)(x|yz)*");
    std::size_t found = 0;
    for (const auto& line : lines) {
        std::smatch match;
        if (std::regex_search(line, match, pattern)) found += match.size();
    }
    return found;
}

void work(Clock::time_point end, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<double> doubles(3000);
    std::vector<int> ints(3000);
    std::vector<std::string> lines;
    for (int i = 0; i < 60; ++i) lines.push_back("some words then name_" + std::to_string(i) + "xyzx");
    volatile double sink = 0;
    while (Clock::now() < end) {
        sort_some(random, doubles);
        sort_some(random, ints);
        std::unique_ptr<Node> tree;
        for (int i = 0; i < 2000; ++i) insert(tree, static_cast<int>(random() % 100000));
        std::map<std::string, int> counts;
        for (int i = 0; i < 500; ++i) counts[lines[random() % lines.size()]]++;
        sink = sink + sum(tree) + match_some(lines) + counts.size();
        std::unique_ptr<Shape> shapes[] = {std::make_unique<Square>(), std::make_unique<Circle>()};
        for (auto& shape : shapes) sink = sink + shape->area(7);
    }
}

int main(int argc, char** argv) {
    auto end = Clock::now() + std::chrono::seconds(argc > 1 ? std::atoi(argv[1]) : 10);
    std::thread other(work, end, 1u);
    work(end, 2u);
    other.join();
}

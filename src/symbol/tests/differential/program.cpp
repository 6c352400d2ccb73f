// C++ names of many kinds: templates, lambdas, local classes, conversions, thunks. With -DSHARED, a library.
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace shapes {
template <class T> struct Box {
    T value;
    Box(T v) : value(v) {}
    T get() const { return value; }
    operator bool() const { return value != 0; }
    template <class U> U plus(U u) { return u + value; }
};

template <int N, class... Values> int count(Values...) { return N + sizeof...(Values); }
}

namespace {
struct Hidden {
    virtual ~Hidden() {}
    virtual int weight(int) const { return 1; }
};
}

struct Base {
    virtual ~Base() {}
    virtual int twice(int) = 0;
};
struct Derived : virtual Base {
    int twice(int x) override { return 2 * x; }
};

enum class Colour { red, green };

template <class F> __attribute__((noinline)) int call(F f) { return f(3); }
template <Colour C> int by_colour() { return static_cast<int>(C); }
template <bool B> int by_truth() { return B; }
template <unsigned long N> int by_number() { return N; }
template <class T, T V> T constant() { return V; }
int negate(int x) { return -x; }
template <int (*F)(int)> int by_function() { return F(1); }
template <int (shapes::Box<int>::*M)() const> int by_member() { return 1; }
template <class T> auto member_of(T t) -> decltype(t.get()) { return t.get(); }
template <class T, int N> int length(T (&)[N]) { return N; }

auto generic = [](auto x) { return x + 1; };

static int with_local_class(int) {
    struct Local {
        int operator()(int x) { return 2 * x; }
    };
    return call(Local());
}

// Overlapping symbols, and symbols at the same address: perf's rules decide which name is shown.
asm(".text\n"
    ".globl outer\n.type outer,@function\nouter: nop\nnop\nnop\n"
    ".globl inner\n.type inner,@function\ninner: nop\nnop\n.size inner,2\n"
    ".globl label\nlabel: nop\nnop\n.size outer,9\nnop\nnop\n"
    ".globl __twin\n.type __twin,@function\n.globl twin\n.type twin,@function\n"
    ".weak weak_twin\n.type weak_twin,@function\n.type local_twin,@function\n"
    ".globl sizeless_twin\n"
    "__twin: twin: weak_twin: local_twin: sizeless_twin: nop\nnop\n"
    ".size __twin,2\n.size twin,2\n.size weak_twin,2\n.size local_twin,2\n");

extern "C" {
static void chosen() {}
static void (*choose(void))(void) { return chosen; }
void indirect(void) __attribute__((ifunc("choose")));
}

#ifdef SHARED
#define main exported
#endif

int main(int argc, char **) {
    shapes::Box<int> box(argc);
    std::vector<std::string> words;
    words.push_back("a");
    std::map<int, std::string> names;
    names[1] = "x";
    std::function<int(int)> add = [&](int x) { return x + argc; };
    Derived derived;
    Hidden hidden;
    int row[4] = {};
    int sum = box.get() + box.plus(2L) + shapes::count<3>(1, 'a', 2.0) + call(generic) + with_local_class(argc);
    sum += call([argc](int y) { return y + argc; }) + add(2) + derived.twice(1) + hidden.weight(2);
    sum += by_colour<Colour::green>() + by_truth<true>() + by_number<5>() + by_function<negate>();
    sum += by_member<&shapes::Box<int>::get>() + constant<char, 'x'>() + constant<unsigned, 7>();
    sum += member_of(box) + static_cast<bool>(box) + length(row);
    indirect();
    return std::printf("%d\n", sum) < 0;
}

// Prints the values that probes record: `area: x_=5`.
#include <cstdio>

namespace geo {

struct Base {
	int tag = 3;
};

class Point : public Base {
public:
	Point(int x, long y) : x_(x), y_(y) {}
	__attribute__((noinline)) long area(int scale) const { return x_ * y_ * scale; }

	int x_;
	long y_;
};

int shared = 11;

__attribute__((noinline)) long sum(const Point &p, const char *label)
{
	long total = p.area(2);
	shared++;
	return total + p.x_ + label[0];
}

__attribute__((noinline)) long sum(int n)
{
	return n * 7L;
}

template <typename T> __attribute__((noinline)) T twice(T value)
{
	return value + value;
}

} // namespace geo

int main()
{
	geo::Point p(5, 6);
	printf("area: x_=%d tag=%d scale=%d ret=%ld\n", p.x_, p.tag, 2, p.x_ * p.y_ * 2);
	printf("sum: x_=%d label=\"%s\"\n", p.x_, "first");
	long got = geo::sum(p, "first");
	printf("number: n=%d ret=%d\n", 4, 28);
	got += geo::sum(4);
	got += geo::twice(3) + geo::twice(9L);
	return got == 0;
}

// Names that need demangling: templates, operators, lambdas, anonymous namespaces, std containers.
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace geometry {
template <typename T, int N> struct Grid {
	std::vector<T> cells = std::vector<T>(N, T{1});

	__attribute__((noinline)) T operator()(int seed) const
	{
		T sum{};
		for (int round = 0; round < 100; round++)
			for (const T &cell : cells)
				sum += cell * seed;
		return sum;
	}
};

namespace {
__attribute__((noinline)) double hidden(const std::map<std::string, double> &areas)
{
	double sum = 0;
	for (const auto &[name, area] : areas)
		sum += area * name.size();
	return sum;
}
} // namespace
} // namespace geometry

struct Shape {
	virtual ~Shape() = default;
	virtual double area(const std::function<double(double)> &scale) const = 0;
};

struct Disc final : Shape {
	__attribute__((noinline)) double area(const std::function<double(double)> &scale) const override
	{
		double sum = 0;
		for (int i = 0; i < 10000; i++)
			sum += scale(i);
		return sum;
	}
};

int main(int argc, char **argv)
{
	double end = clock() + (argc > 1 ? atof(argv[1]) : 100) * (CLOCKS_PER_SEC / 1000);
	volatile double sink = 0;
	std::map<std::string, double> areas;
	std::vector<std::string> words;

	for (int i = 0; i < 200; i++)
		areas["shape number " + std::to_string(i)] = i;
	while (clock() < end) {
		sink = sink + geometry::Grid<double, 1000>{}(3) + geometry::Grid<long, 500>{}(5);
		sink = sink + geometry::hidden(areas);
		Disc disc;
		sink = sink + disc.area([&](double x) { return x * sink; });
		words.clear();
		for (int i = 0; i < 1000; i++)
			words.push_back(std::to_string(i * 7919));
		std::sort(words.begin(), words.end(), [](const auto &a, const auto &b) { return a > b; });
	}
	return 0;
}

// Lower bound for any reader: maps a recording, sums its bytes, and walks its record headers on one core.
// Build: g++ -O2 limit.cpp -o limit;  run: ./limit perf.data;  prints seconds of each, and the number of records.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

using Clock = std::chrono::steady_clock;

static double since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

int main(int count, char** words) {
    int file = count == 2 ? open(words[1], O_RDONLY) : -1;
    struct stat found;
    if (file < 0 || fstat(file, &found) != 0 || found.st_size < 104) return 1;
    size_t size = found.st_size;
    auto* bytes = static_cast<const unsigned char*>(mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0));
    if (bytes == MAP_FAILED) return 1;
    auto start = Clock::now();
    uint64_t sum = 0;
    for (size_t at = 0; at + 8 <= size; at += 8) {
        uint64_t word;
        memcpy(&word, bytes + at, 8);
        sum += word;
    }
    double summing = since(start);
    uint64_t at, length;
    memcpy(&at, bytes + 40, 8);
    memcpy(&length, bytes + 48, 8);
    uint64_t end = at + length < size ? at + length : size, records = 0;
    start = Clock::now();
    while (at + 8 <= end) {
        uint16_t record;
        memcpy(&record, bytes + at + 6, 2);
        if (record < 8) break;
        at += record;
        records++;
    }
    printf("%.4f %.4f %llu %llx\n", summing, since(start), (unsigned long long)records, (unsigned long long)sum);
}

// Writes a recording that is COPIES times as long: repeats the rounds of the input, with the times of each copy (those of
// samples and of the sample_id trailers of other records) shifted past the copy before.
// Records without a time (synthesized at the start of the recording) and records that describe the file are only in the first copy.
// Build: g++ -O2 -Wall repeat.cpp -o repeat;  run: ./repeat COPIES perf.data TO
// Layouts: perf.data-file-format.txt of Linux, perf_event_open(2). Files of this machine's byte order that are neither
// compressed nor piped, with times at the same offset in all events.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <vector>

struct Section {
    uint64_t offset, size;
};
struct FileHeader {
    char magic[8];
    uint64_t size, attr_size;
    Section attrs, data, types;
    uint64_t features[4];
};
struct RecordHeader {
    uint32_t type;
    uint16_t misc, size;
};

// Types of records.
enum { sample = 9, user_types = 64, finished_round = 68, auxtrace = 71, compressed = 81, compressed2 = 83 };
// Header features.
enum { sample_time = 21 };
// Bits of sample_type and of the flags of an attr.
enum { ip = 1, tid = 2, time_bit = 4, address = 8, id = 64, cpu = 128, stream_id = 512, identifier = 1 << 16 };
constexpr uint64_t sample_id_all = 1 << 18;

[[noreturn]] static void fail(const char* why) {
    fprintf(stderr, "repeat: %s\n", why);
    exit(1);
}

template <typename T> static T read_at(const uint8_t* bytes, uint64_t at) {
    T value;
    memcpy(&value, bytes + at, sizeof value);
    return value;
}

// Offsets of times: from the start of a sample, and from the end of any other record of the kernel.
struct Places {
    uint64_t in_sample, before_end;

    explicit Places(uint64_t type) {
        if (!(type & time_bit)) fail("samples without a time");
        in_sample = 8 + 8 * __builtin_popcountll(type & (identifier | ip | tid));
        before_end = 8 * __builtin_popcountll(type & (time_bit | id | stream_id | cpu | identifier));
    }
    bool operator==(const Places& other) const {
        return in_sample == other.in_sample && before_end == other.before_end;
    }
    // Offset of the time of a record; 0 if it has none.
    uint64_t of(const RecordHeader& record) const {
        if (record.type >= user_types) return 0;
        uint64_t at = record.type == sample ? in_sample : record.size - before_end;
        return at >= 8 && at + 8 <= record.size ? at : 0;
    }
};

struct Recording {
    const uint8_t* bytes;
    uint64_t size;
    FileHeader header;

    explicit Recording(const char* path) {
        int file = open(path, O_RDONLY);
        struct stat found;
        if (file < 0 || fstat(file, &found) != 0) fail("no such file");
        size = static_cast<uint64_t>(found.st_size);
        void* mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
        if (size < sizeof header || mapped == MAP_FAILED) fail("not a recording");
        bytes = static_cast<const uint8_t*>(mapped);
        header = read_at<FileHeader>(bytes, 0);
        if (memcmp(header.magic, "PERFILE2", 8) != 0 || header.size != sizeof header) fail("not a recording of this kind");
        if (header.data.offset > size || header.data.size > size - header.data.offset) fail("cut short");
        if (header.attrs.offset > size || header.attrs.size > size - header.attrs.offset) fail("cut short");
    }

    Places places() const {
        std::vector<Places> found;
        if (header.attr_size < 64) fail("events of an unknown kind");
        for (uint64_t at = 0; at + header.attr_size <= header.attrs.size; at += header.attr_size) {
            const uint8_t* attr = bytes + header.attrs.offset + at;
            if (!(read_at<uint64_t>(attr, 40) & sample_id_all)) fail("records without a sample_id");
            found.emplace_back(read_at<uint64_t>(attr, 24));
            if (!(found.back() == found.front())) fail("events that keep their times at different places");
        }
        if (found.empty()) fail("no events");
        return found.front();
    }

    // Calls `each` with header and offset of every complete record.
    template <typename F> void records(F each) const {
        uint64_t at = header.data.offset, end = at + header.data.size;
        while (at + sizeof(RecordHeader) <= end) {
            auto record = read_at<RecordHeader>(bytes, at);
            if (record.size < sizeof record || record.size > end - at) break;
            if (record.type == compressed || record.type == compressed2 || record.type == auxtrace) fail("compressed or traced");
            each(record, at);
            at += record.size;
        }
    }

    unsigned features() const {
        unsigned count = 0;
        for (uint64_t word : header.features) count += static_cast<unsigned>(__builtin_popcountll(word));
        return count;
    }
};

static bool is_time(uint64_t time) { return time != 0 && time != ~uint64_t(0); }

// The feature sections after the data, moved; the last time of the time section is updated.
static std::vector<uint8_t> tail(const Recording& from, uint64_t moved, uint64_t longer) {
    uint64_t start = from.header.data.offset + from.header.data.size;
    std::vector<uint8_t> bytes(from.bytes + start, from.bytes + from.size);
    unsigned number = 0;
    for (unsigned feature = 0; feature < 256; ++feature) {
        if (!(from.header.features[feature / 64] >> (feature % 64) & 1)) continue;
        if ((number + 1) * sizeof(Section) > bytes.size()) fail("cut short");
        auto section = read_at<Section>(bytes.data(), number * sizeof(Section));
        if (feature == sample_time && section.offset >= start && section.offset + 16 <= from.size) {
            uint64_t last = read_at<uint64_t>(bytes.data(), section.offset - start + 8) + longer;
            memcpy(&bytes[section.offset - start + 8], &last, 8);
        }
        section.offset += moved;
        memcpy(&bytes[number++ * sizeof(Section)], &section, sizeof section);
    }
    return bytes;
}

int main(int count, char** words) {
    if (count != 4 || atoi(words[1]) < 1) fail("usage: repeat COPIES perf.data TO");
    uint64_t copies = static_cast<uint64_t>(atoi(words[1]));
    Recording from(words[2]);
    Places places = from.places();
    uint64_t first = ~uint64_t(0), last = 0, again = 0;
    auto time_at = [&](const RecordHeader& record, uint64_t at) {
        uint64_t place = places.of(record);
        return place ? read_at<uint64_t>(from.bytes, at + place) : 0;
    };
    from.records([&](const RecordHeader& record, uint64_t at) {
        uint64_t time = time_at(record, at);
        if (is_time(time)) first = std::min(first, time), last = std::max(last, time);
        if (is_time(time) || record.type == finished_round) again += record.size;
    });
    if (last == 0) fail("no record has a time");
    uint64_t step = last - first + 1;

    FILE* to = fopen(words[3], "wb");
    if (!to) fail("cannot write");
    FileHeader header = from.header;
    header.data.size += again * (copies - 1);
    fwrite(&header, sizeof header, 1, to);
    fwrite(from.bytes + sizeof header, 1, header.data.offset - sizeof header, to);
    fwrite(from.bytes + header.data.offset, 1, from.header.data.size, to);
    std::vector<uint8_t> changed;
    for (uint64_t copy = 1; copy < copies; ++copy) {
        from.records([&](const RecordHeader& record, uint64_t at) {
            uint64_t time = time_at(record, at);
            if (!is_time(time) && record.type != finished_round) return;
            changed.assign(from.bytes + at, from.bytes + at + record.size);
            time += copy * step;
            if (record.type != finished_round) memcpy(&changed[places.of(record)], &time, 8);
            fwrite(changed.data(), 1, changed.size(), to);
        });
    }
    std::vector<uint8_t> rest = tail(from, again * (copies - 1), step * (copies - 1));
    fwrite(rest.data(), 1, rest.size(), to);
    if (fclose(to) != 0) fail("cannot write");
}

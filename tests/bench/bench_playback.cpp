// SPDX-License-Identifier: GPL-3.0-or-later
// How long a played session takes to open and to jump: bench_playback [HOURS] [FILE]. Makes a
// session of six hours with all series, 20 tokens a second and a read for each (unless FILE
// exists), and prints the time to the first snapshot, to read the rest, and of a jump.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "profiler/playback/playback.h"
#include "profiler/session/session_writer.h"

using namespace colibri;

namespace {

double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

void write(SessionWriter& writer, EventType type, double t, auto fill) {
    Event event{};
    event.type = type;
    fill(event);
    if (!writer.write(event, t).ok()) std::exit(1);
}

void makeSession(const std::filesystem::path& path, double hours) {
    auto made = SessionWriter::create(
        path, {{"model", "bench"}, {"layers", "48"}, {"experts", "128"}, {"top_k", "8"}});
    if (!made) std::exit(1);
    SessionWriter& writer = **made;
    Snapshot snapshot;
    uint32_t random = 1;
    const auto draw = [&](uint32_t n) {
        random = random * 1664525 + 1013904223;
        return (random >> 8) % n;
    };
    const int64_t steps = int64_t(hours * 3600 * 20);
    for (int64_t i = 0; i < steps; ++i) {
        const double t = double(i) / 20;
        const uint64_t request = uint64_t(i / 2000 + 1);
        const auto ofRequest = [&](EventType type) {
            write(writer, type, t, [&](Event& e) { e.request.request = request; });
        };
        if (i % 2000 == 0)
            ofRequest(EventType::RequestArrived), ofRequest(EventType::RequestAdmitted);
        const uint16_t layer = uint16_t(draw(48)), expert = uint16_t(draw(128));
        write(writer, EventType::Eviction, t, [&](Event& e) {
            e.eviction = {layer, uint16_t(draw(128)), 1000, 1};
        });
        write(writer, EventType::ExpertRead, t, [&](Event& e) {
            e.expertRead.layer = layer;
            e.expertRead.expert = expert;
            e.expertRead.bytes = 1 << 20;
            e.expertRead.needNs = e.expertRead.readNs = 1'000'000 + draw(1'000'000);
        });
        for (uint16_t l = 0; l < 8; ++l)
            write(writer, EventType::LayerStep, t, [&](Event& e) {
                e.layerStep.layer = uint16_t(6 * l + i % 6);
                e.layerStep.firstRow = 1;
                e.layerStep.count = 8;
                e.layerStep.firstBits = e.layerStep.hitBits = 0xff;
                for (int k = 0; k < 8; ++k) e.layerStep.experts[k] = uint16_t(draw(128));
            });
        write(writer, EventType::Token, t, [&](Event& e) {
            e.token.request = request;
            e.token.index = uint32_t(i % 2000);
            e.token.gapNs = e.token.stepNs = 40'000'000 + draw(20'000'000);
        });
        if (i % 2000 == 1999) ofRequest(EventType::RequestDone);
        if (i % 2 == 0) {
            for (SeriesData& series : snapshot.series) series.y = {double(draw(1000)) / 10};
            if (!writer.sample(snapshot, t).ok()) std::exit(1);
        }
        if (i % 20000 == 0) (void)writer.commit();
    }
    if (!writer.finish().ok()) std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
    const double hours = argc > 1 ? std::atof(argv[1]) : 6;
    const std::filesystem::path path = argc > 2 ? argv[2] : "/tmp/bench-playback.colibri-session";
    if (!std::filesystem::exists(path)) makeSession(path, hours);
    std::printf("file %.0f MiB\n", double(std::filesystem::file_size(path)) / (1 << 20));
    double begun = seconds();
    auto playback = Playback::open(path);
    if (!playback) return std::printf("%s\n", playback.status().text().c_str()), 1;
    const double length = (*playback)->facts()->duration;
    const PlotWindow whole{0, length, 1400};
    const auto first = (*playback)->at(length / 2, whole);
    std::printf("first snapshot %.0f ms, %zu points of a series\n", 1e3 * (seconds() - begun),
                first->series[0].t.size());
    begun = seconds();
    auto db = SessionDb::open(path, Totals::None);
    const auto index = makeFullIndex(*db, *(*playback)->facts(), {}, nullptr);
    std::printf("everything %.1f s\n", seconds() - begun);
    (*playback)->setIndex(*index);
    std::vector<double> ms;
    for (int i = 0; i < 300; ++i) {
        begun = seconds();
        (void)(*playback)->at(length * double(i * 7919 % 300) / 300, whole);
        ms.push_back(1e3 * (seconds() - begun));
    }
    std::sort(ms.begin(), ms.end());
    std::printf("jump: median %.1f ms, P99 %.1f ms, longest %.1f ms\n", ms[150], ms[297], ms[299]);
    ms.clear();
    for (int i = 0; i < 100; ++i) {
        begun = seconds();
        const double at = length * i / 100;
        (void)(*playback)->at(at, {at, at + 600, 1400});
        ms.push_back(1e3 * (seconds() - begun));
    }
    std::sort(ms.begin(), ms.end());
    std::printf("jump with another range: median %.1f ms, longest %.1f ms\n", ms[50], ms[99]);
    begun = seconds();
    const Histogram pooled = (*playback)->index()->itl.between(10, length - 10);
    std::printf("pooled percentile %.1f ms, n = %llu\n", 1e3 * (seconds() - begun),
                static_cast<unsigned long long>(pooled.count()));
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::printf("largest memory %.0f MiB\n", double(usage.ru_maxrss) / 1024);
    return 0;
}

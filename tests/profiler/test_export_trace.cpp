// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTemporaryDir>
#include <QTest>

#include <bit>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "profiler/export/export.h"
#include "profiler/metrics/metric_table.h"
#include "tests/profiler/session_maker.h"

using namespace colibri;
namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

std::string contentOf(const fs::path& path) {
    std::ifstream stream(path, std::ios::binary);
    std::stringstream text;
    text << stream.rdbuf();
    return text.str();
}

// A decoder of protobuf that shares nothing with the encoder. The numbers are those of Perfetto.
struct Field {
    uint64_t number = 0, value = 0;
    std::string_view bytes;
};

class Fields {
public:
    explicit Fields(std::string_view data) : m_data(data) {}
    bool next(Field& field) {
        if (m_data.empty() || m_broken) return false;
        const uint64_t key = varint();
        field = {key >> 3, 0, {}};
        if ((key & 7) == 0) field.value = varint();
        if ((key & 7) == 1) field.value = fixed(8);
        if ((key & 7) == 2) field.bytes = take(varint());
        m_broken |= (key & 7) > 2;
        return !m_broken;
    }
    bool broken() const { return m_broken; }

private:
    uint64_t varint() {
        uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            if (m_data.empty()) break;
            const uint8_t byte = uint8_t(m_data[0]);
            m_data.remove_prefix(1);
            value |= uint64_t(byte & 127) << shift;
            if (byte < 128) return value;
        }
        m_broken = true;
        return value;
    }
    uint64_t fixed(size_t size) {
        const std::string_view raw = take(size);
        uint64_t value = 0;
        for (size_t i = 0; i < raw.size(); ++i) value |= uint64_t(uint8_t(raw[i])) << (8 * i);
        return value;
    }
    std::string_view take(uint64_t size) {
        m_broken |= size > m_data.size();
        const std::string_view out = m_data.substr(0, m_broken ? 0 : size);
        m_data.remove_prefix(out.size());
        return out;
    }

    std::string_view m_data;
    bool m_broken = false;
};

struct Track {
    std::string name, unit;
    uint64_t parent = 0;
    bool counter = false;
};

struct Slice {
    std::string name;
    uint64_t track = 0, beginNs = 0, endNs = 0;
    size_t parent = 0;  // 1 + the position of the slice around it
    std::map<std::string, int64_t> args;
};

struct FlowEnd {
    std::string name;
    uint64_t ns;
    size_t slice;  // 1 + the position of the outermost slice around it
};

struct Trace {
    std::map<uint64_t, Track> tracks;
    std::vector<Slice> slices;
    std::vector<std::string> instants;
    std::map<uint64_t, std::vector<double>> counters;  // by track
    std::map<uint64_t, size_t> flowBegins;             // arrow to slice
    std::map<uint64_t, FlowEnd> flowEnds;
    std::string fault;

    size_t count(const std::string& name) const {
        return size_t(std::count_if(slices.begin(), slices.end(),
                                    [&](const Slice& slice) { return slice.name == name; }));
    }
};

class Decoder {
public:
    static Trace decode(const std::string& data) {
        Decoder decoder;
        Fields packets(data);
        for (Field packet; packets.next(packet);) {
            if (packet.number != 1) decoder.m_trace.fault = "not a packet";
            decoder.packet(packet.bytes);
        }
        if (packets.broken()) decoder.m_trace.fault = "broken encoding";
        for (const auto& [track, stack] : decoder.m_open) {
            if (!stack.empty()) decoder.m_trace.fault = "a slice without an end";
        }
        return decoder.m_trace;
    }

private:
    void packet(std::string_view data) {
        uint64_t ns = 0, sequence = 0;
        std::string_view event;
        Fields fields(data);
        for (Field field; fields.next(field);) {
            if (field.number == 8) ns = field.value;
            if (field.number == 10) sequence = field.value;
            if (field.number == 11) event = field.bytes;
            if (field.number == 12) intern(field.bytes);
            if (field.number == 60) descriptor(field.bytes);
        }
        if (sequence != 1) m_trace.fault = "no sequence";
        if (!event.empty()) addEvent(event, ns);
    }
    void intern(std::string_view data) {
        Fields fields(data);
        for (Field entry; fields.next(entry);) {
            uint64_t iid = 0;
            std::string text;
            Fields parts(entry.bytes);
            for (Field part; parts.next(part);) {
                if (part.number == 1) iid = part.value;
                if (part.number == 2) text = std::string(part.bytes);
            }
            (entry.number == 2 ? m_names : m_argNames)[iid] = text;
        }
    }
    void descriptor(std::string_view data) {
        Track track;
        uint64_t uuid = 0;
        Fields fields(data);
        for (Field field; fields.next(field);) {
            if (field.number == 1) uuid = field.value;
            if (field.number == 2) track.name = std::string(field.bytes);
            if (field.number == 5) track.parent = field.value;
            if (field.number != 8) continue;
            track.counter = true;
            Fields parts(field.bytes);
            for (Field part; parts.next(part);) {
                if (part.number == 6) track.unit = std::string(part.bytes);
            }
        }
        if (track.parent && !m_trace.tracks.contains(track.parent)) {
            m_trace.fault = "a track before its parent";
        }
        m_trace.tracks[uuid] = track;
    }
    void addEvent(std::string_view data, uint64_t ns) {
        uint64_t type = 0, track = 0;
        std::string name;
        double value = 0;
        std::vector<uint64_t> begins, ends;
        std::map<std::string, int64_t> args;
        Fields fields(data);
        for (Field field; fields.next(field);) {
            if (field.number == 9) type = field.value;
            if (field.number == 11) track = field.value;
            if (field.number == 10) name = m_names.at(field.value);
            if (field.number == 23) name = std::string(field.bytes);
            if (field.number == 44) value = std::bit_cast<double>(field.value);
            if (field.number == 47) begins.push_back(field.value);
            if (field.number == 48) ends.push_back(field.value);
            if (field.number == 4) addArg(field.bytes, args);
        }
        if (!m_trace.tracks.contains(track)) m_trace.fault = "an event without a track";
        std::vector<size_t>& open = m_open[track];
        if (type == 1) {
            m_trace.slices.push_back(
                {name, track, ns, 0, open.empty() ? 0 : open.back() + 1, args});
            open.push_back(m_trace.slices.size() - 1);
            for (const uint64_t flow : begins) m_trace.flowBegins[flow] = open.back();
        } else if (type == 2 && !open.empty()) {
            m_trace.slices[open.back()].endNs = ns;
            if (!ends.empty()) m_trace.fault = "an arrow to the end of a slice";
            open.pop_back();
        } else if (type == 3) {
            if (ends.empty()) m_trace.instants.push_back(name);
            for (const uint64_t flow : ends) {
                m_trace.flowEnds[flow] = {name, ns, open.empty() ? 0 : open.front() + 1};
            }
        } else if (type == 4) {
            m_trace.counters[track].push_back(value);
        } else {
            m_trace.fault = "an unknown event, or an end without a slice";
        }
        if (type <= 2) {
            if (ns < m_lastNs[track]) m_trace.fault = "time runs backwards on " + name;
            m_lastNs[track] = ns;
        }
    }
    void addArg(std::string_view data, std::map<std::string, int64_t>& args) {
        std::string name;
        Fields fields(data);
        for (Field field; fields.next(field);) {
            if (field.number == 1) name = m_argNames.at(field.value);
            if (field.number == 4) args[name] = int64_t(field.value);
        }
    }

    Trace m_trace;
    std::map<uint64_t, std::string> m_names, m_argNames;
    std::map<uint64_t, std::vector<size_t>> m_open;
    std::map<uint64_t, uint64_t> m_lastNs;
};

}  // namespace

class TestExportTrace : public QObject {
    Q_OBJECT
    QTemporaryDir m_dir;
    MadeSession m_made;

    fs::path file(const char* name) { return fs::path(m_dir.path().toStdString()) / name; }
    ExportOptions options(ExportFormat format, const char* output) {
        return {.session = file("a.colibri-session"), .output = file(output), .format = format};
    }
    Trace exported(const ExportOptions& options, ExportSummary& summary) {
        const auto done = exportSession(options, {}, nullptr);
        if (!done) return {.fault = done.status().text()};
        summary = *done;
        const std::string data = contentOf(options.output);
        Trace trace = Decoder::decode(data);
        if (int64_t(data.size()) != summary.bytes) trace.fault = "another size than reported";
        return trace;
    }

private slots:
    void initTestCase() { m_made.write(file("a.colibri-session")); }

    void everyRowIsInThePerfettoTrace() {
        ExportSummary summary;
        const Trace trace = exported(options(ExportFormat::Perfetto, "a.pftrace"), summary);
        QCOMPARE(trace.fault, std::string());
        QCOMPARE(int64_t(trace.slices.size()), m_made.slices());
        QCOMPARE(summary.slices, m_made.slices());
        QCOMPARE(trace.count("token"), size_t(m_made.allTokens()));
        QCOMPARE(trace.count("prefill"), size_t(m_made.requests));
        QCOMPARE(trace.count("decode"), size_t(m_made.requests));
        QCOMPARE(trace.count("router"), size_t(m_made.steps()));
        QCOMPARE(trace.count("compute"), size_t(m_made.steps()));
        QCOMPARE(trace.count("wait"), size_t(m_made.misses()));
        QCOMPARE(trace.count("read"), size_t(m_made.misses() + m_made.prefetches() + 1));
        for (int layer = 0; layer < m_made.layers; ++layer) {
            QCOMPARE(trace.count("layer " + std::to_string(layer)), size_t(m_made.allTokens()));
        }
        QCOMPARE(trace.count("step"), size_t(m_made.allTokens()));
        QCOMPARE(trace.instants.size(), size_t(3 + m_made.evictions()));
        QCOMPARE(summary.instants, 3 + m_made.evictions());
        QCOMPARE(trace.instants[0], std::string("knobs at the start"));
        QCOMPARE(trace.instants[1], std::string("expert_cache_size = 4"));
        QCOMPARE(trace.instants[2], std::string("half the \"cache\""));
        QCOMPARE(trace.instants[3], std::string("layer 0 expert 4"));
    }
    // Tracks for each reason and thread, as many as there are reads in flight.
    void readsHaveTracksByReasonAndThread() {
        ExportSummary summary;
        const Trace trace = exported(options(ExportFormat::Perfetto, "h.pftrace"), summary);
        std::set<std::string> tracks;
        for (const auto& [id, track] : trace.tracks) {
            const auto parent = trace.tracks.find(track.parent);
            if (parent != trace.tracks.end() && parent->second.name == "Expert reads") {
                tracks.insert(track.name);
            }
        }
        QCOMPARE(tracks, (std::set<std::string>{"demand, expert-io", "prefetch, expert-io"}));
    }
    void slicesLieWithinTheirParentsAndHaveTheirDurations() {
        ExportSummary summary;
        const Trace trace = exported(options(ExportFormat::Perfetto, "b.pftrace"), summary);
        int64_t waitNs = 0, bytes = 0, gapNs = 0;
        for (const Slice& slice : trace.slices) {
            if (slice.parent) {
                const Slice& parent = trace.slices[slice.parent - 1];
                QVERIFY(slice.beginNs >= parent.beginNs && slice.endNs <= parent.endNs);
            }
            if (slice.name == "wait") waitNs += int64_t(slice.endNs - slice.beginNs);
            if (slice.args.contains("bytes")) bytes += slice.args.at("bytes");
            if (slice.args.contains("gap_ns")) gapNs += slice.args.at("gap_ns");
        }
        QCOMPARE(waitNs, int64_t(m_made.misses()) * MadeSession::kWaitNs);
        QCOMPARE(bytes,
                 int64_t(m_made.misses() + m_made.prefetches() + 1) * MadeSession::kReadBytes);
        int64_t gaps = 0;
        for (int i = 0; i < m_made.tokens; ++i) gaps += m_made.requests * m_made.gapNs(i);
        QCOMPARE(gapNs, gaps);
    }
    // Each wait has one read; the read is of the layer that waited.
    void arrowsLeadFromTheReadToTheLayerThatWaited_data() {
        QTest::addColumn<bool>("numbered");
        QTest::newRow("by the number of the step") << true;
        QTest::newRow("by the time") << false;
    }
    void arrowsLeadFromTheReadToTheLayerThatWaited() {
        QFETCH(bool, numbered);
        const std::string name = numbered ? "numbered" : "unnumbered";
        MadeSession{.numbered = numbered}.write(file(name.c_str()));
        ExportOptions arrows = options(ExportFormat::Perfetto, (name + ".pftrace").c_str());
        arrows.session = file(name.c_str());
        ExportSummary summary;
        const Trace trace = exported(arrows, summary);
        QCOMPARE(trace.flowEnds.size(), size_t(m_made.misses()));
        QCOMPARE(summary.flows, m_made.misses());
        for (const auto& [flow, end] : trace.flowEnds) {
            QVERIFY(trace.flowBegins.contains(flow));
            const Slice& read = trace.slices[trace.flowBegins.at(flow)];
            QVERIFY(end.slice > 0);
            const Slice& step = trace.slices[end.slice - 1];
            QCOMPARE(read.name + " resident", step.name + " " + end.name);
            QCOMPARE(read.endNs, end.ns);
            QVERIFY(end.ns >= step.beginNs && end.ns <= step.endNs);
        }
    }
    void seriesAreCountersWithUnits() {
        ExportSummary summary;
        const Trace trace = exported(options(ExportFormat::Perfetto, "d.pftrace"), summary);
        QCOMPARE(trace.counters.size(), size_t(2));
        for (const auto& [id, values] : trace.counters) {
            const Track& track = trace.tracks.at(id);
            QVERIFY(track.counter);
            const MetricRow* metric = findMetric(track.name);
            QVERIFY(metric);
            QCOMPARE(track.unit, std::string(metric->unit));
            QCOMPARE(values.size(), size_t(m_made.samples()));
            QCOMPARE(values[0], metric->id == SeriesId::ItlP99 ? 10.0 : 1.5);
            QCOMPARE(trace.tracks.at(track.parent).name, std::string("Series"));
        }
        QCOMPARE(summary.values, 2 * m_made.samples());
        ExportOptions one = options(ExportFormat::Perfetto, "e.pftrace");
        one.series = {"memory"};
        QCOMPARE(exported(one, summary).counters.size(), size_t(1));
        QCOMPARE(summary.series, std::vector<std::string>{"memory"});
    }
    void aRangeHasTheSlicesThatOverlapIt() {
        ExportOptions part = options(ExportFormat::Perfetto, "f.pftrace");
        const double whole = m_made.tokens * MadeSession::kTokenSeconds;
        part.from = whole + 0.0005;  // within the second request, before its first step
        part.to = 2 * whole - 0.0005;
        ExportSummary summary;
        const Trace trace = exported(part, summary);
        QCOMPARE(trace.fault, std::string());
        QCOMPARE(trace.count("request 2"), size_t(1));
        QCOMPARE(trace.count("request 1"), size_t(0));
        QCOMPARE(trace.count("token"), size_t(m_made.tokens));
        QCOMPARE(trace.flowEnds.size(), size_t(m_made.misses() / m_made.requests));
        QCOMPARE(trace.instants.size(), size_t(m_made.evictions() / m_made.requests));
    }
    void chromeTracesHaveTheSameContent() {
        const auto done = exportSession(options(ExportFormat::Chrome, "a.json"), {}, nullptr);
        QVERIFY2(done.ok(), done.status().text().c_str());
        const Json trace = Json::parse(contentOf(file("a.json")), nullptr, false);
        QVERIFY(!trace.is_discarded());
        std::map<std::string, int64_t> phases;
        std::map<int64_t, int64_t> depth;
        for (const Json& event : trace["traceEvents"]) {
            const std::string phase = event["ph"];
            ++phases[phase];
            if (phase == "B") ++depth[event["tid"]];
            if (phase == "E") --depth[event["tid"]];
            if (event.value("name", "") == "memory (GiB)")
                QCOMPARE(event["args"]["GiB"].get<double>(), 1.5);
        }
        QCOMPARE(phases["B"], m_made.slices());
        QCOMPARE(phases["E"], m_made.slices());
        QCOMPARE(phases["i"], 3 + m_made.evictions() + m_made.misses());
        QCOMPARE(phases["C"], 2 * m_made.samples());
        QCOMPARE(phases["f"], m_made.misses());
        for (const auto& [track, open] : depth) QCOMPARE(open, 0);
    }
    // Reads that overlap are on different tracks, since the slices of a track must be nested.
    void readsInFlightTogetherDoNotOverlapOnATrack() {
        const fs::path path = file("overlap.colibri-session");
        {
            auto writer = SessionWriter::create(path, {});
            QVERIFY(writer.ok());
            for (int i = 0; i < 30; ++i) {
                Event event{};
                event.type = EventType::ExpertRead;
                event.expertRead.readNs = 4'000'000 + (i % 3) * 700'000;
                event.expertRead.expert = uint16_t(i);
                QVERIFY((*writer)->write(event, 0.1 + i * 0.001).ok());
            }
        }
        ExportOptions overlapping = options(ExportFormat::Perfetto, "g.pftrace");
        overlapping.session = path;
        ExportSummary summary;
        const Trace trace = exported(overlapping, summary);
        QCOMPARE(trace.fault, std::string());
        QCOMPARE(trace.count("read"), size_t(30));
        std::map<uint64_t, int> lanes;
        for (const Slice& slice : trace.slices) ++lanes[slice.track];
        QVERIFY2(lanes.size() >= 5 && lanes.size() <= 7, std::to_string(lanes.size()).c_str());
    }
    void theEstimateIsNear_data() {
        QTest::addColumn<int>("format");
        for (const ExportFormat format : {ExportFormat::Perfetto, ExportFormat::Chrome,
                                          ExportFormat::Csv, ExportFormat::Json}) {
            QTest::newRow(exportFormatName(format)) << int(format);
        }
    }
    void theEstimateIsNear() {
        QFETCH(int, format);
        const fs::path large = file("large.colibri-session");
        if (!fs::exists(large)) MadeSession{.requests = 20, .tokens = 50, .layers = 8}.write(large);
        const std::string name = std::string("estimate.") + exportFormatName(ExportFormat(format));
        ExportOptions whole = options(ExportFormat(format), name.c_str());
        whole.session = large;
        const auto estimate = estimateExport(whole);
        QVERIFY2(estimate.ok(), estimate.status().text().c_str());
        const auto done = exportSession(whole, {}, nullptr);
        QVERIFY2(done.ok(), done.status().text().c_str());
        const double ratio = double(*estimate) / double(done->bytes);
        QVERIFY2(ratio > 0.6 && ratio < 1.7, std::to_string(ratio).c_str());
    }
};

QTEST_GUILESS_MAIN(TestExportTrace)
#include "test_export_trace.moc"

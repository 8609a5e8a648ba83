// SPDX-License-Identifier: Apache-2.0
#include "profiler/export/perfetto_sink.h"

#include <algorithm>

#include "profiler/export/perfetto_fields.h"

namespace colibri {
namespace {

namespace pf = perfetto;

constexpr uint64_t kSequence = 1;  // one writer
constexpr uint64_t kRootTrack = uint64_t(1) << 62;

}  // namespace

// A plain track at the root: the tracks of a process would be sorted by their names.
Status PerfettoSink::start(const std::string& title) {
    m_event.clear();
    m_event.integer(pf::descriptor::kUuid, kRootTrack);
    m_event.text(pf::descriptor::kName, title);
    m_event.integer(pf::descriptor::kChildOrdering, pf::descriptor::kExplicit);
    m_packet.clear();
    m_packet.message(pf::packet::kTrackDescriptor, m_event);
    return writePacket();
}

Status PerfettoSink::track(const TraceTrack& track) {
    m_event.clear();
    m_event.integer(pf::descriptor::kUuid, track.id);
    m_event.integer(pf::descriptor::kParentUuid, track.parent ? track.parent : kRootTrack);
    m_event.text(pf::descriptor::kName, track.name);
    if (!track.description.empty()) {
        m_event.text(pf::descriptor::kDescription, track.description);
    }
    m_event.integer(pf::descriptor::kChildOrdering, track.childrenByName
                                                        ? pf::descriptor::kLexicographic
                                                        : pf::descriptor::kExplicit);
    m_event.integer(pf::descriptor::kSiblingOrderRank, uint64_t(track.rank));
    if (track.counter) {
        m_part.clear();
        m_part.text(pf::counter::kUnitName, track.unit);
        m_event.message(pf::descriptor::kCounter, m_part);
    } else {
        m_event.integer(pf::descriptor::kSiblingMergeBehavior, pf::descriptor::kMergeNone);
    }
    m_packet.clear();
    m_packet.message(pf::packet::kTrackDescriptor, m_event);
    return writePacket();
}

uint64_t PerfettoSink::intern(Names& names, uint32_t field, std::string_view name) {
    const auto it = names.find(name);
    if (it != names.end()) return it->second;
    const uint64_t iid = names.size() + 1;
    names.emplace(name, iid);
    ProtoMessage entry;
    entry.integer(pf::interned::kIid, iid);
    entry.text(pf::interned::kText, name);
    m_interned.message(field, entry);
    return iid;
}

void PerfettoSink::open(TrackId track, uint64_t type) {
    m_event.clear();
    m_event.integer(pf::event::kType, type);
    m_event.integer(pf::event::kTrackUuid, track);
}

uint64_t PerfettoSink::argName(const char* name) {
    auto& [recent, iid] = m_recentArgs[reinterpret_cast<uintptr_t>(name) / 4 % m_recentArgs.size()];
    if (recent != name) {
        iid = intern(m_argNames, pf::interned::kDebugAnnotationNames, name);
        recent = name;
    }
    return iid;
}

void PerfettoSink::add(TraceArgs args) {
    for (const TraceArg& arg : args) {
        m_part.clear();
        m_part.integer(pf::annotation::kNameIid, argName(arg.name));
        switch (arg.kind) {
            case TraceArg::Kind::Integer:
                m_part.integer(pf::annotation::kInt, uint64_t(arg.integer));
                break;
            case TraceArg::Kind::Real:
                m_part.real(pf::annotation::kDouble, arg.real);
                break;
            case TraceArg::Kind::Text:
                m_part.text(pf::annotation::kString, arg.text);
                break;
        }
        m_event.message(pf::event::kDebugAnnotations, m_part);
    }
}

Status PerfettoSink::begin(TrackId track, int64_t ns, std::string_view name, TraceArgs args,
                           uint64_t flow) {
    open(track, pf::event::kSliceBegin);
    m_event.integer(pf::event::kNameIid, intern(m_eventNames, pf::interned::kEventNames, name));
    if (flow != 0) m_event.fixed64(pf::event::kFlowIds, flow);
    add(args);
    return write(ns);
}

Status PerfettoSink::end(TrackId track, int64_t ns) {
    open(track, pf::event::kSliceEnd);
    return write(ns);
}

Status PerfettoSink::instant(TrackId track, int64_t ns, std::string_view name, TraceArgs args,
                             uint64_t flow) {
    open(track, pf::event::kInstant);
    m_event.integer(pf::event::kNameIid, intern(m_eventNames, pf::interned::kEventNames, name));
    if (flow != 0) m_event.fixed64(pf::event::kTerminatingFlowIds, flow);
    add(args);
    return write(ns);
}

Status PerfettoSink::counter(TrackId track, int64_t ns, double value) {
    open(track, pf::event::kCounter);
    m_event.real(pf::event::kDoubleCounterValue, value);
    return write(ns);
}

Status PerfettoSink::write(int64_t ns) {
    m_packet.clear();
    m_packet.integer(pf::packet::kTimestamp, uint64_t(std::max<int64_t>(ns, 0)));
    if (!m_interned.empty()) {
        m_packet.message(pf::packet::kInternedData, m_interned);
        m_interned.clear();
    }
    m_packet.message(pf::packet::kTrackEvent, m_event);
    return writePacket();
}

Status PerfettoSink::writePacket() {
    m_packet.integer(pf::packet::kSequenceId, kSequence);
    m_packet.integer(pf::packet::kSequenceFlags, m_first ? pf::packet::kIncrementalStateCleared
                                                         : pf::packet::kNeedsIncrementalState);
    m_first = false;
    m_frame.clear();
    m_frame.head(pf::trace::kPacket, m_packet.bytes().size());
    COLIBRI_TRY(m_file.append(m_frame.bytes()));
    return m_file.append(m_packet.bytes());
}

}  // namespace colibri

// SPDX-License-Identifier: Apache-2.0
// The field numbers of Perfetto's trace format that PerfettoSink writes. Source: the folder
// protos/perfetto/trace of https://github.com/google/perfetto (v52); each group names its file.
// Field numbers of published messages never change.
#pragma once

#include <cstdint>

namespace colibri::perfetto {

namespace trace {  // trace.proto
constexpr uint32_t kPacket = 1;
}
namespace packet {  // trace_packet.proto: TracePacket
constexpr uint32_t kTimestamp = 8;
constexpr uint32_t kSequenceId = 10;  // trusted_packet_sequence_id
constexpr uint32_t kTrackEvent = 11;
constexpr uint32_t kInternedData = 12;
constexpr uint32_t kSequenceFlags = 13;
constexpr uint32_t kTrackDescriptor = 60;
// SequenceFlags
constexpr uint64_t kIncrementalStateCleared = 1;
constexpr uint64_t kNeedsIncrementalState = 2;
}  // namespace packet
namespace descriptor {  // track_event/track_descriptor.proto
constexpr uint32_t kUuid = 1;
constexpr uint32_t kName = 2;
constexpr uint32_t kParentUuid = 5;
constexpr uint32_t kCounter = 8;
constexpr uint32_t kChildOrdering = 11;
constexpr uint32_t kSiblingOrderRank = 12;
constexpr uint32_t kDescription = 14;
constexpr uint32_t kSiblingMergeBehavior = 15;
constexpr uint64_t kLexicographic = 1, kExplicit = 3;  // ChildTracksOrdering
constexpr uint64_t kMergeNone = 2;                     // SiblingMergeBehavior
}  // namespace descriptor
namespace counter {  // track_event/counter_descriptor.proto
constexpr uint32_t kUnitName = 6;
}
namespace event {  // track_event/track_event.proto: TrackEvent
constexpr uint32_t kDebugAnnotations = 4;
constexpr uint32_t kType = 9;
constexpr uint32_t kNameIid = 10;
constexpr uint32_t kTrackUuid = 11;
constexpr uint32_t kDoubleCounterValue = 44;
constexpr uint32_t kFlowIds = 47;             // fixed64
constexpr uint32_t kTerminatingFlowIds = 48;  // fixed64
// Type
constexpr uint64_t kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounter = 4;
}  // namespace event
namespace annotation {  // track_event/debug_annotation.proto: DebugAnnotation
constexpr uint32_t kNameIid = 1;
constexpr uint32_t kInt = 4;
constexpr uint32_t kDouble = 5;
constexpr uint32_t kString = 6;
}  // namespace annotation
namespace interned {  // interned_data/interned_data.proto: InternedData
constexpr uint32_t kEventNames = 2;
constexpr uint32_t kDebugAnnotationNames = 3;
// EventName and DebugAnnotationName
constexpr uint32_t kIid = 1;
constexpr uint32_t kText = 2;
}  // namespace interned

}  // namespace colibri::perfetto

// SPDX-License-Identifier: Apache-2.0
#include "profiler/gpu/activity_records.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace colibri {
namespace {

// A launch names its work when it is queued. Its kernels may end, and their records arrive, this
// many rounds later; a graph has many kernels with one correlation, so a match does not end it.
constexpr int kWorkRounds = 400;
constexpr size_t kMostWork = 1 << 20;

GpuSpanKind copyKind(uint8_t kind) {
    switch (kind) {
        case cupti::kHostToDevice:
            return GpuSpanKind::CopyToGpu;
        case cupti::kDeviceToHost:
            return GpuSpanKind::CopyFromGpu;
        case cupti::kDeviceToDevice:
            return GpuSpanKind::CopyOnGpu;
        default:
            return GpuSpanKind::CopyOther;
    }
}

// "void ns::gemv<4>(float const*, int)" -> "ns::gemv<4>"
std::string shortName(const std::string& symbol) {
    int failed = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(
        abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &failed), &std::free);
    if (failed || !text) return symbol;
    std::string name = text.get();
    int depth = 0;  // of template arguments, which may have parentheses and spaces
    size_t begin = 0;
    for (size_t i = 0; i < name.size(); ++i) {
        if (name[i] == '<') ++depth;
        if (name[i] == '>') --depth;
        if (depth > 0) continue;
        if (name[i] == ' ') begin = i + 1;  // after the result type
        const bool unnamed = name.compare(i, 11, "(anonymous ") == 0;
        if (unnamed)
            i = name.find(')', i);
        else if (name[i] == '(')
            return name.substr(begin, i - begin);
        if (i == std::string::npos) break;
    }
    return name;
}

}  // namespace

std::string_view ActivityRecords::kernelName(const char* symbol) {
    const std::string key = symbol ? symbol : "unnamed kernel";
    auto [entry, added] = m_names.try_emplace(key);
    if (added) entry->second = shortName(key);
    return entry->second;
}

template <typename Record>
void ActivityRecords::addSpan(const Record& record, GpuSpanKind kind, uint64_t bytes,
                              int64_t offsetNs) {
    if (record.start == 0 || record.end < record.start) {
        ++m_untimed;
        return;
    }
    GpuSpan span;
    span.startNs = record.start + uint64_t(offsetNs);
    span.durationNs = record.end - record.start;
    span.kind = kind;
    span.bytes = bytes;
    span.device = record.deviceId;
    span.stream = record.streamId;
    span.correlation = record.correlationId;
    m_waiting.push_back({span, m_round});
}

void ActivityRecords::add(const cupti::ActivityRecord& record, int64_t offsetNs) {
    switch (record.kind) {
        case cupti::kConcurrentKernel: {
            const auto& kernel = reinterpret_cast<const cupti::KernelRecord&>(record);
            const size_t before = m_waiting.size();
            addSpan(kernel, GpuSpanKind::Kernel, 0, offsetNs);
            if (m_waiting.size() > before) m_waiting.back().span.name = kernelName(kernel.name);
            return;
        }
        case cupti::kMemcpy: {
            const auto& copy = reinterpret_cast<const cupti::MemcpyRecord&>(record);
            return addSpan(copy, copyKind(copy.copyKind), copy.bytes, offsetNs);
        }
        case cupti::kMemcpyPeer: {
            const auto& copy = reinterpret_cast<const cupti::MemcpyPeerRecord&>(record);
            return addSpan(copy, GpuSpanKind::CopyOther, copy.bytes, offsetNs);
        }
        case cupti::kMemset: {
            const auto& fill = reinterpret_cast<const cupti::MemsetRecord&>(record);
            return addSpan(fill, GpuSpanKind::Fill, fill.bytes, offsetNs);
        }
        case cupti::kExternalCorrelation: {
            const auto& join = reinterpret_cast<const cupti::ExternalCorrelationRecord&>(record);
            if (join.externalKind == cupti::kExternalKindCustom0) {
                m_work[join.correlationId] = {join.externalId, m_round};
            }
            return;
        }
        default:
            return;
    }
}

void ActivityRecords::endRound(std::vector<GpuSpan>& out, bool last) {
    const size_t first = out.size();
    std::erase_if(m_waiting, [&](Waiting& waiting) {
        const auto work = m_work.find(waiting.span.correlation);
        if (work != m_work.end()) waiting.span.work = work->second.id;
        const bool ready = last || work != m_work.end() || m_round - waiting.round >= m_waitRounds;
        if (ready) out.push_back(waiting.span);
        return ready;
    });
    std::sort(out.begin() + ptrdiff_t(first), out.end(),
              [](const GpuSpan& a, const GpuSpan& b) { return a.startNs < b.startNs; });
    ++m_round;
    forgetOldWork();
}

void ActivityRecords::forgetOldWork() {
    if (m_work.size() > kMostWork) m_work.clear();
    if (m_round % kWorkRounds != 0) return;
    std::erase_if(m_work,
                  [&](const auto& entry) { return m_round - entry.second.round > kWorkRounds; });
}

}  // namespace colibri

// SPDX-License-Identifier: Apache-2.0
// The dense weights are in one anonymous mapping. It is page-aligned, so every tensor keeps its
// 128-byte alignment, uses huge pages if possible, and is unmapped as a whole.
#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <unordered_map>

#include "engine/base/file.h"
#include "engine/base/format.h"
#include "engine/base/progress_gate.h"
#include "engine/model/container.h"
#include "engine/model/layout.h"

namespace colibri {

namespace {
constexpr int64_t kReadBytes = 4 << 20;
}

struct DenseWeights::Impl {
    std::byte* block = nullptr;
    int64_t bytes = 0;
    std::unordered_map<std::string, int64_t> offsets;

    ~Impl() {
        if (block) munmap(block, size_t(bytes));
    }
};

DenseWeights::~DenseWeights() = default;

Result<std::unique_ptr<DenseWeights>> DenseWeights::load(const ContainerInfo& info,
                                                         const ProgressFn& progress,
                                                         const CancelFlag* cancel) {
    std::filesystem::path path = info.dir / kDenseFile;
    Result<File> file = File::open(path, File::Mode::Read);
    if (!file) return file.status();
    Result<int64_t> size = file->size();
    if (!size) return size.status();
    if (*size != info.denseBytes) {
        return Status(Code::BadInput, path.string() + ": " + std::to_string(*size) +
                                          " bytes, expected " + std::to_string(info.denseBytes));
    }
    auto impl = std::make_unique<Impl>();
    void* block = mmap(nullptr, size_t(info.denseBytes), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) {
        return Status(Code::OutOfMemory, "No memory for the dense weights (" +
                                             formatGiB(double(info.denseBytes)) + ")");
    }
    impl->block = static_cast<std::byte*>(block);
    impl->bytes = info.denseBytes;
    // Both calls are only advice. Their failure costs speed, nothing else.
    (void)madvise(block, size_t(info.denseBytes), MADV_HUGEPAGE);
    (void)posix_fadvise(file->fd(), 0, 0, POSIX_FADV_SEQUENTIAL);

    ProgressGate gate(progress);
    for (int64_t done = 0; done < info.denseBytes;) {
        if (cancelled(cancel)) {
            return Status(Code::Cancelled, "Loading was cancelled");
        }
        int64_t n = std::min(kReadBytes, info.denseBytes - done);
        COLIBRI_TRY(file->readAt(done, {impl->block + done, size_t(n)}));
        done += n;
        gate.report("Dense weights", uint64_t(done), uint64_t(info.denseBytes));
    }
    for (const TensorInfo& t : info.tensors) impl->offsets.emplace(t.name, t.offset);

    std::unique_ptr<DenseWeights> out(new DenseWeights);
    out->m_impl = std::move(impl);
    return out;
}

const std::byte* DenseWeights::data(const std::string& name) const {
    auto it = m_impl->offsets.find(name);
    return it == m_impl->offsets.end() ? nullptr : m_impl->block + it->second;
}

const float* DenseWeights::floats(const std::string& name) const {
    return reinterpret_cast<const float*>(data(name));
}

int64_t DenseWeights::bytes() const {
    return m_impl->bytes;
}

}  // namespace colibri

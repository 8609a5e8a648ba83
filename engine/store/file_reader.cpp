// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/base/format.h"
#include "engine/store/reader.h"

namespace colibri {

Result<std::unique_ptr<Reader>> FileReader::open(const ContainerInfo& info) {
    auto reader = std::make_unique<FileReader>();
    for (const ExpertLayer& layer : info.expertLayers) {
        const auto path = info.dir / layer.file;
        auto direct = File::open(path, File::Mode::ReadDirect);
        if (!direct) return direct.status();
        auto buffered = File::open(path, File::Mode::Read);
        if (!buffered) return buffered.status();
        const auto size = buffered->size();
        if (!size) return size.status();
        const int64_t needed = layer.recordBytes * info.config.numExperts;
        if (*size < needed)
            return Status(Code::BadInput,
                          path.string() + " has " + formatCount(*size) + " bytes, " +
                              formatCount(info.config.numExperts) + " experts need " +
                              formatCount(needed),
                          "The file was cut short; copy or convert the model again");
        reader->m_directWorks = reader->m_directWorks && direct->direct();
        reader->m_direct.push_back(std::move(*direct));
        reader->m_buffered.push_back(std::move(*buffered));
    }
    return std::unique_ptr<Reader>(std::move(reader));
}

int64_t FileReader::readAt(int64_t moeLayer, int64_t offset, std::span<std::byte> out,
                           IoMode mode) {
    const File& file = (mode == IoMode::Direct ? m_direct : m_buffered)[size_t(moeLayer)];
    for (;;) {
        const ssize_t n = pread(file.fd(), out.data(), out.size(), offset);
        if (n >= 0) return n;
        if (errno != EINTR) return -errno;
    }
}

namespace {

std::string recordPlace(const StoreShape& shape, int64_t moeLayer, int64_t expert, int64_t byte) {
    return shape.files[size_t(moeLayer)] + ": expert " + formatCount(expert) + " of layer " +
           formatCount(shape.layers[size_t(moeLayer)]) + " could not be read at byte " +
           formatCount(byte);
}

}  // namespace

Status readRecord(Reader& reader, const StoreShape& shape, int64_t moeLayer, int64_t expert,
                  std::span<std::byte> out, IoMode mode) {
    const int64_t start = expert * int64_t(out.size());
    int64_t done = 0;
    while (done < int64_t(out.size())) {
        const int64_t n = reader.readAt(moeLayer, start + done, out.subspan(size_t(done)), mode);
        if (n < 0)
            return {
                Code::IoError,
                recordPlace(shape, moeLayer, expert, start + done) + ": " + std::strerror(int(-n)),
                "Check the disk and the system log"};
        // A direct read that ends inside a block goes on from the block's start.
        const int64_t reached = done + n;
        const int64_t next = mode == IoMode::Direct && reached < int64_t(out.size())
                                 ? reached / kRecordAlign * kRecordAlign
                                 : reached;
        if (next <= done)
            return {Code::BadInput,
                    recordPlace(shape, moeLayer, expert, start + reached) + ": the file ends there",
                    "The file was cut short; copy or convert the model again"};
        done = next;
    }
    return {};
}

}  // namespace colibri

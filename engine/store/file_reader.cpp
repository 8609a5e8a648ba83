// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>

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
                          "The file was truncated; copy or convert the model again");
        reader->m_directWorks = reader->m_directWorks && direct->direct();
        reader->m_direct.push_back(std::move(*direct));
        reader->m_buffered.push_back(std::move(*buffered));
    }
    return std::unique_ptr<Reader>(std::move(reader));
}

const File& FileReader::file(int64_t moeLayer, IoMode mode) const {
    return (mode == IoMode::Direct ? m_direct : m_buffered)[size_t(moeLayer)];
}

int FileReader::descriptor(int64_t moeLayer, IoMode mode) const {
    return moeLayer < int64_t(m_direct.size()) ? file(moeLayer, mode).fd() : -1;
}

int64_t FileReader::readAt(int64_t moeLayer, int64_t offset, std::span<std::byte> out,
                           IoMode mode) {
    const int fd = file(moeLayer, mode).fd();
    for (;;) {
        const ssize_t n = pread(fd, out.data(), out.size(), offset);
        if (n >= 0) return n;
        if (errno != EINTR) return -errno;
    }
}

}  // namespace colibri

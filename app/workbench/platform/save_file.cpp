// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/platform/save_file.h"

#include "engine/base/file.h"

namespace colibri::ui {

Status saveFile(const QString& path, const QByteArray& bytes) {
    return writeFileAtomically(path.toStdString(),
                               std::string_view(bytes.constData(), size_t(bytes.size())));
}

}  // namespace colibri::ui

// SPDX-License-Identifier: GPL-3.0-or-later
// Export and import of one conversation as a file. Both functions read or write the file at once.
#pragma once

#include "app/workbench/chat/conversation.h"
#include "engine/base/status.h"

namespace colibri::ui {

// As JSON if the path ends in ".json", else as Markdown.
Status exportConversation(const Conversation& conversation, const QString& path);

// Reads exported JSON. The conversation gets a new id, so it never replaces an existing one.
Result<Conversation> importConversation(const QString& path);

}  // namespace colibri::ui

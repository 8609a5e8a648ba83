// SPDX-License-Identifier: GPL-3.0-or-later
// Which chat template a model is used with: its own, another of its own, one that many models
// share, or the user's. Kept in the settings, per model.
#pragma once

#include <QString>
#include <QVector>
#include <memory>

#include "app/workbench/backend/session_source.h"

namespace colibri::ui {

struct TemplateChoice {
    enum class Kind { Own, Named, Known, Edited };

    Kind kind = Kind::Own;
    QString name;  // as shown: "ChatML"
    QString text;  // Jinja; "": the model has no template of its own

    bool operator==(const TemplateChoice&) const = default;
    // nullptr for the model's own. Errors: BadInput "template:line:column: what".
    Result<std::shared_ptr<const ChatTemplate>> parse() const;

    // The one kept for the model; its own where that one is no longer there.
    static TemplateChoice load(const ModelFacts& model);
    void store(const ModelFacts& model) const;
    // All that can be chosen, the model's own first; the user's last, where there is one.
    static QVector<TemplateChoice> all(const ModelFacts& model);
};

// Where a template is wrong; both from 1, 0: not known.
struct TemplateFault {
    int line = 0, column = 0;
    QString what;
};
TemplateFault templateFault(const Status& status);

}  // namespace colibri::ui

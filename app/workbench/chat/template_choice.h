// SPDX-License-Identifier: GPL-3.0-or-later
// The chat template that the user chose for a model: its own, another one of the model, a common
// one, or one of the user. Stored in the settings for each model. GUI thread only.
#pragma once

#include <QString>
#include <QVector>
#include <memory>

#include "app/workbench/backend/session_source.h"

namespace colibri::ui {

struct TemplateChoice {
    enum class Kind { Own, Named, Known, Edited };

    Kind kind = Kind::Own;
    QString name;  // to display: "ChatML"
    QString text;  // Jinja; "": the model has no template of its own

    bool operator==(const TemplateChoice&) const = default;
    // nullptr: the model's own. Errors: BadInput "template:line:column: what".
    Result<std::shared_ptr<const ChatTemplate>> parse() const;

    // The stored choice; the model's own if that template no longer exists.
    static TemplateChoice load(const ModelFacts& model);
    void store(const ModelFacts& model) const;
    // All choices: the model's own first, the one of the user last, if any.
    static QVector<TemplateChoice> all(const ModelFacts& model);
};

// The position of an error in a template, from 1; 0: not known.
struct TemplateFault {
    int line = 0, column = 0;
    QString what;
};
TemplateFault templateFault(const Status& status);

}  // namespace colibri::ui

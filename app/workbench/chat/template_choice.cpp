// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/chat/template_choice.h"

#include <QRegularExpression>
#include <QSettings>
#include <QUrl>

#include "app/workbench/platform/settings.h"
#include "app/workbench/platform/text.h"
#include "engine/text/known_templates.h"

namespace colibri::ui {
namespace {

using ChoiceKind = TemplateChoice::Kind;

constexpr const char* kTemplateName = "template";

QString groupOf(const ModelFacts& model) {
    return "chat_templates/" + QString::fromLatin1(QUrl::toPercentEncoding(model.name));
}

QString choiceKey(const TemplateChoice& choice) {
    switch (choice.kind) {
        case ChoiceKind::Named:
            return "model:" + choice.name;
        case ChoiceKind::Known:
            return "known:" + choice.name;
        case ChoiceKind::Edited:
            return "edited";
        case ChoiceKind::Own:
            break;
    }
    return {};
}

}  // namespace

Result<std::shared_ptr<const ChatTemplate>> TemplateChoice::parse() const {
    if (kind == ChoiceKind::Own) return std::shared_ptr<const ChatTemplate>();
    auto parsed = ChatTemplate::parse(text.toStdString(), kTemplateName);
    if (!parsed) return parsed.status();
    return std::shared_ptr<const ChatTemplate>(std::move(*parsed));
}

QVector<TemplateChoice> TemplateChoice::all(const ModelFacts& model) {
    QVector<TemplateChoice> out;
    const bool own = !model.continues;
    out << TemplateChoice{
        ChoiceKind::Own, own ? QString("Model's own") : QString("None: continue a text"),
        own && !model.templates.empty() ? str(model.templates.front().text) : QString()};
    for (size_t i = own ? 1 : 0; i < model.templates.size(); ++i)
        out << TemplateChoice{ChoiceKind::Named, str(model.templates[i].name),
                              str(model.templates[i].text)};
    for (const KnownTemplate& known : knownTemplates())
        out << TemplateChoice{ChoiceKind::Known, str(std::string(known.name)),
                              str(std::string(known.text))};
    const QString edited = settings().value(groupOf(model) + "/edited").toString();
    if (!edited.isEmpty()) out << TemplateChoice{ChoiceKind::Edited, "Edited", edited};
    return out;
}

TemplateChoice TemplateChoice::load(const ModelFacts& model) {
    const QString key = settings().value(groupOf(model) + "/choice").toString();
    const QVector<TemplateChoice> choices = all(model);
    for (const TemplateChoice& choice : choices)
        if (choiceKey(choice) == key) return choice;
    return choices.first();
}

void TemplateChoice::store(const ModelFacts& model) const {
    QSettings& store = settings();
    const QString group = groupOf(model);
    if (kind == ChoiceKind::Own)
        store.remove(group + "/choice");
    else
        store.setValue(group + "/choice", choiceKey(*this));
    if (kind == ChoiceKind::Edited) store.setValue(group + "/edited", text);
}

TemplateFault templateFault(const Status& status) {
    static const QRegularExpression position(QString("^%1:(\\d+):(\\d+): ").arg(kTemplateName));
    const QString text = str(status.text());
    const QRegularExpressionMatch match = position.match(text);
    if (!match.hasMatch()) return {0, 0, text};
    return {match.captured(1).toInt(), match.captured(2).toInt(), text.mid(match.capturedLength())};
}

}  // namespace colibri::ui

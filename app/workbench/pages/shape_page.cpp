// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/pages/shape_page.h"

#include <QBoxLayout>

#include "app/workbench/pages/load_facts.h"
#include "app/workbench/pages/shape_panel.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/message_strip.h"
#include "app/workbench/widgets/page_parts.h"

namespace colibri::ui {
namespace {

constexpr int kWidestPanel = 720;

}  // namespace

ShapePage::ShapePage(QWidget* parent) : JobPage("Make model", parent) {
    setTitle("Try a shape",
             "Random weights in the shape of a real model: tune this machine before the download");
    headRow()->addStretch(1);
    auto* facts = new QWidget;
    auto* left = plainColumn(facts);
    left->addWidget(new PanelHead("Model"));
    m_facts = new FactList;
    left->addWidget(m_facts);
    left->addWidget(new PanelHead("One token", {}, true));
    m_tokenFacts = new FactList;
    left->addWidget(m_tokenFacts);
    left->addStretch(1);
    auto* choices = new QWidget;
    auto* right = plainColumn(choices);
    right->addWidget(new PanelHead("Make", "output is random; timings and sizes are realistic"));
    m_panel = new ShapePanel;
    m_panel->setMaximumWidth(kWidestPanel);
    right->addWidget(m_panel);
    right->addStretch(1);
    setColumns(facts, choices);
    connect(m_panel, &ShapePanel::changed, this, &ShapePage::refreshState);
    connect(m_panel, &ShapePanel::planned, this, [this](const ContainerInfo& info) {
        QVector<Fact> model = modelFactList(info);
        model.back().name = "Created as";  // it was not converted
        m_facts->setFacts(model);
        m_tokenFacts->setFacts(tokenFactList(info, {}).mid(0, 4));
    });
    refreshState();
}

void ShapePage::begin() {
    if (busy()) return;
    strip()->hide();
    m_panel->look();
}

void ShapePage::refreshState() {
    JobPage::refreshState();
    setCommand(m_panel->command());
    mainButton()->setEnabled(!busy() && m_panel->ready());
    m_panel->setEnabled(!busy());
}

void ShapePage::start() {
    if (!mainButton()->isEnabled()) return;
    m_panel->keepFolder();
    const SynthOptions options = m_panel->options();
    run(
        "Making " + str(options.target.filename().string()),
        [options](const ProgressFn& progress, const CancelFlag* cancel) {
            return synthesiseModel(options, progress, cancel).status();
        },
        [this, options](const Status& status) {
            ended(status, exactText(options.target.string()));
        });
}

void ShapePage::ended(const Status& status, const QString& folder) {
    m_panel->look();
    if (status.ok()) {
        emit made(folder);
    } else if (status.code() == Code::Cancelled) {
        strip()->showMessage(MessageStrip::Kind::Info, "The model was not created.",
                             "Its partial files were deleted.");
        strip()->addClose();
    } else {
        strip()->showError("The model could not be created.", status);
    }
}

}  // namespace colibri::ui

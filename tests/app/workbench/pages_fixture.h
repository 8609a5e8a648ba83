// SPDX-License-Identifier: GPL-3.0-or-later
// The start pages over a small converted model, for the tests of pages.
#pragma once

#include <QTemporaryDir>
#include <QtTest>
#include <filesystem>
#include <memory>

#include "app/workbench/pages/load_page.h"
#include "app/workbench/pages/start_pages.h"
#include "app/workbench/widgets/message_strip.h"
#include "test_model.h"

namespace colibri::ui {

class PagesFixture : public QObject {
protected:
    void prepare() {
        qputenv("XDG_CACHE_HOME", m_dir.filePath("cache").toUtf8());
        Theme::get().install();
        Theme::get().setMode(Theme::Mode::Dark);
        m_model = m_dir.filePath("tiny");
        QCOMPARE(convertGolden("qwen3moe", m_model), QString());
    }
    void openPages() {
        m_host = std::make_unique<EngineHost>(m_dir.filePath(QString("data-%1").arg(++m_run)));
        m_pages = std::make_unique<StartPages>(*m_host);
        m_pages->resize(1440, 836);
        m_pages->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_pages.get()));
    }
    void closePages() {
        m_pages.reset();
        m_host.reset();
    }
    void open(const QString& path) {
        m_pages->openPath(path);
        QVERIFY(waitUntil([&] {
            return m_pages->current() == m_pages->load() || m_pages->strip()->isVisible() ||
                   m_pages->current() == m_pages->session();
        }));
    }
    QString copyModel(const char* name) {
        const QString copy = m_dir.filePath(name);
        std::filesystem::copy(m_model.toStdString(), copy.toStdString(),
                              std::filesystem::copy_options::recursive);
        return copy;
    }

    QTemporaryDir m_dir;
    QString m_model;
    std::unique_ptr<EngineHost> m_host;
    std::unique_ptr<StartPages> m_pages;
    int m_run = 0;
};

}  // namespace colibri::ui

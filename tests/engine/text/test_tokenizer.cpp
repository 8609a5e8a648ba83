// SPDX-License-Identifier: GPL-3.0-or-later
#include <QtTest>

#include "engine/text/tokenizer.h"

using namespace colibri;

class TestTokenizer : public QObject {
    Q_OBJECT
private slots:
    void outOfRange() {
        auto t = Tokenizer::load(std::string(COLIBRI_GOLDEN_DIR) + "/tokenizers/gpt2");
        QVERIFY(bool(t));
        QCOMPARE((*t)->decode({-1, 1 << 30, INT32_MIN, INT32_MAX}), std::string());
    }
};
QTEST_GUILESS_MAIN(TestTokenizer)
#include "test_tokenizer.moc"

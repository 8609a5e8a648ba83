// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>

#include <cmath>
#include <limits>

#include "engine/base/format.h"
#include "engine/base/printable.h"

using namespace colibri;

class TestFormat : public QObject {
    Q_OBJECT
private slots:
    void counts() {
        QCOMPARE(formatCount(0), "0");
        QCOMPARE(formatCount(999), "999");
        QCOMPARE(formatCount(-1062), "-1,062");
        QCOMPARE(formatCount(180043776), "180,043,776");
    }
    void threeSignificantDigits() {
        QCOMPARE(formatSig(36.44), "36.4");
        QCOMPARE(formatSig(9.996), "10.0");
        QCOMPARE(formatSig(99.96), "100");
        QCOMPARE(formatSig(0.01234), "0.0123");
        QCOMPARE(formatSig(1234.0), "1,234");
        QCOMPARE(formatSig(0), "0");
    }
    void numbersOfManyDigitsHaveAPowerOfTen() {
        QCOMPARE(formatSig(1e30, 6), "1e30");
        QCOMPARE(formatSig(-2.5e15), "-2.5e15");
        QCOMPARE(formatSig(1e-6, 6), "1e-6");
        QCOMPARE(formatSig(9.9999e-9), "1e-8");
        QCOMPARE(formatSig(999e9), "999,000,000,000");
    }
    void fixedNeverShowsMinusZero() {
        QCOMPARE(formatFixed(-0.04, 1), "0.0");
        QCOMPARE(formatFixed(-0.06, 1), "-0.1");
        QCOMPARE(formatFixed(12345.678, 2), "12,345.68");
    }
    void unitsStepUpWhereRoundingWouldShowAThousand() {
        QCOMPARE(formatGiB(1023), "1,023 B");
        QCOMPARE(formatGiB(4.64 * 1048576), "4.64 MiB");
        QCOMPARE(formatGiB(1024.0 * 1024 * 1024 - 1), "1.00 GiB");
        QCOMPARE(formatRate(4.9e9), "4.90 GB/s");
        QCOMPARE(formatRate(25e6), "25.0 MB/s");
        QCOMPARE(formatRate(999.9e6), "1.00 GB/s");
    }
    void unknownIsNotZero() {
        const double nan = std::numeric_limits<double>::quiet_NaN();
        for (const auto& text :
             {formatFixed(nan, 1), formatSig(nan), formatGiB(nan), formatRate(INFINITY),
              formatMs(nan), formatPercent(nan), formatClock(nan)}) {
            QCOMPARE(text, "n/a");
        }
    }
    void times() {
        QCOMPARE(formatMs(36.2), "36.2 ms");
        QCOMPARE(formatMs(0.45), "0.450 ms");
        QCOMPARE(formatMs(0.045), "45.0 us");
        QCOMPARE(formatMs(12345), "12.3 s");
        QCOMPARE(formatClock(58.64), "00:58.6");
        QCOMPARE(formatClock(59.96), "01:00.0");
        QCOMPARE(formatClock(3725), "1:02:05");
        QCOMPARE(formatPercent(0.713), "71.3 %");
    }
    void textFromFilesCannotActOnATerminal() {
        QCOMPARE(printable("a\x1b[2Jb\r\n\x7f"), "a\\u001b[2Jb\\u000d\\u000a\\u007f");
        QCOMPARE(printableLines("a\n\tb\r"), "a\n\tb\\u000d");
        // C1 control characters, as characters and as bytes, and characters that change the writing
        // direction.
        QCOMPARE(printable("\xc2\x9b"
                           "31m \x9b"
                           "31m"),
                 "\\u009b31m \\x9b31m");
        QCOMPARE(printable("\xe2\x80\xae"
                           "exe.\xe2\x81\xa6\xe2\x80\xa8"),
                 "\\u202eexe.\\u2066\\u2028");
        QCOMPARE(printable("\xc0\x9b\xed\xa0\x80\xf4\x90\x80\x80\xe2\x80"),
                 "\\xc0\\x9b\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80\\xe2\\x80");
        const std::string fine = "Grüße, 你好, \xf0\x9f\x90\xa6, שלום, a\\u001b";
        QCOMPARE(printable(fine), fine);
    }
};

QTEST_GUILESS_MAIN(TestFormat)
#include "test_format.moc"

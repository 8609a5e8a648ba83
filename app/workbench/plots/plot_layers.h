// SPDX-License-Identifier: GPL-3.0-or-later
// The layers of a PlotCanvas around its graphs: behind them, in front of them, and the cursor.
// The canvas owns them.
#pragma once

#include <qcustomplot.h>

namespace colibri::ui {

class PlotCanvas;

class BackLayer : public QCPLayerable {
    Q_OBJECT
public:
    BackLayer(PlotCanvas* canvas, const QString& layer);

protected:
    void applyDefaultAntialiasingHint(QCPPainter* p) const override { p->setAntialiasing(false); }
    void draw(QCPPainter* p) override;

private:
    PlotCanvas* m_canvas;
};

class FrontLayer : public QCPLayerable {
    Q_OBJECT
public:
    FrontLayer(PlotCanvas* canvas, const QString& layer);

protected:
    void applyDefaultAntialiasingHint(QCPPainter* p) const override { p->setAntialiasing(false); }
    void draw(QCPPainter* p) override;

private:
    PlotCanvas* m_canvas;
};

class OverlayLayer : public QCPLayerable {
    Q_OBJECT
public:
    OverlayLayer(PlotCanvas* canvas, const QString& layer);

protected:
    void applyDefaultAntialiasingHint(QCPPainter* p) const override { p->setAntialiasing(false); }
    void draw(QCPPainter* p) override;

private:
    void drawCursor(QCPPainter* p);
    void drawPlayhead(QCPPainter* p);
    PlotCanvas* m_canvas;
};

}  // namespace colibri::ui

// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/theme/icons.h"

#include <QFile>
#include <QHash>
#include <QPixmap>
#include <QSvgRenderer>
#include <cmath>

namespace colibri::ui {
namespace {

QByteArray iconSource(const QString& name) {
    static QHash<QString, QByteArray> cache;
    const auto it = cache.constFind(name);
    if (it != cache.constEnd()) return *it;
    QFile file(":/icons/" + name + ".svg");
    QByteArray source;
    if (file.open(QIODevice::ReadOnly)) source = file.readAll();
    cache.insert(name, source);
    return source;
}

double strokeFor(double size) {
    return size <= 13 ? 1.9 : size >= 20 ? 1.3 : 1.5;
}

QPixmap iconPixmap(const QString& name, double size, const QColor& color, double stroke,
                   double ratio) {
    static QHash<QString, QPixmap> cache;
    const QString key =
        QString("%1|%2|%3|%4|%5").arg(name).arg(size).arg(color.name()).arg(stroke).arg(ratio);
    const auto it = cache.constFind(key);
    if (it != cache.constEnd()) return *it;
    QByteArray source = iconSource(name);
    source.replace("currentColor", color.name().toUtf8());
    source.replace("stroke-width=\"1.5\"", "stroke-width=\"" + QByteArray::number(stroke) + "\"");
    QSvgRenderer renderer(source);
    QPixmap pixmap(QSize(1, 1) * int(std::ceil(size * ratio)));
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    renderer.render(&painter, QRectF(0, 0, size * ratio, size * ratio));
    painter.end();
    pixmap.setDevicePixelRatio(ratio);
    if (cache.size() > 2000) cache.clear();
    cache.insert(key, pixmap);
    return pixmap;
}

}  // namespace

void paintIcon(QPainter& painter, const QString& name, const QRectF& rect, const QColor& color,
               double stroke) {
    const double ratio = painter.device() ? painter.device()->devicePixelRatioF() : 1;
    const double size = rect.width();
    const QPixmap pixmap =
        iconPixmap(name, size, color, stroke > 0 ? stroke : strokeFor(size), ratio);
    painter.drawPixmap(rect.topLeft(), pixmap);
}

QIcon makeIcon(const QString& name, const QColor& color, int size) {
    QIcon icon;
    for (const double ratio : {1.0, 2.0})
        icon.addPixmap(iconPixmap(name, size, color, strokeFor(size), ratio));
    return icon;
}

}  // namespace colibri::ui

package org.edgefl.app.screens;

import android.content.Context;
import android.graphics.Canvas;
import android.graphics.Paint;
import android.util.AttributeSet;
import android.view.View;
import java.util.List;
import java.util.function.DoubleFunction;
import org.edgefl.app.R;

/** Bars over rounds, oldest first, with labelled axes. Its words are next to it and in its description. */
public final class CostChart extends View {
    /**
     * One bar.
     *
     * @param filled whether it was measured; an estimate is an outline
     */
    record Point(int round, double value, boolean filled) {}

    /** A chart has room for this many bars at least, so that a few of them are not as wide as walls. */
    private static final int LEAST_PLACES = 8;

    private final Paint bar = new Paint(Paint.ANTI_ALIAS_FLAG);
    private final Paint axis = new Paint(Paint.ANTI_ALIAS_FLAG);
    private final Paint label = new Paint(Paint.ANTI_ALIAS_FLAG);
    private final float unit = getResources().getDisplayMetrics().density;
    private List<Point> points = List.of();
    private DoubleFunction<String> words = String::valueOf;

    /** A chart in a layout. */
    public CostChart(Context context, AttributeSet attributes) {
        super(context, attributes);
        bar.setColor(context.getColor(R.color.accent));
        bar.setStrokeWidth(1.5f * unit);
        axis.setStrokeWidth(unit);
        label.setColor(context.getColor(R.color.text_soft));
        label.setTextSize(getResources().getDimension(R.dimen.chart_text));
    }

    /** Show values, and write those of the axis with their unit. */
    void show(List<Point> shown, DoubleFunction<String> inWords) {
        points = shown;
        words = inWords;
        invalidate();
    }

    @Override
    protected void onDraw(Canvas canvas) {
        if (points.isEmpty()) {
            return;
        }
        double most = round(points.stream().mapToDouble(Point::value).max().orElse(1));
        float line = label.getFontSpacing();
        float gap = 6 * unit;
        String[] ticks = {words.apply(most), words.apply(most / 2), words.apply(0)};
        float margin = gap;
        for (String tick : ticks) {
            margin = Math.max(margin, label.measureText(tick) + gap);
        }
        boolean mirrored = getLayoutDirection() == LAYOUT_DIRECTION_RTL;
        float left = mirrored ? gap : margin;
        float right = getWidth() - (mirrored ? margin : gap);
        float top = line / 2 + gap;
        float bottom = getHeight() - line - gap;
        for (int i = 0; i < ticks.length; i++) {
            float y = top + (bottom - top) * i / (ticks.length - 1);
            axis.setColor(getContext().getColor(i == ticks.length - 1 ? R.color.outline : R.color.track));
            canvas.drawLine(left, y, right, y, axis);
            float x = mirrored ? getWidth() - label.measureText(ticks[i]) : left - gap - label.measureText(ticks[i]);
            canvas.drawText(ticks[i], x, y + label.getTextSize() / 3, label);
        }
        drawBars(canvas, new float[] {left, top, right, bottom}, most, mirrored);
        // Few bars do not fill the chart: the last label is below the last of them.
        float filled = (right - left) * Math.min(1, (float) points.size() / LEAST_PLACES);
        float end = Math.max(filled, 2 * label.measureText(last()) + gap);
        drawRounds(canvas, mirrored ? right - end : left, mirrored ? right : left + end, mirrored);
    }

    private void drawBars(Canvas canvas, float[] box, double most, boolean mirrored) {
        float each = (box[2] - box[0]) / Math.max(points.size(), LEAST_PLACES);
        float wide = Math.min(each * 0.7f, 24 * unit);
        for (int i = 0; i < points.size(); i++) {
            float middle = mirrored ? box[2] - (i + 0.5f) * each : box[0] + (i + 0.5f) * each;
            float top = (float) (box[3] - (box[3] - box[1]) * points.get(i).value() / most);
            bar.setStyle(points.get(i).filled() ? Paint.Style.FILL : Paint.Style.STROKE);
            canvas.drawRoundRect(middle - wide / 2, top, middle + wide / 2, box[3], 3 * unit, 3 * unit, bar);
        }
    }

    private String last() {
        return getContext().getString(R.string.round, points.get(points.size() - 1).round());
    }

    private void drawRounds(Canvas canvas, float left, float right, boolean mirrored) {
        String first = getContext().getString(R.string.round, points.get(0).round());
        String last = last();
        float y = getHeight() - label.getFontMetrics().descent;
        float lastAt = right - label.measureText(last);
        boolean fits = points.size() > 1 && left + label.measureText(first) < lastAt;
        canvas.drawText(mirrored && fits ? last : first, left, y, label);
        if (fits) {
            canvas.drawText(mirrored ? first : last, lastAt, y, label);
        }
    }

    /** Return the next of 1, 2, 5, 10, ... at or above a value. */
    static double round(double value) {
        double power = Math.pow(10, Math.floor(Math.log10(Math.max(value, 1e-9))));
        for (double step : new double[] {1, 2, 5}) {
            if (value <= step * power * (1 + 1e-9)) {
                return step * power;
            }
        }
        return 10 * power;
    }
}

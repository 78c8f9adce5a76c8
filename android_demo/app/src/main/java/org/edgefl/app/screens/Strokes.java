package org.edgefl.app.screens;

import android.graphics.Canvas;
import android.graphics.Paint;
import android.graphics.Path;
import android.os.Bundle;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Lines that a finger drew, in shares of the paper's side, so that they outlive a change of its size. */
final class Strokes {
    /** The pen's width as a share of the paper's side. */
    static final float PEN = 1 / 13f;

    private static final String STROKE = "stroke";
    private static final float NEAR = 0.005f;
    // The system refuses saved state of a megabyte; nobody draws as much as this.
    private static final int MOST_NUMBERS = 16_000;

    private final List<float[]> lines = new ArrayList<>();
    private int numbers;

    boolean isEmpty() {
        return lines.isEmpty();
    }

    int count() {
        return lines.size();
    }

    /** Begin a line. */
    void begin(float x, float y) {
        if (numbers < MOST_NUMBERS) {
            lines.add(new float[] {x, y});
            numbers += 2;
        }
    }

    /** Go on with the last line; steps that nobody sees are left out. */
    void go(float x, float y) {
        if (lines.isEmpty() || numbers >= MOST_NUMBERS) {
            return;
        }
        float[] line = lines.get(lines.size() - 1);
        if (Math.hypot(x - line[line.length - 2], y - line[line.length - 1]) < NEAR) {
            return;
        }
        float[] longer = Arrays.copyOf(line, line.length + 2);
        longer[line.length] = x;
        longer[line.length + 1] = y;
        lines.set(lines.size() - 1, longer);
        numbers += 2;
    }

    /** Take the last line away. */
    void undo() {
        if (!lines.isEmpty()) {
            numbers -= lines.remove(lines.size() - 1).length;
        }
    }

    void clear() {
        lines.clear();
        numbers = 0;
    }

    /** Draw the lines on paper of a size in pixels. */
    void draw(Canvas canvas, float side, int colour) {
        Paint ink = new Paint(Paint.ANTI_ALIAS_FLAG);
        ink.setStyle(Paint.Style.STROKE);
        ink.setStrokeCap(Paint.Cap.ROUND);
        ink.setStrokeJoin(Paint.Join.ROUND);
        ink.setStrokeWidth(side * PEN);
        ink.setColor(colour);
        for (float[] line : lines) {
            Path path = new Path();
            path.moveTo(line[0] * side, line[1] * side);
            // A line of one point is a dot: a path without a length has no round ends.
            path.lineTo(line[0] * side + 0.01f, line[1] * side);
            for (int i = 2; i < line.length; i += 2) {
                path.lineTo(line[i] * side, line[i + 1] * side);
            }
            canvas.drawPath(path, ink);
        }
    }

    void save(Bundle state) {
        for (int i = 0; i < lines.size(); i++) {
            state.putFloatArray(STROKE + i, lines.get(i));
        }
    }

    void restore(Bundle state) {
        clear();
        for (int i = 0; state.containsKey(STROKE + i); i++) {
            float[] line = state.getFloatArray(STROKE + i);
            lines.add(line);
            numbers += line.length;
        }
    }
}

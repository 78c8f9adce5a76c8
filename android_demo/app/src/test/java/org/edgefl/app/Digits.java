package org.edgefl.app;

import java.util.Random;

/** Digits as a finger draws them: lines of points, in shares of the paper's side, a little different every time. */
final class Digits {
    /** The classes that it can draw. */
    static final int[] CLASSES = {0, 1, 4, 7};

    private static final float SHAKE = 0.05f;
    private static final int CORNERS = 12;

    private final Random random = new Random(22);

    /** The lines of a digit, in the order in which people draw them. */
    float[][] draw(int digit) {
        float right = shake();
        float down = shake();
        float[][] lines = switch (digit) {
            case 0 -> new float[][] {circle()};
            case 1 -> new float[][] {{0.5f, 0.15f, 0.5f, 0.85f}};
            case 4 -> new float[][] {{0.6f, 0.15f, 0.25f, 0.6f, 0.8f, 0.6f}, {0.6f, 0.4f, 0.6f, 0.88f}};
            case 7 -> new float[][] {{0.25f, 0.2f, 0.75f, 0.2f, 0.45f, 0.85f}};
            default -> throw new IllegalArgumentException("nobody has learned to draw " + digit);
        };
        for (float[] line : lines) {
            for (int i = 0; i < line.length; i += 2) {
                line[i] += right + shake() / 2;
                line[i + 1] += down + shake() / 2;
            }
        }
        return lines;
    }

    private float shake() {
        return SHAKE * (2 * random.nextFloat() - 1);
    }

    private static float[] circle() {
        float[] points = new float[2 * CORNERS + 2];
        for (int i = 0; i <= CORNERS; i++) {
            double angle = 2 * Math.PI * i / CORNERS;
            points[2 * i] = (float) (0.5 - 0.22 * Math.sin(angle));
            points[2 * i + 1] = (float) (0.5 - 0.33 * Math.cos(angle));
        }
        return points;
    }
}

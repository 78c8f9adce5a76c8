package org.edgefl.app.samples;

/**
 * A picture as numbers from 0 (black) to 1 (white), in one channel or three, without transparency.
 *
 * @param channels 1 for grey, 3 for red, green and blue
 * @param values channel by channel, each row by row
 */
record Picture(int channels, int width, int height, float[] values) {
    /** A square part of a picture, which may reach beyond its edges. */
    record Square(double left, double top, double side) {}

    /**
     * Read ARGB pixels.
     *
     * @param behind the grey that shows through transparent pixels, from 0 to 1
     */
    static Picture of(int[] pixels, int width, int height, int channels, float behind) {
        if (width < 1 || height < 1 || pixels.length != (long) width * height) {
            throw new IllegalArgumentException(pixels.length + " pixels for " + width + " x " + height);
        }
        float[] values = new float[channels * pixels.length];
        for (int i = 0; i < pixels.length; i++) {
            float cover = (pixels[i] >>> 24) / 255f;
            float red = over(pixels[i] >> 16, cover, behind);
            float green = over(pixels[i] >> 8, cover, behind);
            float blue = over(pixels[i], cover, behind);
            if (channels == 1) {
                // Luma of ITU-R BT.601, as most libraries make pictures grey.
                values[i] = 0.299f * red + 0.587f * green + 0.114f * blue;
            } else {
                values[i] = red;
                values[pixels.length + i] = green;
                values[2 * pixels.length + i] = blue;
            }
        }
        return new Picture(channels, width, height, values);
    }

    private static float over(int component, float cover, float behind) {
        return cover * (component & 255) / 255f + (1 - cover) * behind;
    }

    /** The largest square in the middle. */
    Square middle() {
        int side = Math.min(width, height);
        return new Square((width - side) / 2.0, (height - side) / 2.0, side);
    }

    /**
     * Scale a square of this picture: every new pixel is the mean of the area that it covers.
     *
     * @param beyond the grey outside of this picture
     */
    Picture scaled(Square from, int newWidth, int newHeight, float beyond) {
        float[] made = new float[channels * newWidth * newHeight];
        double stepX = from.side() / newWidth;
        double stepY = from.side() / newHeight;
        int next = 0;
        for (int channel = 0; channel < channels; channel++) {
            for (int y = 0; y < newHeight; y++) {
                for (int x = 0; x < newWidth; x++) {
                    made[next++] = mean(channel, from.left() + x * stepX, from.top() + y * stepY, stepX, stepY, beyond);
                }
            }
        }
        return new Picture(channels, newWidth, newHeight, made);
    }

    private float mean(int channel, double left, double top, double wide, double high, float beyond) {
        double sum = 0;
        double inside = 0;
        int lastY = (int) Math.min(Math.ceil(top + high), height);
        int lastX = (int) Math.min(Math.ceil(left + wide), width);
        for (int y = (int) Math.max(Math.floor(top), 0); y < lastY; y++) {
            double coverY = Math.min(y + 1, top + high) - Math.max(y, top);
            for (int x = (int) Math.max(Math.floor(left), 0); x < lastX; x++) {
                double cover = coverY * (Math.min(x + 1, left + wide) - Math.max(x, left));
                sum += cover * values[(channel * height + y) * width + x];
                inside += cover;
            }
        }
        double all = wide * high;
        return (float) ((sum + Math.max(all - inside, 0) * beyond) / all);
    }

    /** Swap black and white. */
    Picture inverted() {
        float[] made = new float[values.length];
        for (int i = 0; i < made.length; i++) {
            made[i] = 1 - values[i];
        }
        return new Picture(channels, width, height, made);
    }

    /** The mean of the outermost pixels: what the ink of a drawing rarely reaches. */
    float border() {
        double sum = 0;
        int count = 0;
        for (int channel = 0; channel < channels; channel++) {
            for (int y = 0; y < height; y++) {
                boolean edge = y == 0 || y == height - 1;
                for (int x = 0; x < width; x += edge || width == 1 ? 1 : width - 1) {
                    sum += values[(channel * height + y) * width + x];
                    count++;
                }
            }
        }
        return (float) (sum / count);
    }

    /** Return the smallest box around everything that is above a level: left, top, right, bottom; null without any. */
    int[] boxAbove(float level) {
        int[] box = {width, height, 0, 0};
        for (int i = 0; i < values.length; i++) {
            if (values[i] > level) {
                int x = i % width;
                int y = i / width % height;
                box[0] = Math.min(box[0], x);
                box[1] = Math.min(box[1], y);
                box[2] = Math.max(box[2], x + 1);
                box[3] = Math.max(box[3], y + 1);
            }
        }
        return box[2] == 0 ? null : box;
    }
}

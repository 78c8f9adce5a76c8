package org.edgefl.app.samples;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Base64;
import org.edgefl.app.samples.Picture.Square;
import org.edgefl.data.InvalidData;
import org.edgefl.data.NumpyArray;
import org.edgefl.json.JsonObject;
import org.edgefl.values.SampleSpec;

/**
 * Turns pictures into samples of a federation.
 *
 * <p>Any picture is cut to its middle square and scaled by area; it is grey if the federation's are. A drawing is ink on
 * paper, and is made to look like the federation's own samples. The federation's example decides where there is one:
 * whether the paper is dark or light, and how much of the square the ink fills. Without one the paper is dark and the
 * ink light, as in handwritten digits everywhere, and the drawing keeps its place and size. Which colours the screen
 * draws with makes no difference.
 */
public final class PictureSamples {
    /** The source of samples that the owner drew. */
    public static final String DRAWN = "drawn";

    private static final float INK = 0.3f;

    private PictureSamples() {}

    /** Return whether a sample of the federation is a picture of one channel or three, and small enough to be kept. */
    public static boolean arePictures(SampleSpec spec) {
        long[] shape = spec.shape();
        return shape.length == 3 && (shape[0] == 1 || shape[0] == 3)
            && SampleForm.of(spec).bytes() <= SqliteSampleStore.MOST_BYTES;
    }

    /**
     * Return a picture as a sample: raw numbers of the federation's type, row-major, little-endian.
     *
     * @param source {@code drawn} for a drawing; anything else is taken as it is
     * @param pixels ARGB, row by row
     */
    public static byte[] raw(SampleSpec spec, String source, int[] pixels, int width, int height) {
        if (!arePictures(spec)) {
            throw new InvalidData("the federation's samples are not pictures", "Import a CSV or .npz file.");
        }
        int channels = (int) spec.shape()[0];
        int rows = (int) spec.shape()[1];
        int columns = (int) spec.shape()[2];
        Picture made;
        if (source.equals(DRAWN)) {
            Picture example = example(spec);
            boolean lightPaper = example != null && example.border() > 0.5f;
            Picture inkOnDark = inkOnDark(pixels, width, height, channels);
            Picture dark = inkOnDark.scaled(inkSquare(inkOnDark, example, lightPaper), columns, rows, 0);
            made = lightPaper ? dark.inverted() : dark;
        } else {
            Picture whole = Picture.of(pixels, width, height, channels, 1);
            made = whole.scaled(whole.middle(), columns, rows, 1);
        }
        return numbers(spec, made);
    }

    /** A drawing as light ink on dark paper, whichever colours it has; transparent paper takes the ink's opposite. */
    private static Picture inkOnDark(int[] pixels, int width, int height, int channels) {
        double light = 0;
        double cover = 0;
        for (int pixel : pixels) {
            int alpha = pixel >>> 24;
            light += alpha * ((pixel >> 16 & 255) + (pixel >> 8 & 255) + (pixel & 255)) / 765.0;
            cover += alpha;
        }
        boolean darkInk = cover > 0 && light / cover < 0.5;
        Picture drawing = Picture.of(pixels, width, height, channels, darkInk ? 1 : 0);
        return drawing.border() > 0.5f ? drawing.inverted() : drawing;
    }

    /** The part of a drawing that becomes the sample: its ink fills as much of it as the example's does. */
    private static Square inkSquare(Picture drawing, Picture example, boolean lightPaper) {
        int[] ink = drawing.boxAbove(INK);
        int[] wanted = example == null ? null : (lightPaper ? example.inverted() : example).boxAbove(INK);
        if (ink == null || wanted == null) {
            return drawing.middle();
        }
        double share = Math.max((wanted[2] - wanted[0]) / (double) example.width(),
            (wanted[3] - wanted[1]) / (double) example.height());
        double side = Math.max(ink[2] - ink[0], ink[3] - ink[1]) / share;
        return new Square((ink[0] + ink[2] - side) / 2, (ink[1] + ink[3] - side) / 2, side);
    }

    /** The federation's example as a picture, or null if there is none that can be read. */
    private static Picture example(SampleSpec spec) {
        float[] numbers = exampleNumbers(spec);
        if (numbers == null) {
            return null;
        }
        double white = white(spec);
        float[] values = new float[numbers.length];
        for (int i = 0; i < values.length; i++) {
            values[i] = (float) (numbers[i] / white);
        }
        return new Picture((int) spec.shape()[0], (int) spec.shape()[2], (int) spec.shape()[1], values);
    }

    private static float[] exampleNumbers(SampleSpec spec) {
        JsonObject example = spec.example();
        if (example == null || spec.rawDtype() == null) {
            return null;
        }
        SampleForm form = SampleForm.of(spec);
        byte[] raw = Base64.getDecoder().decode(example.text("raw"));
        if (raw.length != form.bytes()) {
            return null;
        }
        NumpyArray array = new NumpyArray(form.dtype(), new long[] {form.numbers()}, ByteBuffer.wrap(raw));
        float[] numbers = new float[form.numbers()];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = array.asFloat(i);
        }
        return numbers;
    }

    /**
     * The number that stands for white. For bytes it is 255. For floats it is what the normalisation divides by; without
     * one it is the least of 1, 16 (small digits are often counted so) and 255 that the example's numbers do not exceed.
     */
    public static double white(SampleSpec spec) {
        SampleForm form = SampleForm.of(spec);
        if (!form.isFloat()) {
            return Math.min(form.most(), 255);
        }
        if (spec.normalisation() != null) {
            return spec.normalisation().scale();
        }
        float most = 0;
        float[] numbers = exampleNumbers(spec);
        for (int i = 0; numbers != null && i < numbers.length; i++) {
            most = Math.max(most, numbers[i]);
        }
        return most <= 1 ? 1 : most <= 16 ? 16 : 255;
    }

    private static byte[] numbers(SampleSpec spec, Picture picture) {
        SampleForm form = SampleForm.of(spec);
        double white = white(spec);
        ByteBuffer out = ByteBuffer.allocate((int) form.bytes()).order(ByteOrder.LITTLE_ENDIAN);
        for (float value : picture.values()) {
            double number = white * Math.min(Math.max(value, 0), 1);
            form.put(out, form.isFloat() ? number : Math.rint(number));
        }
        return out.array();
    }
}

package org.edgefl.app.screens;

import android.content.res.Resources;
import android.graphics.Bitmap;
import android.graphics.Color;
import android.graphics.drawable.BitmapDrawable;
import android.graphics.drawable.Drawable;
import java.nio.ByteBuffer;
import org.edgefl.app.samples.PictureSamples;
import org.edgefl.data.NumpyArray;
import org.edgefl.values.SampleSpec;

/** Shows samples that are pictures as the model sees them: every number a pixel, nothing smoothed. */
final class SamplePicture {
    private SamplePicture() {}

    /** Return a picture of a sample; null if samples are not pictures, or if it is one of another federation. */
    static Drawable of(Resources resources, SampleSpec spec, byte[] raw) {
        if (!PictureSamples.arePictures(spec)) {
            return null;
        }
        int channels = (int) spec.shape()[0];
        int height = (int) spec.shape()[1];
        int width = (int) spec.shape()[2];
        float[] numbers = numbers(spec, raw, channels * height * width);
        if (numbers == null) {
            return null;
        }
        int area = height * width;
        float white = (float) PictureSamples.white(spec);
        int[] pixels = new int[area];
        for (int i = 0; i < area; i++) {
            int red = shade(numbers[i] / white);
            pixels[i] = channels == 1 ? Color.rgb(red, red, red)
                : Color.rgb(red, shade(numbers[area + i] / white), shade(numbers[2 * area + i] / white));
        }
        BitmapDrawable made =
            new BitmapDrawable(resources, Bitmap.createBitmap(pixels, width, height, Bitmap.Config.ARGB_8888));
        made.setFilterBitmap(false);
        made.setAntiAlias(false);
        return made;
    }

    private static float[] numbers(SampleSpec spec, byte[] raw, int count) {
        String dtype = spec.rawDtype() == null ? spec.dtype() : spec.rawDtype();
        int each = switch (dtype) {
            case "bool", "uint8", "int8" -> 1;
            case "uint16", "int16" -> 2;
            case "int32", "float32" -> 4;
            default -> 8;
        };
        if (raw.length != (long) count * each) {
            return null;
        }
        NumpyArray array = new NumpyArray(dtype, new long[] {count}, ByteBuffer.wrap(raw));
        float[] numbers = new float[count];
        for (int i = 0; i < count; i++) {
            numbers[i] = array.asFloat(i);
        }
        return numbers;
    }

    private static int shade(float light) {
        return Math.round(255 * Math.max(0, Math.min(1, light)));
    }
}

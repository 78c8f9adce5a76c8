package org.edgefl.app.screens;

import android.graphics.Bitmap;
import android.graphics.Color;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.edgefl.values.SampleSpec;

/**
 * How a federation keeps pictures: to draw one for it, and to show one of its samples.
 *
 * @param channels 1 for grey, 3 for red, green and blue; the first axis of a sample
 * @param white the raw number of full light
 */
record PictureFormat(int channels, int height, int width, String dtype, double white) {
    private static final int LEAST = 4;
    private static final int MOST = 1024;

    /** Return how pictures are kept, or null if a sample of the federation is not a picture. */
    static PictureFormat of(SampleSpec spec) {
        long[] shape = spec.shape();
        boolean flat = shape.length == 2;
        if (!spec.dtype().equals("float32") || !(flat || shape.length == 3)) {
            return null;
        }
        long channels = flat ? 1 : shape[0];
        long height = shape[shape.length - 2];
        long width = shape[shape.length - 1];
        boolean sized = height >= LEAST && height <= MOST && width >= LEAST && width <= MOST;
        if (!sized || (channels != 1 && channels != 3)) {
            return null;
        }
        String dtype = spec.rawDtype() == null ? spec.dtype() : spec.rawDtype();
        double white = spec.normalisation() != null ? spec.normalisation().scale() : dtype.startsWith("float") ? 1 : 255;
        return new PictureFormat((int) channels, (int) height, (int) width, dtype, white);
    }

    /** Return a sample of ARGB pixels, row by row, of exactly this size. */
    byte[] raw(int[] pixels) {
        ByteBuffer out = ByteBuffer.allocate(channels * pixels.length * bytesEach()).order(ByteOrder.LITTLE_ENDIAN);
        for (int channel = 0; channel < channels; channel++) {
            for (int pixel : pixels) {
                put(out, light(pixel, channel) * white / 255);
            }
        }
        return out.array();
    }

    private double light(int pixel, int channel) {
        if (channels == 3) {
            return channel == 0 ? Color.red(pixel) : channel == 1 ? Color.green(pixel) : Color.blue(pixel);
        }
        return 0.299 * Color.red(pixel) + 0.587 * Color.green(pixel) + 0.114 * Color.blue(pixel);
    }

    private int bytesEach() {
        return switch (dtype) {
            case "uint16", "int16" -> 2;
            case "int32", "float32" -> 4;
            case "int64", "float64" -> 8;
            default -> 1;
        };
    }

    private void put(ByteBuffer out, double value) {
        switch (dtype) {
            case "float32" -> out.putFloat((float) value);
            case "float64" -> out.putDouble(value);
            case "bool" -> out.put((byte) (value >= white / 2 ? 1 : 0));
            case "uint16", "int16" -> out.putShort((short) Math.round(value));
            case "int32" -> out.putInt((int) Math.round(value));
            case "int64" -> out.putLong(Math.round(value));
            default -> out.put((byte) Math.round(value));
        }
    }

    private double get(ByteBuffer in, int index) {
        int at = index * bytesEach();
        return switch (dtype) {
            case "float32" -> in.getFloat(at);
            case "float64" -> in.getDouble(at);
            case "bool" -> in.get(at) * white;
            case "int8" -> in.get(at);
            case "uint16" -> in.getShort(at) & 0xffff;
            case "int16" -> in.getShort(at);
            case "int32" -> in.getInt(at);
            case "int64" -> in.getLong(at);
            default -> in.get(at) & 0xff;
        };
    }

    /** Return a picture of a sample, or null if it has another size: samples may be of an earlier federation. */
    Bitmap bitmap(byte[] raw) {
        int area = height * width;
        if (raw.length != channels * area * bytesEach()) {
            return null;
        }
        ByteBuffer in = ByteBuffer.wrap(raw).order(ByteOrder.LITTLE_ENDIAN);
        int[] pixels = new int[area];
        for (int i = 0; i < area; i++) {
            int first = shade(get(in, i));
            pixels[i] = channels == 1 ? Color.rgb(first, first, first)
                : Color.rgb(first, shade(get(in, area + i)), shade(get(in, 2 * area + i)));
        }
        return Bitmap.createBitmap(pixels, width, height, Bitmap.Config.ARGB_8888);
    }

    private int shade(double value) {
        return (int) Math.max(0, Math.min(255, Math.round(value * 255 / white)));
    }
}

package org.edgefl.app.samples;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.edgefl.data.InvalidData;
import org.edgefl.values.SampleSpec;
import org.edgefl.wire.Digests;
import org.edgefl.wire.Shape;

/**
 * The form in which samples of a federation are stored: what must be equal if two federations are to share them.
 *
 * @param dtype the type of the numbers: the raw one, or that of the graph's input where the federation names no other
 */
record SampleForm(String dtype, long[] shape, int classes) {
    static SampleForm of(SampleSpec spec) {
        return new SampleForm(spec.rawDtype() == null ? spec.dtype() : spec.rawDtype(), spec.shape(), spec.classes());
    }

    /** A name for this form: samples of another one are neither used nor lost. */
    String key() {
        String text = dtype + " " + Shape.text(shape, "x") + " " + classes;
        return Digests.of(text.getBytes(StandardCharsets.US_ASCII));
    }

    /** The numbers of a sample. */
    int numbers() {
        return Shape.size(shape);
    }

    /** The bytes of a sample. */
    long bytes() {
        return (long) numbers() * bytesOfNumber();
    }

    private int bytesOfNumber() {
        return switch (dtype) {
            case "bool", "uint8", "int8" -> 1;
            case "uint16", "int16" -> 2;
            case "int32", "float32" -> 4;
            case "int64", "float64" -> 8;
            default -> throw new InvalidData("the federation's samples have the type '" + dtype + "'",
                "Update the app: this version does not know it.");
        };
    }

    boolean isFloat() {
        return dtype.startsWith("float");
    }

    /** The smallest number of the type. */
    private double least() {
        return switch (dtype) {
            case "bool", "uint8", "uint16" -> 0;
            case "int8" -> Byte.MIN_VALUE;
            case "int16" -> Short.MIN_VALUE;
            case "int32" -> Integer.MIN_VALUE;
            default -> -0x1p53;
        };
    }

    /** The largest number of the type, where a double still tells it from the next one. */
    double most() {
        return switch (dtype) {
            case "bool" -> 1;
            case "uint8" -> 255;
            case "int8" -> Byte.MAX_VALUE;
            case "uint16" -> 65535;
            case "int16" -> Short.MAX_VALUE;
            case "int32" -> Integer.MAX_VALUE;
            default -> 0x1p53;
        };
    }

    /** Return whether the type can hold a number as it is; a float may round it, but not to infinity. */
    boolean holds(double number) {
        if (isFloat()) {
            double rounded = dtype.equals("float32") ? (float) number : number;
            return !Double.isNaN(rounded) && !Double.isInfinite(rounded);
        }
        return number == Math.rint(number) && number >= least() && number <= most();
    }

    /** Write a number that the type {@link #holds}, little-endian. */
    void put(ByteBuffer to, double number) {
        switch (dtype) {
            case "bool", "uint8", "int8" -> to.put((byte) (int) number);
            case "uint16", "int16" -> to.putShort((short) (int) number);
            case "int32" -> to.putInt((int) number);
            case "int64" -> to.putLong((long) number);
            case "float32" -> to.putFloat((float) number);
            default -> to.putDouble(number);
        }
    }

    /** Check a label. */
    void checkLabel(long label) {
        if (label < 0 || label >= classes) {
            throw new InvalidData("a label is " + label + ", and the federation has " + classes + " classes",
                "Use labels from 0 to " + (classes - 1) + ".");
        }
    }
}

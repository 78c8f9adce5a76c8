package org.edgefl.data;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.edgefl.wire.ByteRange;
import org.edgefl.wire.Shape;

/** An array of samples or labels as numpy writes it: numbers only, row-major, little-endian. */
public final class NumpyArray {
    private static final Pattern DESCR = Pattern.compile("'descr':\\s*'([<|=>]?)([biuf][1248])'");
    private static final Pattern ORDER = Pattern.compile("'fortran_order':\\s*False");
    private static final Pattern SHAPE = Pattern.compile("'shape':\\s*\\(([0-9, ]*)\\)");

    private final String type;
    private final long[] shape;
    private final ByteBuffer data;

    /** An array of a type such as {@code uint8} or {@code float32}. */
    public NumpyArray(String dtype, long[] shape, ByteBuffer data) {
        this.type = typeOf(dtype);
        this.shape = shape.clone();
        this.data = data.slice().order(ByteOrder.LITTLE_ENDIAN);
        if (data.remaining() != (long) Shape.size(shape) * (type.charAt(1) - '0')) {
            throw notAnArray("it has " + data.remaining() + " bytes for the shape " + Shape.text(shape, " x "));
        }
    }

    private static String typeOf(String dtype) {
        return switch (dtype) {
            case "bool" -> "b1";
            case "uint8", "uint16", "uint32", "uint64" -> "u" + Integer.parseInt(dtype.substring(4)) / 8;
            case "int8", "int16", "int32", "int64" -> "i" + Integer.parseInt(dtype.substring(3)) / 8;
            case "float32", "float64" -> "f" + Integer.parseInt(dtype.substring(5)) / 8;
            default -> throw notAnArray("the type '" + dtype + "' is not supported");
        };
    }

    /** Read a {@code .npy} file from its bytes. */
    public static NumpyArray parse(byte[] file) {
        ByteBuffer all = ByteBuffer.wrap(file).order(ByteOrder.LITTLE_ENDIAN);
        if (file.length < 12 || !new String(file, 0, 6, StandardCharsets.ISO_8859_1).equals("\u0093NUMPY")) {
            throw notAnArray("it does not begin as numpy's files do");
        }
        boolean old = file[6] == 1;
        long start = old ? 10 + (all.getShort(8) & 0xffffL) : 12 + (all.getInt(8) & 0xffffffffL);
        if (start > file.length || start > 1 << 20) {
            throw notAnArray("its header is longer than the file");
        }
        String header = new String(file, old ? 10 : 12, (int) start - (old ? 10 : 12), StandardCharsets.ISO_8859_1);
        Matcher descr = DESCR.matcher(header);
        Matcher shape = SHAPE.matcher(header);
        if (!descr.find() || !shape.find() || !ORDER.matcher(header).find() || descr.group(1).equals(">")) {
            throw notAnArray("only little-endian numbers in row-major order are supported");
        }
        return new NumpyArray(dtypeOf(descr.group(2)), sizes(shape.group(1)), ByteRange.of(all, (int) start, file.length));
    }

    private static String dtypeOf(String code) {
        int bits = 8 * (code.charAt(1) - '0');
        return switch (code.charAt(0)) {
            case 'b' -> "bool";
            case 'u' -> "uint" + bits;
            case 'i' -> "int" + bits;
            default -> "float" + bits;
        };
    }

    private static long[] sizes(String text) {
        try {
            return Arrays.stream(text.split(",")).map(String::trim).filter(size -> !size.isEmpty())
                .mapToLong(Long::parseLong).toArray();
        } catch (NumberFormatException beyond) {
            throw notAnArray("it has the shape (" + text + ")");
        }
    }

    private static InvalidData notAnArray(String problem) {
        return new InvalidData("not an array that this client reads: " + problem,
            "Save numbers with numpy.savez, such as uint8 or float32 samples and int64 labels.");
    }

    /** The sizes of its axes. */
    public long[] shape() {
        return shape.clone();
    }

    /** Its type as numpy names it, such as {@code uint8}. */
    public String dtype() {
        return dtypeOf(type);
    }

    /** Return whether its entries are floats. */
    public boolean isFloat() {
        return type.charAt(0) == 'f';
    }

    /** Return the bytes of one sample: an entry of the first axis. */
    ByteBuffer row(int number) {
        int length = data.limit() / Math.max(1, (int) shape[0]);
        return ByteRange.of(data, number * length, (number + 1) * length);
    }

    /** Read entries from {@code from} on, each rounded to float32; the usual types of images without a choice for each. */
    void floats(int from, float[] to) {
        switch (type) {
            case "f4" -> ByteRange.of(data, 4 * from, 4 * (from + to.length)).order(ByteOrder.LITTLE_ENDIAN)
                .asFloatBuffer().get(to);
            case "b1", "u1" -> {
                for (int i = 0; i < to.length; i++) {
                    to[i] = data.get(from + i) & 255;
                }
            }
            default -> {
                for (int i = 0; i < to.length; i++) {
                    to[i] = asFloat(from + i);
                }
            }
        }
    }

    /** Return entry i rounded to float32. */
    public float asFloat(int i) {
        return switch (type) {
            case "f4" -> data.getFloat(4 * i);
            case "f8" -> (float) data.getDouble(8 * i);
            default -> (float) asLong(i);
        };
    }

    /** Return entry i as a whole number; floats are cut. */
    public long asLong(int i) {
        return switch (type) {
            case "b1", "u1" -> data.get(i) & 255;
            case "i1" -> data.get(i);
            case "u2" -> data.getShort(2 * i) & 65535;
            case "i2" -> data.getShort(2 * i);
            case "u4" -> data.getInt(4 * i) & 0xffffffffL;
            case "i4" -> data.getInt(4 * i);
            case "i8", "u8" -> data.getLong(8 * i);
            default -> (long) asFloat(i);
        };
    }
}

package org.edgefl.wire;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;

/**
 * A tensor in memory outside of the heap, where the engine reads it without a copy.
 *
 * <p>The one mutable value of this client: a rule changes weights in place, so that a model is in memory once.
 */
public final class Tensor {
    private final DType dtype;
    private final long[] shape;
    private final ByteBuffer data;

    private Tensor(DType dtype, long[] shape, ByteBuffer data) {
        this.dtype = dtype;
        this.shape = shape;
        this.data = data;
    }

    /** Wrap little-endian bytes; they are copied only if the engine could not read them where they are. */
    public static Tensor of(DType dtype, long[] shape, ByteBuffer bytes) {
        int size = Math.multiplyExact(Shape.size(shape), dtype.bytes);
        if (bytes.remaining() != size) {
            throw new InvalidBody(bytes.remaining() + " bytes for the shape " + Shape.text(shape, " x ") + " of " + dtype);
        }
        ByteBuffer own = bytes.isDirect() ? bytes.slice() : ByteRange.written(allocate(size).put(bytes.duplicate()));
        return new Tensor(dtype, shape.clone(), own.order(ByteOrder.LITTLE_ENDIAN));
    }

    /** Return a tensor of zeros. */
    public static Tensor zeros(DType dtype, long... shape) {
        return new Tensor(dtype, shape.clone(), allocate(Math.multiplyExact(Shape.size(shape), dtype.bytes)));
    }

    /** Return a tensor of float32 numbers. */
    public static Tensor ofFloats(float[] values, long... shape) {
        Tensor made = zeros(DType.F32, shape);
        made.floats().put(values);
        return made;
    }

    /** Return a tensor of int64 numbers. */
    public static Tensor ofLongs(long[] values, long... shape) {
        Tensor made = zeros(DType.I64, shape);
        made.longs().put(values);
        return made;
    }

    private static ByteBuffer allocate(int bytes) {
        return ByteBuffer.allocateDirect(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Return a copy with memory of its own. */
    public Tensor copy() {
        Tensor made = new Tensor(dtype, shape.clone(), allocate(data.remaining()));
        made.data.duplicate().put(bytes());
        return made;
    }

    /** Overwrite every entry with another tensor's of the same type and size. */
    public void set(Tensor other) {
        if (other.dtype != dtype || other.size() != size()) {
            throw new IllegalArgumentException("another type or size");
        }
        data.duplicate().put(other.bytes());
    }

    /** The type of its entries. */
    public DType dtype() {
        return dtype;
    }

    /** The sizes of its axes. */
    public long[] shape() {
        return shape.clone();
    }

    /** The number of entries. */
    public int size() {
        return data.limit() / dtype.bytes;
    }

    /** A view of its bytes, little-endian, row-major. */
    public ByteBuffer bytes() {
        return data.duplicate().order(ByteOrder.LITTLE_ENDIAN);
    }

    /** A view of its float32 entries. */
    public FloatBuffer floats() {
        require(DType.F32);
        return data.asFloatBuffer();
    }

    /** A view of its float64 entries. */
    public DoubleBuffer doubles() {
        require(DType.F64);
        return data.asDoubleBuffer();
    }

    /** A view of its int64 entries. */
    public LongBuffer longs() {
        require(DType.I64);
        return data.asLongBuffer();
    }

    /** Return a copy of its float32 entries. */
    public float[] toFloats() {
        float[] found = new float[size()];
        floats().get(found);
        return found;
    }

    private void require(DType wanted) {
        if (dtype != wanted) {
            throw new IllegalStateException("a tensor of " + dtype + " read as " + wanted);
        }
    }

    /** Return whether all entries are finite; whole numbers always are. */
    public boolean isFinite() {
        ByteBuffer all = bytes();
        int count = size();
        for (int i = 0; i < count; i++) {
            boolean finite = switch (dtype) {
                case F64 -> (all.getLong(8 * i) & 0x7ff0000000000000L) != 0x7ff0000000000000L;
                case F32 -> (all.getInt(4 * i) & 0x7f800000) != 0x7f800000;
                case F16 -> (all.getShort(2 * i) & 0x7c00) != 0x7c00;
                default -> true;
            };
            if (!finite) {
                return false;
            }
        }
        return true;
    }
}

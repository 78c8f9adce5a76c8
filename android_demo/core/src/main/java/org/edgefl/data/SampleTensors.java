package org.edgefl.data;

import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import org.edgefl.values.SampleSpec;
import org.edgefl.wire.DType;
import org.edgefl.wire.Shape;
import org.edgefl.wire.Tensor;

/** Turns raw samples into a graph's input {@code x}: the same numbers in training, evaluation and prediction. */
public final class SampleTensors {
    private SampleTensors() {}

    /** Return {@code x} of some samples of an array, normalised as the federation says. */
    public static Tensor of(NumpyArray samples, SampleSpec spec, int[] numbers) {
        Tensor made = zeros(spec, numbers.length);
        put(samples, spec, numbers, made);
        return made;
    }

    /** Write {@code x} of as many samples as a tensor has room for. */
    static void put(NumpyArray samples, SampleSpec spec, int[] numbers, Tensor x) {
        if (x.dtype() == DType.I64) {
            putWholes(samples, Shape.size(spec.shape()), numbers, x.longs());
        } else {
            putFloats(samples, spec, numbers, x.floats());
        }
    }

    /** Return {@code x} of one sample from its raw bytes, row-major and little-endian. */
    public static Tensor ofRaw(byte[] raw, SampleSpec spec) {
        String dtype = spec.rawDtype() == null ? spec.dtype() : spec.rawDtype();
        return of(new NumpyArray(dtype, batch(spec, 1), ByteBuffer.wrap(raw)), spec, new int[] {0});
    }

    /** Return {@code x} of some samples whose entries are all 0. */
    public static Tensor zeros(SampleSpec spec, int count) {
        return Tensor.zeros(spec.dtype().equals("int64") ? DType.I64 : DType.F32, batch(spec, count));
    }

    private static long[] batch(SampleSpec spec, int count) {
        long[] shape = new long[spec.shape().length + 1];
        shape[0] = count;
        System.arraycopy(spec.shape(), 0, shape, 1, spec.shape().length);
        return shape;
    }

    private static void putWholes(NumpyArray samples, int length, int[] numbers, LongBuffer to) {
        for (int i = 0; i < numbers.length; i++) {
            for (int j = 0; j < length; j++) {
                to.put(i * length + j, samples.asLong(numbers[i] * length + j));
            }
        }
    }

    private static void putFloats(NumpyArray samples, SampleSpec spec, int[] numbers, FloatBuffer to) {
        int length = Shape.size(spec.shape());
        float[] values = new float[length];
        for (int number : numbers) {
            samples.floats(number * length, values);
            if (spec.normalisation() != null) {
                spec.normalisation().apply(values, 0, length, spec.shape().length == 0 ? 1 : (int) spec.shape()[0]);
            }
            to.put(values);
        }
    }
}

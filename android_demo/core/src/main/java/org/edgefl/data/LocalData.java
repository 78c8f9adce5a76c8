package org.edgefl.data;

import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Map;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.edgefl.values.SampleSpec;
import org.edgefl.wire.DType;
import org.edgefl.wire.Digests;
import org.edgefl.wire.Shape;
import org.edgefl.wire.Tensor;

/** A device's own samples. They stay in their raw form, and become {@code x} batch by batch. */
public final class LocalData {
    private final NumpyArray samples;
    private final NumpyArray labels;
    private final SampleSpec spec;
    private final int[] train;
    private final int[] validation;

    /** Samples and labels, of which a share is held out for validation. */
    public LocalData(NumpyArray samples, NumpyArray labels, SampleSpec spec, double validationShare, long seed) {
        this(samples, labels, spec, count -> SampleOrder.heldOut(count, validationShare, seed));
    }

    /** Samples and labels, of which some are held out for validation: by a flag for each. */
    public LocalData(NumpyArray samples, NumpyArray labels, SampleSpec spec, boolean[] heldOut) {
        this(samples, labels, spec, count -> heldOut.clone());
    }

    private LocalData(NumpyArray samples, NumpyArray labels, SampleSpec spec, IntFunction<boolean[]> heldOut) {
        this.samples = samples;
        this.labels = labels;
        this.spec = spec;
        check();
        int count = (int) samples.shape()[0];
        boolean[] held = heldOut.apply(count);
        this.train = IntStream.range(0, count).filter(i -> !held[i]).toArray();
        this.validation = IntStream.range(0, count).filter(i -> held[i]).toArray();
    }

    /** Read samples {@code x} and labels {@code y} of an {@code .npz} file. */
    public static LocalData of(Map<String, NumpyArray> arrays, SampleSpec spec, double validationShare, long seed) {
        if (!arrays.containsKey("x") || !arrays.containsKey("y")) {
            throw new InvalidData("the file has no arrays 'x' and 'y'",
                "Save samples as 'x' and labels as 'y' with numpy.savez.");
        }
        return new LocalData(arrays.get("x"), arrays.get("y"), spec, validationShare, seed);
    }

    private void check() {
        long[] shape = samples.shape();
        long[] one = shape.length == 0 ? shape : Arrays.copyOfRange(shape, 1, shape.length);
        if (shape.length == 0 || shape[0] == 0 || labels.shape().length != 1 || labels.shape()[0] != shape[0]) {
            throw new InvalidData("there must be as many labels as samples, and at least one",
                "Check the arrays 'x' and 'y'.");
        }
        if (!spec.hasShape(one)) {
            throw new InvalidData("samples have the shape " + Shape.text(one, " x ") + ", and the federation's "
                + Shape.text(spec.shape(), " x "), "Convert the samples, or join another federation.");
        }
        if (spec.rawDtype() != null && !spec.rawDtype().equals(samples.dtype())) {
            throw new InvalidData("samples have the type " + samples.dtype() + ", and the federation's "
                + spec.rawDtype(), "Give the samples as they were before normalisation.");
        }
        if (spec.dtype().equals("int64") && samples.isFloat()) {
            throw new InvalidData("samples are floats, and the federation's are whole numbers",
                "Give tokens as whole numbers.");
        }
        for (int i = 0; i < shape[0]; i++) {
            if (labels.asLong(i) < 0 || labels.asLong(i) >= spec.classes()) {
                throw new InvalidData("a label is " + labels.asLong(i) + ", and the federation has " + spec.classes()
                    + " classes", "Use labels from 0 to " + (spec.classes() - 1) + ".");
            }
        }
    }

    /** The number of training samples. */
    public int trainingSamples() {
        return train.length;
    }

    /** The number of validation samples. */
    public int validationSamples() {
        return validation.length;
    }

    /** Return {@code x} of training samples. */
    public Tensor x(int[] numbers) {
        return gather(numbers, train);
    }

    /** Return {@code y} of training samples. */
    public Tensor y(int[] numbers) {
        Tensor made = Tensor.zeros(DType.I64, numbers.length);
        putY(numbers, made);
        return made;
    }

    /** Write training samples over a batch of the same size: memory outside of the heap is freed late, so it is kept. */
    public void put(int[] numbers, Tensor x, Tensor y) {
        SampleTensors.put(samples, spec, chosen(numbers, train), x);
        putY(numbers, y);
    }

    private void putY(int[] numbers, Tensor y) {
        LongBuffer to = y.longs();
        for (int number : numbers) {
            to.put(labels.asLong(train[number]));
        }
    }

    /** Return {@code x} of validation samples. */
    public Tensor validationX(int from, int to) {
        return gather(IntStream.range(from, to).toArray(), validation);
    }

    /** Return the label of a validation sample. */
    public long validationLabel(int number) {
        return labels.asLong(validation[number]);
    }

    /** Return one flag per class: 1 if any training sample has it. */
    public float[] labelMask() {
        float[] flags = new float[spec.classes()];
        for (int sample : train) {
            flags[(int) labels.asLong(sample)] = 1;
        }
        return flags;
    }

    private Tensor gather(int[] numbers, int[] part) {
        return SampleTensors.of(samples, spec, chosen(numbers, part));
    }

    private static int[] chosen(int[] numbers, int[] part) {
        int[] found = new int[numbers.length];
        for (int i = 0; i < found.length; i++) {
            found[i] = part[numbers[i]];
        }
        return found;
    }

    /** Return a digest of the training samples and their labels: a training on others has other bits. */
    public String digest() {
        MessageDigest sha = Digests.sha256();
        String head = samples.dtype() + " " + Shape.text(spec.shape(), " x ") + " " + train.length + " ";
        sha.update(head.getBytes(StandardCharsets.US_ASCII));
        ByteBuffer label = ByteBuffer.allocate(Long.BYTES);
        for (int sample : train) {
            label.putLong(0, labels.asLong(sample));
            sha.update(label.array());
            sha.update(samples.row(sample));
        }
        return "sha256:" + Digests.hex(sha.digest());
    }
}

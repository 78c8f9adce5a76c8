package org.edgefl.wire;

/** One tensor of a body in the form in which it is sent. Decoding keeps it packed; {@link Codecs} expands it. */
public sealed interface Encoded permits Encoded.Dense, Encoded.Slice, Encoded.Sparse, Encoded.Bits, Encoded.Counts {
    /** The sizes of the whole tensor. */
    long[] shape();

    /** The name of the codec, as plans and tables call it. */
    String codec();

    /** All entries as they are. */
    record Dense(Tensor tensor) implements Encoded {
        @Override
        public long[] shape() {
            return tensor.shape();
        }

        @Override
        public String codec() {
            return "dense";
        }
    }

    /** The entries of kept indices. For every axis, {@code kept} has null (whole) or a bitmap of its indices. */
    record Slice(long[] shape, byte[][] kept, Tensor values) implements Encoded {
        @Override
        public String codec() {
            return "slice";
        }
    }

    /** Values at single positions, ascending. */
    record Sparse(long[] shape, int[] positions, Tensor values) implements Encoded {
        @Override
        public String codec() {
            return "sparse";
        }
    }

    /** One bit for each entry. */
    record Bits(long[] shape, byte[] packed) implements Encoded {
        @Override
        public String codec() {
            return "bits";
        }
    }

    /** Whole numbers from 0 to a limit. */
    record Counts(long[] shape, int limit, int[] values) implements Encoded {
        @Override
        public String codec() {
            return "counts";
        }
    }
}

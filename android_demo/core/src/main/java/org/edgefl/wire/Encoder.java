package org.edgefl.wire;

import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/** Turns tensors into parts and entries, by the table of codecs in docs/wire.md. */
final class Encoder {
    private final List<Part> parts = new ArrayList<>();
    private final SortedMap<String, List<Object>> entries = new TreeMap<>(Names.UTF8_ORDER);
    private final List<Bitmap> bitmaps = new ArrayList<>();

    private record Bitmap(long size, byte[] packed) {}

    Encoder(SortedMap<String, Encoded> tensors) {
        for (Map.Entry<String, Encoded> entry : tensors.entrySet()) {
            if (!Names.isTensorName(entry.getKey())) {
                throw new InvalidBody("'" + entry.getKey() + "' cannot be a tensor's name");
            }
            add(entry.getKey(), entry.getValue());
        }
        for (int i = 0; i < bitmaps.size(); i++) {
            parts.add(Part.ofBytes("#" + i, bitmaps.get(i).packed()));
        }
    }

    List<Part> parts() {
        return parts;
    }

    SortedMap<String, List<Object>> entries() {
        return entries;
    }

    private void add(String name, Encoded encoded) {
        List<Long> shape = Shape.list(encoded.shape());
        if (encoded instanceof Encoded.Dense dense) {
            parts.add(Part.ofTensor(name, dense.tensor()));
        } else if (encoded instanceof Encoded.Slice slice) {
            parts.add(Part.ofTensor(name, slice.values()));
            entries.put(name, List.of("slice", shape, axes(slice)));
        } else if (encoded instanceof Encoded.Sparse sparse) {
            addSparse(name, sparse, shape);
        } else if (encoded instanceof Encoded.Bits bits) {
            parts.add(Part.ofBytes(name, bits.packed()));
            entries.put(name, List.of("bits", shape));
        } else if (encoded instanceof Encoded.Counts counts) {
            parts.add(Part.ofBytes(name, planes(counts)));
            entries.put(name, List.of("counts", shape, counts.limit()));
        }
    }

    private List<Integer> axes(Encoded.Slice slice) {
        List<Integer> numbers = new ArrayList<>();
        for (int axis = 0; axis < slice.kept().length; axis++) {
            byte[] packed = slice.kept()[axis];
            numbers.add(packed == null ? null : numberOf(new Bitmap(slice.shape()[axis], packed)));
        }
        return numbers;
    }

    private int numberOf(Bitmap wanted) {
        for (int i = 0; i < bitmaps.size(); i++) {
            Bitmap known = bitmaps.get(i);
            if (known.size() == wanted.size() && Arrays.equals(known.packed(), wanted.packed())) {
                return i;
            }
        }
        bitmaps.add(wanted);
        return bitmaps.size() - 1;
    }

    private void addSparse(String name, Encoded.Sparse sparse, List<Long> shape) {
        byte[] deltas = deltas(sparse.positions());
        int size = Shape.size(sparse.shape());
        boolean smaller = deltas.length < PackedBits.bytes(size);
        byte[] at = deltas;
        if (!smaller) {
            at = new byte[PackedBits.bytes(size)];
            for (int position : sparse.positions()) {
                PackedBits.set(at, position);
            }
        }
        parts.add(Part.ofTensor(name, sparse.values()));
        parts.add(Part.ofBytes(name + "#at", at));
        entries.put(name, List.of(smaller ? "deltas" : "bitmap", shape));
    }

    /** How many entries were skipped before each, 7 bits per byte, lowest first. */
    static byte[] deltas(int[] positions) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        int next = 0;
        for (int position : positions) {
            int gap = position - next;
            for (; gap >= 128; gap >>>= 7) {
                out.write(gap & 127 | 128);
            }
            out.write(gap);
            next = position + 1;
        }
        return out.toByteArray();
    }

    private static byte[] planes(Encoded.Counts counts) {
        int bits = 32 - Integer.numberOfLeadingZeros(counts.limit());
        int plane = PackedBits.bytes(counts.values().length);
        byte[] packed = new byte[bits * plane];
        for (int i = 0; i < counts.values().length; i++) {
            for (int bit = 0; bit < bits; bit++) {
                if ((counts.values()[i] >> bit & 1) != 0) {
                    PackedBits.set(packed, 8 * bit * plane + i);
                }
            }
        }
        return packed;
    }
}

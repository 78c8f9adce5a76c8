package org.edgefl.wire;

import java.nio.ByteBuffer;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import org.edgefl.json.JsonObject;

/** Turns parts and entries into tensors, and refuses whatever does not fit together. */
final class Decoder {
    private final Map<String, Part> parts;
    private final Set<String> claimed = new HashSet<>();
    private final SortedMap<String, Encoded> tensors = new TreeMap<>(Names.UTF8_ORDER);

    Decoder(Map<String, Part> parts, JsonObject entries) {
        this.parts = parts;
        for (String name : entries == null ? Set.<String>of() : entries.names()) {
            tensors.put(checkedName(name), decode(name, entries.list(name)));
        }
        for (Part part : parts.values()) {
            if (!claimed.contains(part.name())) {
                tensors.put(checkedName(part.name()), new Encoded.Dense(values(part)));
            }
        }
    }

    SortedMap<String, Encoded> tensors() {
        return tensors;
    }

    private static String checkedName(String name) {
        if (!Names.isTensorName(name)) {
            throw new InvalidBody("'" + name + "' cannot be a tensor's name");
        }
        return name;
    }

    private Encoded decode(String name, List<?> entry) {
        if (entry.size() < 2 || !(entry.get(0) instanceof String form) || !(entry.get(1) instanceof List<?> sizes)) {
            throw new InvalidBody("the entry of '" + name + "' does not begin with a form and a shape");
        }
        long[] shape = JsonObject.toWholes(sizes, "the shape of '" + name + "'");
        int size = Shape.size(shape);
        Part part = claim(name, form.equals("slice") || form.equals("bitmap") || form.equals("deltas"));
        int length = form.equals("slice") || form.equals("counts") ? 3 : 2;
        if (entry.size() != length) {
            throw new InvalidBody("the entry of '" + name + "' must have " + length + " items");
        }
        return switch (form) {
            case "slice" -> slice(part, shape, entry.get(2));
            case "bitmap" -> sparse(part, shape, fromBitmap(bytes(claim(name + "#at", false)), size, name));
            case "deltas" -> sparse(part, shape, fromDeltas(bytes(claim(name + "#at", false)), part, size));
            case "bits" -> new Encoded.Bits(shape, PackedBits.checked(bytes(part), size, name));
            case "counts" -> counts(part, shape, size, entry.get(2));
            default -> throw new InvalidBody("the codec '" + form + "' of '" + name + "' is not known");
        };
    }

    private Part claim(String name, boolean hasValues) {
        Part part = parts.get(name);
        if (part == null) {
            throw new InvalidBody("the part '" + name + "' is missing");
        }
        if (!claimed.add(name) && !name.startsWith("#")) {
            throw new InvalidBody("the part '" + name + "' belongs to two tensors");
        }
        if (!hasValues && part.dtype() != DType.U8) {
            throw new InvalidBody("the part '" + name + "' must be bytes");
        }
        return part;
    }

    private static ByteBuffer bytes(Part part) {
        if (part.shape().length != 1) {
            throw new InvalidBody("packed bytes of '" + part.name() + "' must have one axis");
        }
        return part.data();
    }

    private static Tensor values(Part part) {
        Tensor tensor = Tensor.of(part.dtype(), part.shape(), part.data());
        if (!tensor.isFinite()) {
            throw new InvalidBody("'" + part.name() + "' has a number that is not finite");
        }
        return tensor;
    }

    private Encoded slice(Part part, long[] shape, Object axes) {
        if (!(axes instanceof List<?> numbers) || numbers.size() != shape.length || part.shape().length != shape.length) {
            throw new InvalidBody("the slice '" + part.name() + "' must name a bitmap or null for every axis");
        }
        byte[][] kept = new byte[shape.length][];
        for (int axis = 0; axis < shape.length; axis++) {
            long left = shape[axis];
            if (numbers.get(axis) instanceof Long number && number >= 0) {
                kept[axis] = PackedBits.checked(bytes(claim("#" + number, false)), shape[axis], "#" + number);
                left = PackedBits.count(kept[axis]);
            } else if (numbers.get(axis) != null) {
                throw new InvalidBody("the slice '" + part.name() + "' names a bitmap that cannot be");
            }
            if (part.shape()[axis] != left) {
                throw new InvalidBody("the slice '" + part.name() + "' does not have the size that its bitmaps keep");
            }
        }
        return new Encoded.Slice(shape, kept, values(part));
    }

    private static Encoded sparse(Part part, long[] shape, int[] positions) {
        if (part.shape().length != 1 || part.shape()[0] != positions.length) {
            throw new InvalidBody("'" + part.name() + "' has another number of values than positions");
        }
        return new Encoded.Sparse(shape, positions, values(part));
    }

    private static int[] fromBitmap(ByteBuffer part, int size, String name) {
        byte[] packed = PackedBits.checked(part, size, name + "#at");
        int[] positions = new int[PackedBits.count(packed)];
        int found = 0;
        for (int i = 0; i < size; i++) {
            if (PackedBits.get(packed, i)) {
                positions[found++] = i;
            }
        }
        return positions;
    }

    private static int[] fromDeltas(ByteBuffer part, Part values, int size) {
        ByteBuffer bytes = part.duplicate();
        if (values.shape().length != 1 || values.shape()[0] > bytes.remaining()) {
            throw new InvalidBody("'" + values.name() + "' has more values than positions");
        }
        int[] positions = new int[(int) values.shape()[0]];
        long next = 0;
        for (int i = 0; i < positions.length; i++) {
            next += number(bytes, values.name());
            if (next >= size) {
                throw new InvalidBody("'" + values.name() + "' has a position beyond its shape");
            }
            positions[i] = (int) next++;
        }
        if (bytes.hasRemaining()) {
            throw new InvalidBody("'" + values.name() + "' has more positions than values");
        }
        return positions;
    }

    private static long number(ByteBuffer bytes, String name) {
        long value = 0;
        for (int shift = 0; shift <= 28; shift += 7) {
            if (!bytes.hasRemaining()) {
                break;
            }
            int next = bytes.get() & 255;
            value |= (long) (next & 127) << shift;
            if (next < 128) {
                if (next == 0 && shift > 0) {
                    break;
                }
                return value;
            }
        }
        throw new InvalidBody("'" + name + "' has a gap that is not written in the fewest bytes");
    }

    private static Encoded counts(Part part, long[] shape, int size, Object most) {
        if (!(most instanceof Long limit) || limit < 1 || limit > Integer.MAX_VALUE) {
            throw new InvalidBody("the limit of '" + part.name() + "' must be a whole number of 1 or more");
        }
        int bits = 64 - Long.numberOfLeadingZeros(limit);
        int plane = PackedBits.bytes(size);
        ByteBuffer all = bytes(part);
        if (all.remaining() != (long) bits * plane) {
            throw new InvalidBody("'" + part.name() + "' has " + all.remaining() + " bytes for " + bits + " planes");
        }
        int[] values = new int[size];
        for (int bit = 0; bit < bits; bit++) {
            ByteBuffer one = ByteRange.of(all, bit * plane, (bit + 1) * plane);
            byte[] packed = PackedBits.checked(one, size, part.name());
            for (int i = 0; i < size; i++) {
                values[i] |= PackedBits.get(packed, i) ? 1 << bit : 0;
            }
        }
        for (int value : values) {
            if (value > limit) {
                throw new InvalidBody("'" + part.name() + "' has a number above its limit " + limit);
            }
        }
        return new Encoded.Counts(shape, limit.intValue(), values);
    }
}

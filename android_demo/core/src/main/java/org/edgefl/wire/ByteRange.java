package org.edgefl.wire;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Stretches of buffers.
 *
 * <p>{@code ByteBuffer.position} and its like return a {@code Buffer} on Android 26 and a {@code ByteBuffer} on newer
 * systems; code compiled for the one does not run on the other. So they are called here, on a plain {@code Buffer}.
 */
public final class ByteRange {
    private ByteRange() {}

    /** Return a little-endian view from one position to another. */
    public static ByteBuffer of(ByteBuffer bytes, int from, int to) {
        ByteBuffer view = bytes.duplicate();
        Buffer plain = view;
        plain.limit(to);
        plain.position(from);
        return view.slice().order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Return a little-endian view of what was written since the beginning. */
    public static ByteBuffer written(ByteBuffer bytes) {
        return of(bytes, 0, bytes.position());
    }
}

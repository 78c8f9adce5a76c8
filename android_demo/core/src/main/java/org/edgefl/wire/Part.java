package org.edgefl.wire;

import java.nio.ByteBuffer;

/**
 * One stretch of a body's data.
 *
 * @param data its bytes, little-endian, from position to limit
 */
record Part(String name, DType dtype, long[] shape, ByteBuffer data) {
    /** Return a part of packed bytes. */
    static Part ofBytes(String name, byte[] bytes) {
        return new Part(name, DType.U8, new long[] {bytes.length}, ByteBuffer.wrap(bytes));
    }

    /** Return a part with a tensor's entries. */
    static Part ofTensor(String name, Tensor tensor) {
        return new Part(name, tensor.dtype(), tensor.shape(), tensor.bytes());
    }
}

package org.edgefl.wire;

/** The types of a body's parts, in the order in which parts of different types stand in a body. */
public enum DType {
    I64(8),
    F64(8),
    F32(4),
    I32(4),
    F16(2),
    U8(1);

    /** Bytes of one entry. */
    public final int bytes;

    DType(int bytes) {
        this.bytes = bytes;
    }

    /** Return the type of a name in a header. */
    public static DType named(String name) {
        for (DType type : values()) {
            if (type.name().equals(name)) {
                return type;
            }
        }
        throw new InvalidBody("the type '" + name + "' is not known");
    }
}

package org.edgefl.golden;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Base64;
import java.util.Map;
import org.edgefl.data.NumpyArray;
import org.edgefl.json.JsonObject;
import org.edgefl.wire.DType;
import org.edgefl.wire.Tensor;

/** Arrays in golden files: {"dtype": ..., "shape": ..., "data": base64}. */
final class GoldenArrays {
    private static final Map<String, DType> DTYPES = Map.of("float64", DType.F64, "float32", DType.F32, "float16",
        DType.F16, "int64", DType.I64, "int32", DType.I32, "uint8", DType.U8);

    private GoldenArrays() {}

    static ByteBuffer bytes(JsonObject array) {
        return ByteBuffer.wrap(Base64.getDecoder().decode(array.text("data"))).order(ByteOrder.LITTLE_ENDIAN);
    }

    static Tensor tensor(JsonObject array) {
        return Tensor.of(DTYPES.get(array.text("dtype")), array.wholes("shape"), bytes(array));
    }

    static NumpyArray numpy(JsonObject array) {
        return new NumpyArray(array.text("dtype"), array.wholes("shape"), bytes(array));
    }

    static byte[] bits(String text) {
        byte[] packed = new byte[(text.length() + 7) / 8];
        for (int i = 0; i < text.length(); i++) {
            packed[i / 8] |= (byte) (text.charAt(i) == '1' ? 1 << i % 8 : 0);
        }
        return packed;
    }
}

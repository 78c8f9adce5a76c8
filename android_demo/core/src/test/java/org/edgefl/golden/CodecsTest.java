package org.edgefl.golden;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.LongStream;
import org.edgefl.EdgeFLError;
import org.edgefl.json.JsonObject;
import org.edgefl.wire.Body;
import org.edgefl.wire.BodyReader;
import org.edgefl.wire.BodyWriter;
import org.edgefl.wire.Digests;
import org.edgefl.wire.Encoded;
import org.edgefl.wire.Names;
import org.edgefl.wire.PackedBits;
import org.junit.jupiter.api.Test;

/** codecs.json and bad_bodies.json: tensors in, bytes out, and back; and what must be refused. */
class CodecsTest {
    @Test
    void bodiesAreWrittenToTheSameBytesAndReadBack() {
        for (JsonObject example : GoldenFiles.json("codecs.json").objects("cases")) {
            byte[] expected = Base64.getDecoder().decode(example.text("body"));
            String name = example.text("name");
            assertArrayEquals(expected, BodyWriter.toBytes(body(example)), name);
            assertArrayEquals(expected, BodyWriter.toBytes(BodyReader.read(ByteBuffer.wrap(expected))), name);
            assertEquals(example.text("digest"), Digests.of(expected), name);
        }
    }

    @Test
    void badBodiesAreRefused() {
        for (JsonObject example : GoldenFiles.json("bad_bodies.json").objects("cases")) {
            ByteBuffer bytes = ByteBuffer.wrap(Base64.getDecoder().decode(example.text("body")));
            assertThrows(EdgeFLError.class, () -> BodyReader.read(bytes), example.text("name"));
        }
    }

    private static Body body(JsonObject example) {
        SortedMap<String, String> about = new TreeMap<>(Names.UTF8_ORDER);
        JsonObject texts = example.object("about");
        texts.names().forEach(name -> about.put(name, texts.text(name)));
        SortedMap<String, Encoded> tensors = new TreeMap<>(Names.UTF8_ORDER);
        example.objects("tensors").forEach(tensor -> tensors.put(tensor.text("name"), encoded(tensor)));
        String seed = example.textOrNull("seed");
        return new Body(example.text("kind"), about, seed == null ? null : Long.parseUnsignedLong(seed), tensors);
    }

    private static Encoded encoded(JsonObject tensor) {
        return switch (tensor.text("codec")) {
            case "dense" -> new Encoded.Dense(GoldenArrays.tensor(tensor));
            case "bits" -> new Encoded.Bits(tensor.wholes("shape"), GoldenArrays.bits(tensor.text("bits")));
            case "counts" -> new Encoded.Counts(tensor.wholes("shape"), tensor.count("limit", 1),
                LongStream.of(tensor.wholes("numbers")).mapToInt(Math::toIntExact).toArray());
            case "sparse" -> new Encoded.Sparse(tensor.wholes("shape"),
                LongStream.of(tensor.wholes("indices")).mapToInt(Math::toIntExact).toArray(),
                GoldenArrays.tensor(tensor.object("values")));
            default -> slice(tensor);
        };
    }

    private static Encoded slice(JsonObject tensor) {
        long[] shape = tensor.wholes("shape");
        List<?> indices = tensor.list("kept");
        byte[][] kept = new byte[shape.length][];
        for (int axis = 0; axis < shape.length; axis++) {
            if (indices.get(axis) instanceof List<?> chosen) {
                kept[axis] = new byte[PackedBits.bytes(shape[axis])];
                for (long index : JsonObject.toWholes(chosen, "kept")) {
                    PackedBits.set(kept[axis], (int) index);
                }
            }
        }
        return new Encoded.Slice(shape, kept, GoldenArrays.tensor(tensor.object("values")));
    }
}

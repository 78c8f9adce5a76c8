package org.edgefl.golden;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.ByteBuffer;
import org.edgefl.EdgeFLError;
import org.edgefl.wire.Body;
import org.edgefl.wire.BodyReader;
import org.edgefl.wire.BodyWriter;
import org.edgefl.wire.Encoded;
import org.edgefl.wire.Planes;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** update_v1.safetensors and mask_v1.safetensors: read, and written again to the same bytes. */
class BodiesTest {
    @ParameterizedTest
    @ValueSource(strings = {"update_v1.safetensors", "mask_v1.safetensors"})
    void aBodyIsWrittenAgainToTheSameBytes(String name) {
        byte[] bytes = GoldenFiles.bytes(name);
        assertArrayEquals(bytes, BodyWriter.toBytes(BodyReader.read(ByteBuffer.wrap(bytes))));
    }

    @ParameterizedTest
    @ValueSource(strings = {"update_v1.safetensors", "mask_v1.safetensors"})
    void anyFlippedByteIsRefused(String name) {
        byte[] bytes = GoldenFiles.bytes(name);
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] ^= 1;
            ByteBuffer changed = ByteBuffer.wrap(bytes);
            assertThrows(EdgeFLError.class, () -> BodyReader.read(changed), "byte " + i);
            bytes[i] ^= 1;
        }
    }

    @Test
    void everyCodecIsRead() {
        Body body = BodyReader.read(ByteBuffer.wrap(GoldenFiles.bytes("update_v1.safetensors")));
        assertEquals("update", body.kind());
        assertEquals("größer", body.about().get("note"));
        assertEquals("18446744073709551615", Long.toUnsignedString(body.seed()));
        String[] codecs = body.tensors().values().stream().map(Encoded::codec).toArray(String[]::new);
        assertArrayEquals(
            new String[] {"bits", "counts", "dense", "dense", "dense", "slice", "slice", "sparse", "sparse"}, codecs);
    }

    @Test
    void planesAreJoinedToTheSameBytes() {
        byte[] bytes = GoldenFiles.bytes("update_v1.safetensors");
        byte[] split = Planes.split(bytes);
        assertEquals(bytes.length, split.length);
        assertArrayEquals(bytes, Planes.join(split));
    }
}

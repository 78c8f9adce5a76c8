package org.edgefl.golden;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.util.Base64;
import org.edgefl.json.JsonObject;
import org.edgefl.wire.Packing;
import org.edgefl.wire.Planes;
import org.junit.jupiter.api.Test;

/** packed.json: bodies compressed with gzip and with edgefl-planes. */
class PackedTest {
    private final JsonObject golden = GoldenFiles.json("packed.json");

    private static byte[] bytes(JsonObject example, String name) {
        return Base64.getDecoder().decode(example.text(name));
    }

    @Test
    void packedBodiesAreReadAndWritten() throws IOException {
        for (JsonObject example : golden.objects("cases")) {
            byte[] body = bytes(example, "body");
            String name = example.text("name");
            assertArrayEquals(bytes(example, "grouped"), Planes.split(body), name);
            assertArrayEquals(body, Planes.join(bytes(example, "grouped")), name);
            assertArrayEquals(body, Packing.unpack(bytes(example, "stored"), Packing.PLANES), name);
            for (String coding : new String[] {Packing.GZIP, Packing.PLANES}) {
                assertArrayEquals(body, Packing.unpack(bytes(example, coding), coding), name);
                assertArrayEquals(body, Packing.unpack(Packing.pack(body, coding), coding), name);
            }
        }
    }

    @Test
    void badPackedBodiesAreRefused() {
        for (JsonObject example : golden.objects("bad")) {
            assertThrows(IOException.class, () -> Packing.unpack(bytes(example, "packed"), Packing.PLANES),
                example.text("name"));
        }
    }
}

package org.edgefl.golden;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import org.edgefl.json.JsonObject;
import org.edgefl.json.JsonReader;

/** The golden files of the repository, which every client must read. */
public final class GoldenFiles {
    /** Their folder, seen from a module of Maven's. */
    public static final Path FOLDER = Path.of("..", "..", "tests", "golden");

    private GoldenFiles() {}

    public static byte[] bytes(String name) {
        try {
            return Files.readAllBytes(FOLDER.resolve(name));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    public static JsonObject json(String name) {
        return JsonReader.object(bytes(name));
    }

    /** Float32 numbers from base64 of their little-endian bytes. */
    public static float[] floats(String base64) {
        ByteBuffer bytes = ByteBuffer.wrap(Base64.getDecoder().decode(base64)).order(ByteOrder.LITTLE_ENDIAN);
        float[] found = new float[bytes.remaining() / 4];
        bytes.asFloatBuffer().get(found);
        return found;
    }
}

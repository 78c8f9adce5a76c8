package org.edgefl.app.samples;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.edgefl.json.JsonReader;
import org.edgefl.values.SampleSpec;

/** What samples are in the tests' federations, and files with some. */
final class Specs {
    private Specs() {}

    /** Pictures of bytes, without an example. */
    static SampleSpec bytes(int channels, int size) {
        return of("[" + channels + "," + size + "," + size + "]", "\"uint8\"",
            "{\"mean\": [0.0], \"std\": [1.0], \"scale\": 255.0}", "null");
    }

    /** Pictures of bytes in one channel, with an example. */
    static SampleSpec withExample(int size, byte[] raw) {
        String text = Base64.getEncoder().encodeToString(raw);
        return of("[1," + size + "," + size + "]", "\"uint8\"",
            "{\"mean\": [0.0], \"std\": [1.0], \"scale\": 255.0}",
            "{\"raw\": \"" + text + "\", \"label\": 1, \"x\": \"AAAA\"}");
    }

    /** Floats, of which the federation does not say how they were made. */
    static SampleSpec floats(String shape) {
        return of(shape, "null", "null", "null");
    }

    static SampleSpec of(String shape, String rawDtype, String normalisation, String example) {
        String text = "{\"shape\": " + shape + ", \"dtype\": \"float32\", \"raw_dtype\": " + rawDtype
            + ", \"normalisation\": " + normalisation + ", \"classes\": 10, \"example\": " + example + "}";
        return SampleSpec.of(JsonReader.object(text.getBytes(StandardCharsets.UTF_8)));
    }

    /** A file as numpy.savez writes it: x of bytes, y of int64. */
    static byte[] npz(byte[] x, String shapeOfX, long... y) throws IOException {
        return npz("|u1", x, shapeOfX, y);
    }

    static byte[] npz(String typeOfX, byte[] x, String shapeOfX, long... y) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteBuffer labels = ByteBuffer.allocate(8 * y.length).order(ByteOrder.LITTLE_ENDIAN);
        for (long label : y) {
            labels.putLong(label);
        }
        try (ZipOutputStream zip = new ZipOutputStream(out)) {
            zip.putNextEntry(new ZipEntry("x.npy"));
            zip.write(npy(typeOfX, shapeOfX, x));
            zip.putNextEntry(new ZipEntry("y.npy"));
            zip.write(npy("<i8", "(" + y.length + ",)", labels.array()));
        }
        return out.toByteArray();
    }

    private static byte[] npy(String type, String shape, byte[] data) {
        String header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
        ByteBuffer made = ByteBuffer.allocate(10 + header.length() + data.length).order(ByteOrder.LITTLE_ENDIAN);
        made.put(new byte[] {(byte) 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0}).putShort((short) header.length());
        return made.put(header.getBytes(StandardCharsets.US_ASCII)).put(data).array();
    }
}

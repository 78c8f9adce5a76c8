package org.edgefl.data;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.edgefl.json.JsonReader;
import org.edgefl.values.SampleSpec;
import org.junit.jupiter.api.Test;

/** A device's own samples: read as numpy writes them, and checked before the device joins. */
class LocalDataTest {
    private static final SampleSpec SPEC = SampleSpec.of(JsonReader.object("{\"shape\": [1, 2], \"dtype\": \"float32\","
        + "\"raw_dtype\": \"uint8\", \"normalisation\": {\"mean\": [0.5], \"std\": [0.25]}, \"classes\": 3}"));

    private static byte[] npy(String descr, String shape, byte[] data) {
        String header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.writeBytes(new byte[] {(byte) 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (byte) header.length(), 0});
        out.writeBytes(header.getBytes(StandardCharsets.ISO_8859_1));
        out.writeBytes(data);
        return out.toByteArray();
    }

    private static NumpyArray array(String dtype, byte[] data, long... shape) {
        return new NumpyArray(dtype, shape, ByteBuffer.wrap(data));
    }

    private static LocalData of(NumpyArray x, NumpyArray y) {
        return LocalData.of(Map.of("x", x, "y", y), SPEC, 0, 0);
    }

    @Test
    void anNpzFileIsReadAndNormalised() throws IOException {
        ByteArrayOutputStream file = new ByteArrayOutputStream();
        try (ZipOutputStream zip = new ZipOutputStream(file)) {
            zip.putNextEntry(new ZipEntry("x.npy"));
            zip.write(npy("|u1", "(2, 1, 2)", new byte[] {0, (byte) 255, 51, 102}));
            zip.putNextEntry(new ZipEntry("y.npy"));
            zip.write(npy("<i2", "(2,)", new byte[] {2, 0, 1, 0}));
        }
        LocalData data = LocalData.of(Npz.read(new ByteArrayInputStream(file.toByteArray())), SPEC, 0, 0);
        assertEquals(2, data.trainingSamples());
        assertArrayEquals(new float[] {-1.2f, -0.4f, -2, 2}, data.x(new int[] {1, 0}).toFloats(), 1e-6f);
        assertEquals(2, data.y(new int[] {0}).longs().get(0));
        assertArrayEquals(new float[] {0, 1, 1}, data.labelMask());
    }

    private static byte[] zip(String name, byte[] content) throws IOException {
        ByteArrayOutputStream file = new ByteArrayOutputStream();
        try (ZipOutputStream zip = new ZipOutputStream(file, StandardCharsets.ISO_8859_1)) {
            zip.putNextEntry(new ZipEntry(name));
            zip.write(content);
        }
        return file.toByteArray();
    }

    @Test
    void aFileThatUnpacksToMoreThanThereIsRoomForIsRefused() throws IOException {
        byte[] bomb = zip("x.npy", npy("|u1", "(4000000, 1)", new byte[4_000_000]));
        assertTrue(bomb.length < 10_000);
        assertThrows(IOException.class, () -> Npz.read(new ByteArrayInputStream(bomb), 1 << 20));
        byte[] other = zip("padding.npy", new byte[4_000_000]);
        assertEquals(Map.of(), Npz.read(new ByteArrayInputStream(other), 1 << 20));
    }

    @Test
    void filesThatNumpyNeverWritesAreRefusedWithAReason() throws IOException {
        byte[] name = zip("\u00e9.npy", new byte[8]);
        assertThrows(InvalidData.class, () -> Npz.read(new ByteArrayInputStream(name)));
        byte[] size = zip("x.npy", npy("|u1", "(99999999999999999999, 1)", new byte[8]));
        assertThrows(InvalidData.class, () -> Npz.read(new ByteArrayInputStream(size)));
        byte[] half = zip("x.npy", new byte[] {(byte) 0x93, 'N', 'U', 'M', 'P', 'Y', 2, 0, -1, -1, -1, -1, 0});
        assertThrows(InvalidData.class, () -> Npz.read(new ByteArrayInputStream(half)));
    }

    @Test
    void samplesThatDoNotFitTheFederationAreRefused() {
        NumpyArray labels = array("uint8", new byte[] {0, 1}, 2);
        assertThrows(InvalidData.class, () -> of(array("uint8", new byte[6], 2, 1, 3), labels));
        assertThrows(InvalidData.class, () -> of(array("float32", new byte[16], 2, 1, 2), labels));
        assertThrows(InvalidData.class, () -> of(array("uint8", new byte[2], 1, 1, 2), labels));
        NumpyArray samples = array("uint8", new byte[4], 2, 1, 2);
        assertThrows(InvalidData.class, () -> of(samples, array("uint8", new byte[] {0, 3}, 2)));
        assertThrows(InvalidData.class, () -> of(samples, array("int8", new byte[] {0, -1}, 2)));
        assertThrows(InvalidData.class, () -> LocalData.of(Map.of("x", samples), SPEC, 0, 0));
        of(samples, labels);
    }

    @Test
    void objectsAndOtherOrdersAreRefused() {
        assertThrows(InvalidData.class, () -> NumpyArray.parse(npy("|O", "(1,)", new byte[8])));
        assertThrows(InvalidData.class, () -> NumpyArray.parse(npy(">f4", "(1,)", new byte[4])));
        assertThrows(InvalidData.class, () -> NumpyArray.parse(npy("<f4", "(2,)", new byte[4])));
        assertThrows(InvalidData.class, () -> NumpyArray.parse(new byte[] {1, 2, 3}));
    }
}

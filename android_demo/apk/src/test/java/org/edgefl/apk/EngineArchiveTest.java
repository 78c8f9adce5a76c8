package org.edgefl.apk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class EngineArchiveTest {
    @TempDir
    private Path folder;

    private Path archive(Map<String, byte[]> files) throws IOException {
        Path archive = folder.resolve("onnxruntime-android-0.aar");
        try (ZipOutputStream zip = new ZipOutputStream(Files.newOutputStream(archive))) {
            for (Map.Entry<String, byte[]> file : files.entrySet()) {
                zip.putNextEntry(new ZipEntry(file.getKey()));
                zip.write(file.getValue());
            }
        }
        return archive;
    }

    private Pins pins(String text) throws IOException {
        return Pins.read(Files.writeString(folder.resolve("pins.sha256"), text));
    }

    /** The start of a 64-bit library with one loaded segment. */
    private static byte[] library(long alignment) {
        ByteBuffer elf = ByteBuffer.allocate(128).order(ByteOrder.LITTLE_ENDIAN);
        elf.putInt(0, 0x464c457f).put(4, (byte) 2).putLong(32, 64).putShort(54, (short) 56).putShort(56, (short) 1);
        return elf.putInt(64, 1).putLong(64 + 48, alignment).array();
    }

    @Test
    void librariesForSmallPagesOnlyAreNamed() throws IOException {
        Path archive = archive(Map.of("jni/arm64-v8a/libwide.so", library(16384),
                "jni/arm64-v8a/libnarrow.so", library(4096), "jni/x86/libsmall.so", new byte[] {0x7f, 'E', 'L', 'F'}));
        EngineArchive engine = EngineArchive.open(archive, pins(""));
        assertEquals(List.of("arm64-v8a", "x86"), engine.abis());
        assertEquals(List.of("arm64-v8a/libnarrow.so"), engine.narrow());
    }

    @Test
    void aPinForItIsKept() throws IOException {
        Path archive = archive(Map.of("jni/x86/libsmall.so", new byte[1]));
        String digest = Pins.sha256(archive);
        assertEquals(digest, EngineArchive.open(archive, pins(digest + "  " + archive.getFileName())).digest());
        Pins other = pins("0".repeat(64) + "  " + archive.getFileName());
        assertTrue(assertThrows(BuildProblem.class, () -> EngineArchive.open(archive, other)).getMessage()
                .contains("WRONG FILE"));
    }

    @Test
    void anotherLibraryIsNotTakenForTheEngine() throws IOException {
        Path withoutLibraries = archive(Map.of("classes.jar", new byte[0]));
        assertThrows(BuildProblem.class, () -> EngineArchive.open(withoutLibraries, pins("")));
        EngineArchive withoutClasses = EngineArchive.open(archive(Map.of("jni/x86/libother.so", new byte[1])), pins(""));
        assertThrows(BuildProblem.class, () -> withoutClasses.classes(folder));
    }
}

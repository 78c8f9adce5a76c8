package org.edgefl.apk;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * The training engine for phones, onnxruntime's Android library: classes and native libraries of one version.
 *
 * @param file the library
 * @param digest its SHA-256
 * @param abis the kinds of processor that it has libraries for
 * @param narrow its 64-bit libraries that phones with pages of 16 KB cannot load
 */
record EngineArchive(Path file, String digest, List<String> abis, List<String> narrow) {
    private static final String LIBRARIES = "jni/";
    private static final int PAGE = 16384;

    /** Look into a library, and compare it with its pin if there is one. */
    static EngineArchive open(Path file, Pins pins) throws IOException {
        if (!Files.isRegularFile(file)) {
            throw new BuildProblem("there is no engine at " + file + "; without -Dedgefl.engine.aar none is wanted");
        }
        if (pins.knows(file)) {
            pins.check(file);
        }
        TreeSet<String> abis = new TreeSet<>();
        List<String> narrow = new ArrayList<>();
        try (ZipFile zip = new ZipFile(file.toFile())) {
            for (ZipEntry entry : zip.stream().toList()) {
                String name = entry.getName();
                if (name.startsWith(LIBRARIES) && name.endsWith(".so")) {
                    abis.add(name.split("/")[1]);
                    if (!fitsPages(zip.getInputStream(entry).readNBytes(4096))) {
                        narrow.add(name.substring(LIBRARIES.length()));
                    }
                }
            }
        }
        if (abis.isEmpty()) {
            throw new BuildProblem(file + " is not the engine's Android library: it has no native library");
        }
        return new EngineArchive(file, Pins.sha256(file), List.copyOf(abis), narrow);
    }

    /** Write the engine's classes into a folder; return the jar. */
    Path classes(Path folder) throws IOException {
        Path jar = folder.resolve("engine-classes.jar");
        AndroidArchive.unpackClasses(file, jar);
        try (ZipFile zip = new ZipFile(jar.toFile())) {
            if (zip.getEntry("ai/onnxruntime/OrtEnvironment.class") == null) {
                throw new BuildProblem(file + " is not the engine's Android library: it has no OrtEnvironment");
            }
        }
        return jar;
    }

    /** Put the native libraries of all processors into an APK. */
    void addLibraries(ApkContents contents) throws IOException {
        contents.addArchive(file, LIBRARIES, "lib/");
    }

    /** Whether the segments of a 64-bit ELF file begin at pages of 16 KB; only 64-bit phones have such pages. */
    private static boolean fitsPages(byte[] start) {
        ByteBuffer elf = ByteBuffer.wrap(start).order(ByteOrder.LITTLE_ENDIAN);
        boolean is64Bit = start.length > 64 && elf.getInt(0) == 0x464c457f && start[4] == 2;
        if (!is64Bit) {
            return true;
        }
        int headers = (int) elf.getLong(32);
        int size = elf.getShort(54);
        for (int i = 0; i < elf.getShort(56); i++) {
            int header = headers + i * size;
            boolean isLoaded = header + 56 <= start.length && elf.getInt(header) == 1;
            if (isLoaded && elf.getLong(header + 48) % PAGE != 0) {
                return false;
            }
        }
        return true;
    }
}

package org.edgefl.apk;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDateTime;
import java.util.Comparator;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;

/**
 * The files of an APK, written so that equal contents give equal bytes.
 *
 * <p>Nothing is compressed: what a compressor writes differs from machine to machine. Phones map libraries and dex files
 * into memory only if they are not compressed, and stores compress the whole file on its way.
 */
final class ApkContents {
    static final String MANIFEST = "AndroidManifest.xml";
    /** Not the first moment of 1980: Java takes that for a time before, and adds one in the machine's time zone. */
    private static final LocalDateTime FIXED_TIME = LocalDateTime.of(1981, 1, 1, 0, 0);

    private final Map<String, byte[]> files =
            new TreeMap<>(Comparator.comparing((String name) -> !name.equals(MANIFEST)).thenComparing(name -> name));

    /** Add a file; two of a name are an error. */
    void add(String name, byte[] content) {
        if (files.put(name, content) != null) {
            throw new BuildProblem("twice in the APK: " + name);
        }
    }

    /** Add every file of an archive whose name begins with something, which is replaced. */
    void addArchive(Path archive, String prefix, String replacement) throws IOException {
        try (ZipFile zip = new ZipFile(archive.toFile())) {
            for (ZipEntry entry : zip.stream().toList()) {
                if (!entry.isDirectory() && entry.getName().startsWith(prefix)) {
                    try (InputStream in = zip.getInputStream(entry)) {
                        add(replacement + entry.getName().substring(prefix.length()), in.readAllBytes());
                    }
                }
            }
        }
    }

    /** Write the APK, not yet aligned and not yet signed. */
    void write(Path apk) throws IOException {
        try (ZipOutputStream zip = new ZipOutputStream(Files.newOutputStream(apk))) {
            zip.setMethod(ZipOutputStream.STORED);
            for (Map.Entry<String, byte[]> file : files.entrySet()) {
                CRC32 check = new CRC32();
                check.update(file.getValue());
                ZipEntry entry = new ZipEntry(file.getKey());
                entry.setSize(file.getValue().length);
                entry.setCrc(check.getValue());
                entry.setTimeLocal(FIXED_TIME);
                zip.putNextEntry(entry);
                zip.write(file.getValue());
                zip.closeEntry();
            }
        }
    }
}

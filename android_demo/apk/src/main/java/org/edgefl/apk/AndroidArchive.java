package org.edgefl.apk;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/** An Android library ({@code .aar}): a zip file with a {@code classes.jar}, and native libraries under {@code jni}. */
final class AndroidArchive {
    private AndroidArchive() {}

    /** Write an archive's classes to a file. */
    static void unpackClasses(Path archive, Path jar) throws IOException {
        try (ZipFile zip = new ZipFile(archive.toFile())) {
            ZipEntry classes = zip.getEntry("classes.jar");
            if (classes == null) {
                throw new BuildProblem(archive + " is not an Android library: it has no classes.jar");
            }
            try (InputStream in = zip.getInputStream(classes)) {
                Files.copy(in, jar, StandardCopyOption.REPLACE_EXISTING);
            }
        }
    }
}

package org.edgefl.desktop;

import ai.onnxruntime.OrtEnvironment;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.net.JarURLConnection;
import java.net.URL;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import org.edgefl.files.AtomicFile;

/**
 * The engine's native libraries, unpacked once into the device's own folder.
 *
 * <p>onnxruntime would unpack 28 MB into the folder for temporary files at every start, and leave them there whenever
 * this program is stopped or killed.
 */
final class EngineLibrary {
    private static final String PROPERTY = "onnxruntime.native.path";
    private static final String[] NAMES = {"onnxruntime", "onnxruntime4j_jni"};

    private EngineLibrary() {}

    /** Unpack the libraries below a home folder, unless they are there; where this jar has none, onnxruntime says so. */
    static void unpack(Path home) throws IOException {
        URL first = resource(NAMES[0]);
        if (System.getProperty(PROPERTY) != null || first == null
            || !(first.openConnection() instanceof JarURLConnection jar)) {
            return;
        }
        // Named by its content: another version of this program has another one.
        Path folder = home.resolve("engine").resolve(Long.toHexString(jar.getJarEntry().getCrc()));
        if (!Files.isDirectory(folder)) {
            delete(home.resolve("engine").toFile());
        }
        Files.createDirectories(folder);
        for (String name : NAMES) {
            Path file = folder.resolve(System.mapLibraryName(name));
            if (!Files.exists(file)) {
                try (InputStream in = resource(name).openStream()) {
                    AtomicFile.write(file, out -> copy(in, out));
                }
            }
        }
        System.setProperty(PROPERTY, folder.toString());
    }

    private static URL resource(String name) {
        String system = System.getProperty("os.name", "").toLowerCase(Locale.ROOT);
        String arch = System.getProperty("os.arch", "").toLowerCase(Locale.ROOT);
        String platform = (system.startsWith("windows") ? "win" : system.startsWith("mac") ? "osx" : "linux")
            + (arch.equals("aarch64") || arch.equals("arm64") ? "-aarch64" : "-x64");
        return OrtEnvironment.class.getResource("native/" + platform + "/" + System.mapLibraryName(name));
    }

    private static void copy(InputStream in, FileChannel out) throws IOException {
        byte[] piece = new byte[1 << 16];
        for (int count = in.read(piece); count >= 0; count = in.read(piece)) {
            ByteBuffer left = ByteBuffer.wrap(piece, 0, count);
            while (left.hasRemaining()) {
                out.write(left);
            }
        }
    }

    private static void delete(File file) {
        File[] inside = file.listFiles();
        for (File each : inside == null ? new File[0] : inside) {
            delete(each);
        }
        file.delete();
    }
}

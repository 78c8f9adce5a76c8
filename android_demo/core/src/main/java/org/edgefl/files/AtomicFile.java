package org.edgefl.files;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;

/** Writes a file completely or not at all: to another name, onto the disk, then renamed. */
public final class AtomicFile {
    private AtomicFile() {}

    /** Writes the content. */
    public interface Writer {
        /** Write all of it. */
        void writeTo(FileChannel out) throws IOException;
    }

    /** Replace a file by what is written. Only its owner can read it. */
    public static void write(Path file, Writer writer) throws IOException {
        Path part = file.resolveSibling(file.getFileName() + ".new");
        Files.deleteIfExists(part);
        Files.createFile(part);
        restrict(part);
        try (FileChannel out = FileChannel.open(part, StandardOpenOption.WRITE)) {
            writer.writeTo(out);
            out.force(true);
        }
        Files.move(part, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    }

    /** Replace a file by bytes. */
    public static void write(Path file, byte[] bytes) throws IOException {
        write(file, out -> {
            ByteBuffer left = ByteBuffer.wrap(bytes);
            while (left.hasRemaining()) {
                out.write(left);
            }
        });
    }

    /** Take a file or folder from everybody but its owner. */
    public static void restrict(Path path) {
        File file = path.toFile();
        boolean folder = file.isDirectory();
        file.setReadable(false, false);
        file.setWritable(false, false);
        file.setExecutable(false, false);
        file.setReadable(true, true);
        file.setWritable(true, true);
        file.setExecutable(folder, true);
    }
}

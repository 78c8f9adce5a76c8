package org.edgefl.desktop;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import org.edgefl.data.InvalidData;
import org.edgefl.data.LocalData;
import org.edgefl.data.Npz;
import org.edgefl.values.SampleSpec;

/** The device's samples in an {@code .npz} file, which is read again for the next task if it has changed. */
final class SampleFile {
    private final Path file;
    private final double validationShare;
    private final long seed;
    private LocalData known;
    private FileTime changed;
    private long size;

    SampleFile(Path file, double validationShare, long seed) {
        this.file = file;
        this.validationShare = validationShare;
        this.seed = seed;
    }

    /** Read the samples, which must fit what the federation says a sample is. */
    LocalData read(SampleSpec spec) {
        if (!Files.isReadable(file)) {
            throw new InvalidData("the file " + file + " cannot be read", "Give an .npz file with --data.");
        }
        try {
            FileTime time = Files.getLastModifiedTime(file);
            if (known == null || !time.equals(changed) || Files.size(file) != size) {
                changed = time;
                size = Files.size(file);
                try (InputStream in = Files.newInputStream(file)) {
                    known = LocalData.of(Npz.read(in), spec, validationShare, seed);
                }
            }
            return known;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}

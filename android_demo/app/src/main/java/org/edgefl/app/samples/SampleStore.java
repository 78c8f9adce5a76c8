package org.edgefl.app.samples;

import java.io.IOException;
import java.io.InputStream;
import java.util.List;
import org.edgefl.data.LocalData;
import org.edgefl.values.SampleSpec;

/** Samples and labels in the phone's private storage. Every method but the listeners' reads or writes files. */
public interface SampleStore {
    /**
     * One sample.
     *
     * @param raw its numbers in the federation's raw type and shape, row-major
     * @param source where it is from: {@code drawn}, {@code image}, {@code csv} or {@code npz}
     */
    record Sample(long id, int label, String source, long addedMillis, byte[] raw) {}

    /** Add a sample whose bytes fit what a sample is; return its id. */
    long add(SampleSpec spec, int label, String source, byte[] raw);

    /** Add a picture of any size, cut to its middle square and scaled; {@code pixels} are ARGB, row by row. */
    long addPicture(SampleSpec spec, int label, String source, int[] pixels, int width, int height);

    /** Add all rows of a CSV file: numbers, the label in the column {@code label} or the last one; return how many. */
    int importCsv(SampleSpec spec, InputStream file) throws IOException;

    /** Add all samples of an {@code .npz} file with arrays {@code x} and {@code y}; return how many. */
    int importNpz(SampleSpec spec, InputStream file) throws IOException;

    /** Samples by class: as many entries as the federation has classes. */
    int[] countByClass(SampleSpec spec);

    /** Return a page of the federation's samples, or of any without one, the newest first; {@code label} -1 means all. */
    List<Sample> page(int label, int from, int most);

    /** Delete a sample. */
    void delete(long id);

    /** Delete every sample. */
    void deleteAll();

    /** Return all samples as training takes them, with a share held out; throws InvalidData without any. */
    LocalData data(SampleSpec spec);
}

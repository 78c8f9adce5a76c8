package org.edgefl.app.screens;

import android.content.res.Resources;
import java.util.Arrays;
import java.util.stream.Collectors;
import org.edgefl.app.R;
import org.edgefl.app.samples.PictureSamples;
import org.edgefl.values.SampleSpec;

/** What a sample is, in words for people. */
final class SampleWords {
    private SampleWords() {}

    /** Return a sentence about a sample. */
    static String sample(Resources resources, SampleSpec spec) {

        if (PictureSamples.arePictures(spec)) {
            int sentence = spec.shape()[0] == 1 ? R.string.sample_grey : R.string.sample_colour;
            return resources.getString(sentence, spec.shape()[2], spec.shape()[1]);
        }
        boolean tokens = spec.dtype().equals("int64");
        if (spec.shape().length == 1) {
            int count = (int) Math.min(spec.shape()[0], Integer.MAX_VALUE);
            return resources.getQuantityString(tokens ? R.plurals.sample_tokens : R.plurals.sample_row, count, count);
        }
        String sizes = Arrays.stream(spec.shape()).mapToObj(size -> resources.getString(R.string.number, size))
            .collect(Collectors.joining(resources.getString(R.string.times)));
        return resources.getString(tokens ? R.string.sample_tokens_shape : R.string.sample_shape, sizes);
    }

    /** Return a sentence about the classes. */
    static String classes(Resources resources, SampleSpec spec) {
        return resources.getQuantityString(R.plurals.sample_classes, spec.classes(), spec.classes());
    }
}

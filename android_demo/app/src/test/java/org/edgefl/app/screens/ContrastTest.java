package org.edgefl.app.screens;

import static org.junit.Assert.assertTrue;

import android.content.Context;
import android.graphics.Color;
import org.edgefl.app.R;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.annotation.Config;

/** Text can be read in light and dark: contrast by WCAG 2.2, 4.5 for text, 3 for shapes that carry meaning. */
@RunWith(RobolectricTestRunner.class)
@Config(application = FakeApp.class)
public final class ContrastTest {
    private static final int[][] TEXTS = {
        {R.color.text, R.color.card}, {R.color.text, R.color.ground}, {R.color.text_soft, R.color.card},
        {R.color.text_soft, R.color.ground}, {R.color.accent, R.color.card}, {R.color.on_accent, R.color.accent},
        {R.color.on_accent_soft, R.color.accent_soft}, {R.color.on_error_soft, R.color.error_soft},
        {R.color.text_soft, R.color.track}, {R.color.hint_on_paper, R.color.paper}, {R.color.accent, R.color.ground},
    };
    private static final int[][] SHAPES = {
        {R.color.accent, R.color.track}, {R.color.outline, R.color.card}, {R.color.outline, R.color.ground},
        {R.color.ink, R.color.paper}, {R.color.on_accent_soft, R.color.accent_soft},
    };

    @Test
    public void light() {
        check();
    }

    @Test
    public void dark() {
        RuntimeEnvironment.setQualifiers("+night");
        check();
    }

    private static void check() {
        Context context = RuntimeEnvironment.getApplication();
        for (int[] pair : TEXTS) {
            check(context, pair, 4.5);
        }
        for (int[] pair : SHAPES) {
            check(context, pair, 3);
        }
    }

    private static void check(Context context, int[] pair, double least) {
        double one = Color.luminance(context.getColor(pair[0])) + 0.05;
        double other = Color.luminance(context.getColor(pair[1])) + 0.05;
        double contrast = Math.max(one, other) / Math.min(one, other);
        assertTrue(context.getResources().getResourceName(pair[0]) + " on "
            + context.getResources().getResourceName(pair[1]) + " has " + contrast, contrast >= least);
    }
}

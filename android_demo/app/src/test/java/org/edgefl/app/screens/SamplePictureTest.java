package org.edgefl.app.screens;

import static org.junit.Assert.assertEquals;

import android.graphics.Bitmap;
import android.graphics.Color;
import android.graphics.drawable.BitmapDrawable;
import org.edgefl.data.Normalisation;
import org.edgefl.values.SampleSpec;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;

/** A sample on the screen has the light that it was made with. */
@RunWith(RobolectricTestRunner.class)
public final class SamplePictureTest {
    private static int light(String rawDtype, double scale, byte... raw) {
        SampleSpec spec = new SampleSpec(new long[] {1, 1, 1}, "float32", rawDtype,
            new Normalisation(new double[] {0}, new double[] {1}, scale), 10, null);
        Bitmap picture = ((BitmapDrawable) SamplePicture.of(
            RuntimeEnvironment.getApplication().getResources(), spec, raw)).getBitmap();
        return Color.red(picture.getPixel(0, 0));
    }

    @Test
    public void bytesHaveTheirOwnWhiteWhateverTheNormalisationDividesBy() {
        assertEquals(100, light("uint8", 255, (byte) 100));
        assertEquals(100, light("uint8", 1, (byte) 100));
    }

    @Test
    public void floatsAreDividedAsTheNormalisationSays() {
        assertEquals(128, light("float32", 1, (byte) 0, (byte) 0, (byte) 0, (byte) 0x3f));
    }
}

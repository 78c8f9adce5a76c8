package org.edgefl.app;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertTrue;

import android.graphics.Bitmap;
import android.graphics.Canvas;
import android.graphics.Color;
import android.graphics.Paint;
import android.graphics.drawable.AdaptiveIconDrawable;
import android.os.Build;
import java.util.Arrays;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;

/** What the other tests build on: the platform of the manifest, its resources, and pictures that are really drawn. */
@RunWith(RobolectricTestRunner.class)
public final class PlatformTest {
    @Test
    public void testsRunOnTheTargetPlatformWithTheAppsResources() {
        assertEquals(35, Build.VERSION.SDK_INT);
        assertEquals("org.edgefl.app", RuntimeEnvironment.getApplication().getPackageName());
        assertNotNull(RuntimeEnvironment.getApplication().getDrawable(R.drawable.icon_foreground));
    }

    @Test
    public void picturesAreDrawn() {
        Bitmap picture = Bitmap.createBitmap(20, 20, Bitmap.Config.ARGB_8888);
        Paint ink = new Paint();
        ink.setColor(Color.RED);
        new Canvas(picture).drawCircle(10, 10, 5, ink);
        assertEquals(Color.RED, picture.getPixel(10, 10));
        assertEquals(Color.TRANSPARENT, picture.getPixel(1, 1));
    }

    @Test
    public void wordsAreDrawnToo() {
        Bitmap picture = Bitmap.createBitmap(60, 20, Bitmap.Config.ARGB_8888);
        Paint ink = new Paint();
        ink.setTextSize(16);
        new Canvas(picture).drawText("EdgeFL", 2, 15, ink);
        int[] pixels = new int[60 * 20];
        picture.getPixels(pixels, 0, 60, 0, 0, 60, 20);
        assertTrue("the tests' platform has no font", Arrays.stream(pixels).anyMatch(pixel -> pixel != 0));
    }

    @Test
    public void theIconHasColoursInEveryShapeOfALauncher() {
        AdaptiveIconDrawable icon =
                (AdaptiveIconDrawable) RuntimeEnvironment.getApplication().getDrawable(R.mipmap.icon);
        assertNotNull(icon.getMonochrome());
        Bitmap picture = Bitmap.createBitmap(192, 192, Bitmap.Config.ARGB_8888);
        icon.setBounds(0, 0, 192, 192);
        icon.draw(new Canvas(picture));
        assertEquals("the shared model, in the middle", 0xffffc857, picture.getPixel(96, 96));
        assertEquals("the ground, outside of the ring", 0xff0b4f6c, picture.getPixel(96, 12));
    }
}

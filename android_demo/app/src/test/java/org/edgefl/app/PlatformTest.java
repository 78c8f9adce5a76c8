package org.edgefl.app;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotNull;

import android.graphics.Bitmap;
import android.graphics.Canvas;
import android.graphics.Color;
import android.graphics.Paint;
import android.os.Build;
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
}

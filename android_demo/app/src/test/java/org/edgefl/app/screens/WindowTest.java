package org.edgefl.app.screens;

import static org.junit.Assert.assertEquals;

import android.graphics.Insets;
import android.view.View;
import android.view.WindowInsets;
import org.edgefl.app.R;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.annotation.Config;

/** The window lies behind the system's bars; what it shows does not. */
@RunWith(RobolectricTestRunner.class)
@Config(application = FakeApp.class, qualifiers = "w411dp-h891dp-xhdpi")
public final class WindowTest {
    private final Hand hand = new Hand();

    private void dispatch(int keyboard) {
        hand.activity().getWindow().getDecorView().dispatchApplyWindowInsets(new WindowInsets.Builder()
            .setInsets(WindowInsets.Type.statusBars(), Insets.of(0, 60, 0, 0))
            .setInsets(WindowInsets.Type.navigationBars(), Insets.of(0, 0, 0, 48))
            .setInsets(WindowInsets.Type.displayCutout(), Insets.of(30, 0, 0, 0))
            .setInsets(WindowInsets.Type.ime(), Insets.of(0, 0, 0, keyboard)).build());
        hand.settle();
    }

    @Test
    public void nothingIsBehindBarsNotchesOrTheKeyboard() {
        hand.open(null);
        View root = hand.activity().findViewById(R.id.root);
        View navigation = hand.activity().findViewById(R.id.navigation);
        dispatch(0);
        assertEquals(60, root.getPaddingTop());
        assertEquals(30, root.getPaddingLeft());
        assertEquals(48, navigation.getPaddingBottom());
        assertEquals(View.VISIBLE, navigation.getVisibility());
        dispatch(700);
        assertEquals(700, root.getPaddingBottom());
        assertEquals("typing needs the room", View.GONE, navigation.getVisibility());
    }
}

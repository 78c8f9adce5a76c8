package org.edgefl.app.screens;

import android.graphics.Insets;
import android.view.View;
import android.view.Window;
import android.view.WindowInsets;
import org.edgefl.app.RequiresApi;

/** Keeps what a window shows clear of what lies above it: the system's bars, notches and the keyboard. */
@RequiresApi(30)
final class EdgeToEdge implements View.OnApplyWindowInsetsListener {
    private final View navigation;

    /** A listener for the root view, of which the navigation bar is the lowest part. */
    EdgeToEdge(View navigation) {
        this.navigation = navigation;
    }

    /** Let a window lie behind the bars, as Android 15 does anyway. */
    @SuppressWarnings("deprecation") // Android 15 does it by itself; the versions before need to be told.
    void apply(Window window, View root) {
        window.setDecorFitsSystemWindows(false);
        root.setOnApplyWindowInsetsListener(this);
    }

    @Override
    public WindowInsets onApplyWindowInsets(View root, WindowInsets insets) {
        Insets bars = insets.getInsets(WindowInsets.Type.systemBars() | WindowInsets.Type.displayCutout());
        int keyboard = insets.getInsets(WindowInsets.Type.ime()).bottom;
        boolean typing = keyboard > bars.bottom;
        root.setPadding(bars.left, bars.top, bars.right, typing ? keyboard : 0);
        // The bar's colour goes on below its items. While the owner types, its room is better used otherwise.
        navigation.setPadding(0, 0, 0, bars.bottom);
        navigation.setVisibility(typing ? View.GONE : View.VISIBLE);
        return WindowInsets.CONSUMED;
    }
}

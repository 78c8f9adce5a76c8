package org.edgefl.app.screens;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import android.text.Layout;
import android.view.View;
import android.view.ViewGroup;
import android.widget.AbsListView;
import android.widget.EditText;
import android.widget.ScrollView;
import android.widget.TextView;
import org.edgefl.app.R;

/** What must hold for every screen at any size of text: nothing cut off, targets large enough, everything described. */
final class Readable {
    private static final int TARGET_DP = 48;

    private Readable() {}

    static void check(Finger hand, String screen) {
        for (View view : hand.shown()) {
            String name = screen + ": " + name(view);
            checkInside(view, name);
            if (view instanceof TextView text && !(view instanceof EditText)) {
                checkText(text, name);
            }
            // A list calls itself clickable; what can be tapped are its rows.
            if (view.isClickable() && !(view instanceof AbsListView)) {
                checkTarget(view, name);
            }
        }
    }

    private static String name(View view) {
        String id = view.getId() == View.NO_ID ? "" : view.getResources().getResourceName(view.getId());
        return view.getClass().getSimpleName() + " " + id
            + (view instanceof TextView text ? " '" + text.getText() + "'" : "");
    }

    private static void checkInside(View view, String name) {
        ViewGroup parent = (ViewGroup) view.getParent();
        if (parent instanceof ScrollView || parent instanceof AbsListView || view.getId() == R.id.root) {
            return;
        }
        assertTrue(name + " leaves its parent", view.getLeft() >= 0 && view.getTop() >= 0
            && view.getRight() <= parent.getWidth() && view.getBottom() <= parent.getHeight());
    }

    private static void checkText(TextView view, String name) {
        Layout layout = view.getLayout();
        if (layout == null || view.getText().length() == 0) {
            return;
        }
        int room = view.getWidth() - view.getCompoundPaddingLeft() - view.getCompoundPaddingRight();
        for (int line = 0; line < layout.getLineCount(); line++) {
            assertEquals(name + " is shortened", 0, layout.getEllipsisCount(line));
            assertTrue(name + " is too wide", layout.getLineMax(line) <= room + 1);
        }
        assertEquals(name + " is not shown to its end", view.getText().length(),
            layout.getLineEnd(layout.getLineCount() - 1));
        int height = view.getHeight() - view.getCompoundPaddingTop() - view.getCompoundPaddingBottom();
        assertTrue(name + " is too high", layout.getHeight() <= height);
    }

    private static void checkTarget(View view, String name) {
        float density = view.getResources().getDisplayMetrics().density;
        assertTrue(name + " is too small to tap",
            view.getWidth() >= TARGET_DP * density - 1 && view.getHeight() >= TARGET_DP * density - 1);
        CharSequence described = view.getContentDescription();
        if (described == null && view instanceof TextView text) {
            described = text instanceof EditText ? text.getHint() : text.getText();
        }
        assertTrue(name + " says nothing to TalkBack", described != null && described.length() > 0);
    }
}

package org.edgefl.app.screens;

import android.app.AlertDialog;
import android.content.Intent;
import android.os.Bundle;
import android.os.Parcelable;
import android.util.SparseArray;
import android.view.View;
import android.widget.TextView;
import org.edgefl.app.phone.Phone;

/** One screen: a view that outlives switching to another one, and what is kept over rotation and process death. */
abstract class Screen {
    private static final String VIEWS = "views";

    final MainActivity activity;
    final Phone phone;
    final View view;
    final Background background;
    private AlertDialog dialog;

    Screen(MainActivity activity, int layout) {
        this.activity = activity;
        this.phone = activity.phone();
        this.background = new Background(activity, phone);
        this.view = View.inflate(activity, layout, null);
        // The activity would save the views of all screens under the same ids; each screen keeps its own instead.
        view.setSaveFromParentEnabled(false);
    }

    /** Show what the phone says now. Called after every change, as after a step of training: reads no files. */
    abstract void refresh();

    /** The owner came to this screen, or back to the app: show everything anew. */
    void opened() {
        refresh();
    }

    /** Keep what the owner typed, drew and scrolled to. */
    void save(Bundle state) {
        SparseArray<Parcelable> views = new SparseArray<>();
        view.saveHierarchyState(views);
        state.putSparseParcelableArray(VIEWS, views);
    }

    /** Take over what {@link #save} kept, before the first {@link #refresh}. */
    @SuppressWarnings("deprecation") // The typed variant needs API 33.
    void restore(Bundle state) {
        state.setClassLoader(Screen.class.getClassLoader());
        SparseArray<Parcelable> views = state.getSparseParcelableArray(VIEWS);
        if (views != null) {
            view.restoreHierarchyState(views);
        }
    }

    /** Take the answer of another app that this screen asked with {@link Destination#request}. */
    void result(int request, int code, Intent data) {}

    /** Take the system's answer to a request for a permission. */
    void permission(int request, boolean granted) {}

    /** Drop everything that runs for this screen: the activity is going away. */
    void close() {
        background.close();
        if (dialog != null) {
            dialog.dismiss();
        }
    }

    <T extends View> T find(int id) {
        return view.findViewById(id);
    }

    final TextView text(int id) {
        return find(id);
    }

    final void show(int id, boolean visible) {
        find(id).setVisibility(visible ? View.VISIBLE : View.GONE);
    }

    final void onClick(int id, Runnable action) {
        find(id).setOnClickListener(clicked -> action.run());
    }

    /** Ask before something that cannot be undone. */
    final void confirm(int title, String message, int yes, Runnable action) {
        open(new AlertDialog.Builder(activity).setTitle(title).setMessage(message)
            .setPositiveButton(yes, (asked, which) -> action.run()));
    }

    /** Show a dialog of this screen, with a button that closes it; it goes away with the activity. */
    final void open(AlertDialog.Builder builder) {
        if (dialog != null) {
            dialog.dismiss();
        }
        dialog = builder.setNegativeButton(android.R.string.cancel, null).show();
    }
}

package org.edgefl.app.screens;

import android.app.Activity;
import android.content.ActivityNotFoundException;
import android.content.ClipData;
import android.content.ContentResolver;
import android.content.Intent;
import android.net.Uri;
import android.os.Bundle;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import org.edgefl.app.R;
import org.edgefl.app.samples.SampleStore;
import org.edgefl.values.SampleSpec;

/** Adds samples from files that the owner picks in the system's file picker; no permission is needed for that. */
final class SampleImport {
    private static final int PICTURES = 1;
    private static final int CSV = 2;
    private static final int NPZ = 3;
    private static final String LABEL = "import_label";
    // File managers disagree on what a CSV file is.
    private static final String[] CSV_TYPES = {"text/csv", "text/comma-separated-values", "text/plain",
        "application/csv", "application/vnd.ms-excel", "application/octet-stream"};

    private final Screen screen;
    private final ProblemCard problem;
    private final Runnable added;
    private SampleSpec spec;
    private int label = LabelPicker.NONE;

    SampleImport(Screen screen, ProblemCard problem, Runnable added) {
        this.screen = screen;
        this.problem = problem;
        this.added = added;
    }

    void setSpec(SampleSpec form) {
        spec = form;
    }

    /** Pick pictures, all of one class. */
    void pictures(int chosen) {
        label = chosen;
        pick(PICTURES, new Intent(Intent.ACTION_OPEN_DOCUMENT).setType("image/*")
            .putExtra(Intent.EXTRA_ALLOW_MULTIPLE, true));
    }

    void csv() {
        pick(CSV, new Intent(Intent.ACTION_OPEN_DOCUMENT).setType("*/*").putExtra(Intent.EXTRA_MIME_TYPES, CSV_TYPES));
    }

    void npz() {
        pick(NPZ, new Intent(Intent.ACTION_OPEN_DOCUMENT).setType("*/*"));
    }

    private void pick(int request, Intent picker) {
        problem.hide();
        try {
            screen.activity.startActivityForResult(picker.addCategory(Intent.CATEGORY_OPENABLE),
                Destination.DATA.request(request));
        } catch (ActivityNotFoundException none) {
            problem.show(new Problem(screen.activity.getString(R.string.no_picker),
                screen.activity.getString(R.string.no_picker_fix)));
        }
    }

    /** Take what was picked. */
    void result(int request, int code, Intent data) {
        if (code != Activity.RESULT_OK || data == null || spec == null) {
            return;
        }
        List<Uri> picked = picked(data);
        SampleSpec form = spec;
        int chosen = label;
        problem.hide();
        screen.show(R.id.imported, true);
        screen.text(R.id.imported).setText(R.string.importing);
        screen.background.run(() -> {
            int count = 0;
            for (Uri file : picked) {
                count += read(request, form, chosen, file);
            }
            return count;
        }, this::imported, failed -> {
            screen.show(R.id.imported, false);
            problem.show(failed);
            added.run();
        });
    }

    private static List<Uri> picked(Intent data) {
        List<Uri> files = new ArrayList<>();
        ClipData several = data.getClipData();
        for (int i = 0; several != null && i < several.getItemCount(); i++) {
            files.add(several.getItemAt(i).getUri());
        }
        if (files.isEmpty() && data.getData() != null) {
            files.add(data.getData());
        }
        return files;
    }

    private int read(int request, SampleSpec form, int chosen, Uri file) throws IOException {
        if (!ContentResolver.SCHEME_CONTENT.equals(file.getScheme())) {
            // A path would be opened with this app's own rights: whoever answers may not name the app's private files.
            throw new FileNotFoundException();
        }
        SampleStore samples = screen.phone.samples();
        ContentResolver files = screen.activity.getContentResolver();
        if (request == PICTURES) {
            PictureFile picture = PictureFile.read(files, file);
            samples.addPicture(form, chosen, "image", picture.pixels(), picture.width(), picture.height());
            return 1;
        }
        try (InputStream in = files.openInputStream(file)) {
            if (in == null) {
                throw new FileNotFoundException();
            }
            return request == CSV ? samples.importCsv(form, in) : samples.importNpz(form, in);
        }
    }

    private void imported(int count) {
        screen.show(R.id.imported, true);
        screen.text(R.id.imported).setText(
            screen.activity.getResources().getQuantityString(R.plurals.imported, count, count));
        added.run();
    }

    void save(Bundle state) {
        state.putInt(LABEL, label);
    }

    void restore(Bundle state) {
        label = state.getInt(LABEL, LabelPicker.NONE);
    }
}

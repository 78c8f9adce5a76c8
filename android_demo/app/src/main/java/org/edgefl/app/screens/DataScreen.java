package org.edgefl.app.screens;

import android.content.Intent;
import android.os.Bundle;
import android.view.View;
import android.widget.LinearLayout;
import org.edgefl.agent.JoinedFederation;
import org.edgefl.app.R;
import org.edgefl.app.samples.PictureSamples;
import org.edgefl.values.SampleSpec;

/** The owner's samples: draw, import, count, look at, delete. */
final class DataScreen extends Screen {
    private final Background.Latest counting = background.new Latest();
    private final ProblemCard problem = find(R.id.problem);
    private final LabelPicker picker = find(R.id.label_picker);
    private final DrawingPad pad = find(R.id.pad);
    private final SampleTiles tiles;
    private final SampleImport files;
    private SampleSpec spec;
    private String shownFor;

    DataScreen(MainActivity activity) {
        super(activity, R.layout.screen_data);
        tiles = new SampleTiles(this, problem, this::count);
        files = new SampleImport(this, problem, this::reload);
        picker.onChanged(this::showChoices);
        pad.onChanged(this::showChoices);
        onClick(R.id.add, this::add);
        onClick(R.id.data_join, () -> activity.open(Destination.FEDERATION));
        onClick(R.id.delete_all, () -> confirm(R.string.delete_all_title,
            activity.getString(R.string.delete_all_message), R.string.delete, this::deleteAll));
        onClick(R.id.import_pictures, () -> files.pictures(picker.chosen()));
        onClick(R.id.import_csv, files::csv);
        onClick(R.id.import_npz, files::npz);
    }

    @Override
    void opened() {
        shownFor = null;
        refresh();
    }

    @Override
    void refresh() {
        JoinedFederation joined = phone.federation();
        String membership = joined == null ? "" : joined.url() + " " + joined.deviceId();
        boolean changed = !membership.equals(shownFor);
        spec = joined == null ? null : joined.sample();
        shownFor = membership;
        if (changed) {
            showForm();
            reload();
        }
    }

    /** Show what can be added: the federation decides what a sample is. */
    private void showForm() {
        boolean joined = spec != null;
        boolean pictures = joined && PictureSamples.arePictures(spec);
        show(R.id.data_unjoined, !joined);
        show(R.id.data_sample_card, joined);
        show(R.id.label_card, pictures);
        show(R.id.import_card, joined);
        show(R.id.import_pictures, pictures);
        show(R.id.count_card, joined);
        show(R.id.samples_card, joined);
        if (joined) {
            text(R.id.data_sample).setText(SampleWords.sample(activity.getResources(), spec));
            text(R.id.data_classes).setText(SampleWords.classes(activity.getResources(), spec));
            text(R.id.import_how).setText(pictures ? R.string.import_how_pictures : R.string.import_how_rows);
            picker.setClasses(spec.classes());
        }
        if (pictures) {
            pad.setSpec(spec);
        }
        tiles.setSpec(spec);
        files.setSpec(spec);
        showChoices();
    }

    private void showChoices() {
        int label = picker.chosen();
        boolean chosen = label != LabelPicker.NONE;
        View add = find(R.id.add);
        add.setEnabled(chosen && !pad.isEmpty());
        text(R.id.add).setText(chosen ? activity.getString(R.string.add_as, label) : activity.getString(R.string.add));
        find(R.id.import_pictures).setEnabled(chosen);
        text(R.id.import_pictures).setText(chosen ? activity.getString(R.string.import_pictures_as, label)
            : activity.getString(R.string.import_pictures));
    }

    private void add() {
        int label = picker.chosen();
        SampleSpec form = spec;
        int[] pixels = pad.pixels();
        int side = pad.side();
        problem.hide();
        background.run(() -> phone.samples().addPicture(form, label, PictureSamples.DRAWN, pixels, side, side), id -> {
            text(R.id.added).setText(activity.getString(R.string.added, label));
            reload();
        }, problem::show);
        pad.clear();
    }

    private void deleteAll() {
        problem.hide();
        background.run(() -> {
            phone.samples().deleteAll();
            return true;
        }, deleted -> reload(), problem::show);
    }

    private void reload() {
        tiles.load();
        count();
    }

    private void count() {
        SampleSpec form = spec;
        if (form == null) {
            counting.run(() -> !phone.samples().page(-1, 0, 1).isEmpty(), some -> show(R.id.delete_all, some),
                problem::show);
        } else {
            counting.run(() -> phone.samples().countByClass(form), this::showCounts, problem::show);
        }
    }

    private void showCounts(int[] counts) {
        LinearLayout rows = find(R.id.count_rows);
        int total = ClassCounts.show(rows, counts);
        text(R.id.count_heading).setText(total == 0 ? activity.getString(R.string.no_samples)
            : activity.getResources().getQuantityString(R.plurals.samples, total, Units.number(activity, total)));
        show(R.id.delete_all, total > 0);
        show(R.id.samples_card, total > 0);
    }

    @Override
    void result(int request, int code, Intent data) {
        refresh();
        files.result(request, code, data);
    }

    @Override
    void save(Bundle state) {
        super.save(state);
        files.save(state);
    }

    @Override
    void restore(Bundle state) {
        super.restore(state);
        files.restore(state);
    }
}

package org.edgefl.app.screens;

import android.app.AlertDialog;
import android.graphics.drawable.Drawable;
import android.view.LayoutInflater;
import android.view.View;
import android.widget.ImageView;
import android.widget.TextView;
import java.util.ArrayList;
import java.util.List;
import org.edgefl.app.R;
import org.edgefl.app.samples.SampleStore.Sample;
import org.edgefl.values.SampleSpec;

/** The newest samples as tiles; a tap shows one, and offers to delete it. */
final class SampleTiles {
    private static final int PAGE = 24;
    private static final int PICTURE_DP = 200;

    private final Screen screen;
    private final ProblemCard problem;
    private final Runnable deleted;
    private final Background.Latest loading;
    private final TileGrid grid;
    private final List<Sample> shown = new ArrayList<>();
    private SampleSpec spec;

    SampleTiles(Screen screen, ProblemCard problem, Runnable deleted) {
        this.screen = screen;
        this.problem = problem;
        this.deleted = deleted;
        this.loading = screen.background.new Latest();
        this.grid = screen.find(R.id.samples_grid);
        screen.onClick(R.id.samples_more, () -> load(shown.size() + PAGE));
    }

    void setSpec(SampleSpec form) {
        spec = form;
    }

    /** Read the samples again, as many as were there. */
    void load() {
        load(Math.max(PAGE, (shown.size() + PAGE - 1) / PAGE * PAGE));
    }

    private void load(int most) {
        if (spec == null) {
            return;
        }
        // One more than is shown tells whether there are more.
        loading.run(() -> screen.phone.samples().page(-1, 0, most + 1), found -> show(found, most), problem::show);
    }

    private void show(List<Sample> found, int most) {
        shown.clear();
        shown.addAll(found.subList(0, Math.min(most, found.size())));
        screen.show(R.id.samples_more, found.size() > most);
        grid.removeAllViews();
        for (Sample sample : shown) {
            grid.addView(tile(sample));
        }
    }

    private View tile(Sample sample) {
        View tile = LayoutInflater.from(screen.activity).inflate(R.layout.item_sample, grid, false);
        Drawable picture = SamplePicture.of(screen.activity.getResources(), spec, sample.raw());
        ImageView image = tile.findViewById(R.id.tile_picture);
        image.setImageDrawable(picture);
        image.setVisibility(picture == null ? View.GONE : View.VISIBLE);
        TextView label = tile.findViewById(R.id.tile_label);
        label.setText(screen.activity.getString(R.string.class_number, sample.label()));
        tile.setContentDescription(
            screen.activity.getString(R.string.sample_described, sample.label(), source(sample)));
        tile.setOnClickListener(clicked -> open(sample, picture));
        return tile;
    }

    private String source(Sample sample) {
        return screen.activity.getString(switch (sample.source()) {
            case "drawn" -> R.string.source_drawn;
            case "image" -> R.string.source_image;
            case "csv" -> R.string.source_csv;
            default -> R.string.source_npz;
        });
    }

    private void open(Sample sample, Drawable picture) {
        AlertDialog.Builder dialog = new AlertDialog.Builder(screen.activity)
            .setTitle(screen.activity.getString(R.string.class_number, sample.label()))
            .setMessage(screen.activity.getString(R.string.sample_details, source(sample),
                Units.moment(screen.activity, sample.addedMillis())))
            .setPositiveButton(R.string.delete, (asked, which) -> delete(sample));
        if (picture != null) {
            ImageView image = new ImageView(screen.activity);
            image.setImageDrawable(picture.getConstantState().newDrawable());
            image.setMinimumHeight((int) (PICTURE_DP * screen.activity.getResources().getDisplayMetrics().density));
            image.setContentDescription(screen.activity.getString(R.string.preview_described));
            dialog.setView(image);
        }
        screen.open(dialog);
    }

    private void delete(Sample sample) {
        screen.background.run(() -> {
            screen.phone.samples().delete(sample.id());
            return true;
        }, done -> {
            load();
            deleted.run();
        }, problem::show);
    }
}

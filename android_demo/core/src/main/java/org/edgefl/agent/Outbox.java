package org.edgefl.agent;

import java.io.IOException;
import java.nio.file.Files;
import java.util.LinkedHashMap;
import java.util.Map;
import org.edgefl.agent.Progress.Phase;
import org.edgefl.http.CoordinatorClient;
import org.edgefl.http.ProblemAnswer;
import org.edgefl.http.Unreachable;
import org.edgefl.json.JsonObject;
import org.edgefl.json.JsonReader;
import org.edgefl.json.JsonText;
import org.edgefl.values.ClientPlan;
import org.edgefl.values.Receipt;
import org.edgefl.values.Refusal;
import org.edgefl.values.Refusal.Reason;
import org.edgefl.values.TaskRefused;

/**
 * Sends the result or the refusal of a task until it is acknowledged, and then ends the task.
 *
 * <p>A task ends in this order: acknowledged, in the history, forgotten. Each may be repeated after a restart.
 */
final class Outbox {
    static final String RESULT = "result.safetensors";
    static final String REFUSAL = "refusal.json";

    private final AgentHome home;
    private final Enrolment enrolment;
    private final Patience patience;
    private final Status status;
    private final TrafficMeter traffic;
    private Refusal unsaved;

    Outbox(AgentHome home, Enrolment enrolment, Patience patience, Status status, TrafficMeter traffic) {
        this.home = home;
        this.enrolment = enrolment;
        this.patience = patience;
        this.status = status;
        this.traffic = traffic;
    }

    boolean hasResult() {
        return Files.exists(home.taskFile(RESULT));
    }

    boolean hasRefusal() {
        return unsaved != null || Files.exists(home.taskFile(REFUSAL));
    }

    /** Keep a refusal until it is acknowledged: on the disk, or in memory if that is full. */
    void refuse(Refusal refusal) {
        try {
            home.put("task/" + REFUSAL, refusal.toJson());
        } catch (IOException full) {
            unsaved = refusal;
        }
    }

    /**
     * Send the result, and return when to poll again; null if the coordinator does not take it.
     *
     * @throws TaskRefused if the day's traffic is used up; the result stays
     */
    Receipt deliver(PendingTask pending) throws IOException {
        ClientPlan plan = pending.plan();
        status.enter(Phase.SENDING, plan.round() + 1);
        long before = traffic.up();
        try {
            Receipt receipt = patience.until(client -> send(client, pending));
            status.say("  " + receipt.outcome());
            end(plan, receipt.outcome(), "", traffic.up() - before);
            return receipt;
        } catch (ProblemAnswer problem) {
            if (problem.isDenied()) {
                throw problem;
            }
            status.say("  not accepted: " + problem.getMessage());
            record(plan, "rejected", problem.getMessage(), traffic.up() - before);
            if (problem.status() == 413 || problem.status() == 422) {
                // It is told that nothing will come, so that nobody waits; only then the result goes.
                refuse(new Refusal(Reason.BROKEN, problem.getMessage()));
                Files.deleteIfExists(home.taskFile(RESULT));
            } else {
                home.clearTask();
            }
            return null;
        }
    }

    private Receipt send(CoordinatorClient client, PendingTask pending) {
        try {
            return new Delivery(client, enrolment.token())
                .send(pending.plan().taskId(), home.taskFile(RESULT), pending.codings());
        } catch (IOException error) {
            throw new Unreachable("the result cannot be read: " + error.getMessage(), 0, error);
        }
    }

    /** Send the refusal, and return it. */
    Refusal tellRefusal(PendingTask pending) throws IOException {
        Refusal refusal = unsaved == null ? Refusal.of(home.document("task/" + REFUSAL)) : unsaved;
        tell(pending.plan(), refusal);
        unsaved = null;
        return refusal;
    }

    /** Send a refusal of a task that could not even be put on the disk. */
    void tell(ClientPlan plan, Refusal refusal) throws IOException {
        status.enter(Phase.SENDING, plan.round() + 1);
        status.say("  refused: " + refusal.message());
        try {
            patience.until(client -> client.refuse(enrolment.token(), plan.taskId(), refusal));
        } catch (ProblemAnswer problem) {
            if (problem.isDenied()) {
                throw problem;
            }
        }
        end(plan, "refused", refusal.message(), 0);
    }

    private void end(ClientPlan plan, String outcome, String message, long upload) throws IOException {
        record(plan, outcome, message, upload);
        home.clearTask();
    }

    /**
     * Put the task into the history. What is only for the owner to read must not keep the task from ending.
     *
     * @param upload the bytes that sending the result took, which the result itself could not tell
     */
    private void record(ClientPlan plan, String outcome, String message, long upload) {
        JsonObject report = home.document("task/report.json");
        boolean trained = report != null && plan.taskId().equals(report.textOrNull("task_id"));
        TaskRecord record = new TaskRecord(plan.taskId(), plan.round() + 1, plan.isPersonal(), plan.rule(), outcome,
            message, System.currentTimeMillis(), trained ? report.count("samples", 0) : 0,
            trained ? report.count("steps", 0) : 0, trained ? report.number("loss") : Double.NaN,
            trained && report.has("accuracy") ? (Double) report.number("accuracy") : null,
            trained ? withUpload(report.objectOrNull("telemetry"), upload) : null);
        try {
            TaskHistory.add(home.folder(), record);
        } catch (IOException full) {
            status.say("the history cannot be written: " + full.getMessage());
        }
    }

    private static JsonObject withUpload(JsonObject telemetry, long upload) {
        JsonObject told = telemetry == null ? null : telemetry.objectOrNull("transfer");
        if (told == null) {
            return telemetry;
        }
        Map<String, Object> transfer = new LinkedHashMap<>(told.toJson());
        transfer.put("up_bytes", told.whole("up_bytes") + upload);
        Map<String, Object> all = new LinkedHashMap<>(telemetry.toJson());
        all.put("transfer", transfer);
        return JsonReader.object(JsonText.write(all));
    }
}

package org.edgefl.desktop;

import java.io.IOException;
import org.edgefl.EdgeFLError;
import org.edgefl.agent.TaskHistory;

/** The client as a program: {@code java -jar edgefl-client.jar join URI --data mine.npz}. */
public final class Main {
    /** The version of this client. */
    static final String VERSION = "0.1.0";

    private Main() {}

    /** Run a command and end with its exit code: 0, 1 for an error that is explained, 2 for wrong usage. */
    public static void main(String[] arguments) {
        System.exit(run(arguments));
    }

    private static int run(String[] arguments) {
        try {
            if (arguments.length == 0 || arguments[0].equals("--help") || arguments[0].equals("-h")) {
                System.out.print(JoinOptions.HELP);
                return arguments.length == 0 ? 2 : 0;
            }
            if (arguments[0].equals("--version")) {
                System.out.println("edgefl-java " + VERSION);
                return 0;
            }
            if (arguments[0].equals("bench")) {
                new BenchCommand(arguments).run();
                return 0;
            }
            if (!arguments[0].equals("join") && !arguments[0].equals("tasks")) {
                throw new WrongUsage("'" + arguments[0] + "' is not a command; there are 'join' and 'tasks'");
            }
            JoinOptions options = JoinOptions.parse(arguments);
            if (options.help()) {
                System.out.print(JoinOptions.HELP);
                return 0;
            }
            if (arguments[0].equals("tasks")) {
                System.out.print(TaskTable.of(TaskHistory.read(options.home())));
            } else {
                new JoinCommand(options).run();
            }
            return 0;
        } catch (WrongUsage error) {
            System.err.println("edgefl-client: " + error.getMessage() + "\nSee: java -jar edgefl-client.jar --help");
            return 2;
        } catch (EdgeFLError error) {
            System.err.println("error: " + error.getMessage() + "\n" + error.fix());
            show(error);
            return 1;
        } catch (IOException | RuntimeException error) {
            System.err.println("error: " + error.getMessage() + "\nWith EDGEFL_DEBUG=1 it says more.");
            show(error);
            return 1;
        }
    }

    private static void show(Exception error) {
        if ("1".equals(System.getenv("EDGEFL_DEBUG"))) {
            error.printStackTrace();
        }
    }

    /** A command line that cannot be understood. */
    static final class WrongUsage extends RuntimeException {
        WrongUsage(String problem) {
            super(problem);
        }
    }
}

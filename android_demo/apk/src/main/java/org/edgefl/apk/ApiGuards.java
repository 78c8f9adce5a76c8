package org.edgefl.apk;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.objectweb.asm.AnnotationVisitor;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Finds uses of code marked with {@code RequiresApi} that no comparison with the phone's API level guards.
 *
 * <p>A method may use marked code if it is marked itself, or reads {@code Build.VERSION.SDK_INT} and names the number of
 * the mark, or a later one. What a guard decides is not followed, as a reader does that; that there is none is what
 * nobody sees.
 */
final class ApiGuards {
    private final String annotation;
    /** The level by marked class, and by marked method as class, name and descriptor. */
    private final Map<String, Integer> marks = new HashMap<>();

    private ApiGuards(String annotation) {
        this.annotation = "L" + annotation.replace('.', '/') + ";";
    }

    /** Throw, with every unguarded use in a folder of classes. */
    static void check(Path classes, String annotation) throws IOException {
        ApiGuards guards = new ApiGuards(annotation);
        List<ClassReader> readers = new ArrayList<>();
        try (Stream<Path> files = Files.walk(classes)) {
            for (Path file : files.filter(path -> path.toString().endsWith(".class")).sorted().toList()) {
                readers.add(new ClassReader(Files.readAllBytes(file)));
            }
        }
        readers.forEach(reader -> reader.accept(guards.new MarkReader(), ClassReader.SKIP_CODE));
        List<String> problems = new ArrayList<>();
        readers.forEach(reader -> reader.accept(guards.new UseReader(problems), ClassReader.SKIP_FRAMES));
        if (!problems.isEmpty()) {
            throw new BuildProblem("used without a comparison of Build.VERSION.SDK_INT:\n"
                    + String.join("\n", problems));
        }
    }

    /** The level that a class, or a method of it, needs; nested classes need what the outer ones do. */
    private int level(String owner, String method) {
        int found = marks.getOrDefault(owner + method, 0);
        for (String name = owner; ; name = name.substring(0, name.lastIndexOf('$'))) {
            found = Math.max(found, marks.getOrDefault(name, 0));
            if (name.lastIndexOf('$') < 0) {
                return found;
            }
        }
    }

    /** Collects the marks of a class and its methods. */
    private final class MarkReader extends ClassVisitor {
        private String owner;

        MarkReader() {
            super(Opcodes.ASM9);
        }

        @Override
        public void visit(int version, int access, String name, String signature, String parent, String[] interfaces) {
            owner = name;
        }

        @Override
        public AnnotationVisitor visitAnnotation(String descriptor, boolean visible) {
            return mark(descriptor, owner);
        }

        @Override
        public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] thrown) {
            return new MethodVisitor(Opcodes.ASM9) {
                @Override
                public AnnotationVisitor visitAnnotation(String type, boolean visible) {
                    return mark(type, owner + "." + name + descriptor);
                }
            };
        }

        private AnnotationVisitor mark(String type, String place) {
            return !type.equals(annotation) ? null : new AnnotationVisitor(Opcodes.ASM9) {
                @Override
                public void visit(String name, Object value) {
                    marks.put(place, (Integer) value);
                }
            };
        }
    }

    /** Looks at every method of a class for marked code that it uses. */
    private final class UseReader extends ClassVisitor {
        private final List<String> problems;
        private String owner;

        UseReader(List<String> problems) {
            super(Opcodes.ASM9);
            this.problems = problems;
        }

        @Override
        public void visit(int version, int access, String name, String signature, String parent, String[] interfaces) {
            owner = name;
        }

        @Override
        public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] thrown) {
            int granted = level(owner, "." + name + descriptor);
            return new GuardReader(granted, ApiGuards.this::level, (use, level) -> problems.add(
                    owner.replace('/', '.') + "." + name + " uses " + use.replace('/', '.') + ", of API " + level));
        }
    }
}

package org.edgefl.apk;

import java.util.Map;
import java.util.TreeMap;
import java.util.function.BiConsumer;
import java.util.function.ToIntBiFunction;
import org.objectweb.asm.Handle;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/** Reads one method: the API levels that it compares with, and the marked code that it uses. */
final class GuardReader extends MethodVisitor {
    private final ToIntBiFunction<String, String> levels;
    private final BiConsumer<String, Integer> unguarded;
    private final Map<String, Integer> uses = new TreeMap<>();
    private int granted;
    private int named;
    private boolean readsLevel;

    /**
     * Begin a method.
     *
     * @param granted the level that the method's own mark, or its class's, stands for
     * @param levels the level of a class and method
     * @param unguarded takes what is used without a guard, and its level
     */
    GuardReader(int granted, ToIntBiFunction<String, String> levels, BiConsumer<String, Integer> unguarded) {
        super(Opcodes.ASM9);
        this.granted = granted;
        this.levels = levels;
        this.unguarded = unguarded;
    }

    @Override
    public void visitFieldInsn(int opcode, String owner, String name, String descriptor) {
        readsLevel |= owner.equals("android/os/Build$VERSION") && name.equals("SDK_INT");
        use(owner, "." + name);
    }

    @Override
    public void visitIntInsn(int opcode, int operand) {
        named = Math.max(named, operand);
    }

    @Override
    public void visitMethodInsn(int opcode, String owner, String name, String descriptor, boolean isInterface) {
        use(owner, "." + name + descriptor);
    }

    @Override
    public void visitInvokeDynamicInsn(String name, String descriptor, Handle bootstrap, Object... arguments) {
        for (Object argument : arguments) {
            if (argument instanceof Handle handle) {
                use(handle.getOwner(), "." + handle.getName() + handle.getDesc());
            }
        }
    }

    private void use(String owner, String member) {
        int level = levels.applyAsInt(owner, member);
        if (level > 0) {
            uses.put(owner + member, level);
        }
    }

    @Override
    public void visitEnd() {
        if (readsLevel) {
            granted = Math.max(granted, named);
        }
        uses.forEach((use, level) -> {
            if (level > granted) {
                unguarded.accept(use, level);
            }
        });
    }
}

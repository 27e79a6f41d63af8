await import("./kernel/userspace.ts");

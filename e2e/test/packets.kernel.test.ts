import { onRealKernel } from "./kernel/on-real-kernel.ts";

/** Real packets through rules, most of them without an agent; with the other file about half of the time each. */
await onRealKernel(async () => {
  await import("./kernel/self-test.ts");
  (await import("./kernel/nft-conformance.ts")).namedNftConformance();
  await import("./kernel/tracer.ts");
  await import("./kernel/nft-tracer.ts");
  await import("./kernel/userspace.ts");
});

import { onRealKernel } from "./kernel/on-real-kernel.ts";

/** What `npm test` asks of the real kernel: each row's packets, an agent's life, two pod networks, the demo. */
await onRealKernel(async () => {
  await import("./kernel/conformance.ts");
  (await import("./kernel/nft-conformance.ts")).nftConformance();
  await import("./kernel/lifecycle.ts");
  await import("./kernel/founding-case.ts");
  (await import("./kernel/demo.ts")).demoInEachMode();
});

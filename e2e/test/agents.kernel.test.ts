import { onRealKernel } from "./kernel/on-real-kernel.ts";

/** The built agent and the tools alongside it. */
await onRealKernel(async () => {
  (await import("./kernel/demo.ts")).demoOptions();
  await import("./kernel/memory.ts");
  await import("./kernel/stale-tcp.ts");
  await import("./kernel/flows.ts");
  await import("./kernel/faults.ts");
  await import("./kernel/repair.ts");
  await import("./kernel/doctor.ts");
  const { instances } = await import("./kernel/instances.ts");
  instances();
  const { FAIRLEAD_KUBE_PROXY: kubeProxy } = process.env;
  if (kubeProxy === undefined) return;
  (await import("./kernel/kube-proxy-tools.ts")).toolsAlongsideKubeProxy(kubeProxy);
  (await import("./kernel/take-over.ts")).takeOver(kubeProxy);
  instances(kubeProxy);
});

import { takeInventory } from "@fairlead/lab/support/inventory";
import { missingHere } from "@fairlead/lab/support/machine";
import { expect, test } from "vitest";

/**
 * Everything that needs a real kernel, one suite after the other. Where the machine cannot run it, one line says why;
 * in CI that is a failure.
 */
const missing = await missingHere();

if (missing === undefined) {
  const before = await takeInventory();
  await import("./kernel/self-test.ts");
  await import("./kernel/conformance.ts");
  await import("./kernel/nft-conformance.ts");
  await import("./kernel/tracer.ts");
  await import("./kernel/nft-tracer.ts");
  await import("./kernel/demo.ts");
  await import("./kernel/founding-case.ts");
  await import("./kernel/memory.ts");
  await import("./kernel/stale-flows.ts");
  await import("./kernel/stale-tcp.ts");
  await import("./kernel/flows.ts");
  await import("./kernel/userspace.ts");
  await import("./kernel/faults.ts");
  await import("./kernel/repair.ts");
  await import("./kernel/doctor.ts");
  await import("./kernel/kube-ovn-reject.ts");
  await import("./kernel/console.ts");
  const { instances } = await import("./kernel/instances.ts");
  instances();
  const { FAIRLEAD_KUBE_PROXY: kubeProxy } = process.env;
  (await import("./kernel/crowds.ts")).crowds(kubeProxy);
  if (kubeProxy !== undefined) {
    (await import("./kernel/kube-proxy-tools.ts")).toolsBesideKubeProxy(kubeProxy);
    (await import("./kernel/take-over.ts")).takeOver(kubeProxy);
    instances(kubeProxy);
    (await import("./kernel/shadow.ts")).shadowBesideKubeProxy(kubeProxy);
  }
  test("nothing is left behind", async () => {
    expect(await takeInventory()).toEqual(before);
  });
} else {
  test("tests on the real kernel", ({ skip }) => {
    const { CI = "" } = process.env;
    if (CI !== "") throw new Error(`CI must run the tests on the real kernel: ${missing}`);
    skip(missing);
  });
}

import { createRunner } from "@fairlead/kernel";
import { namespaceSupport } from "@fairlead/kernel/netns";

/** Why the bundle cannot run on a kernel here; undefined: it can. */
export async function whyNoKernel(): Promise<string | undefined> {
  const support = await namespaceSupport();
  if (!support.ok) return support.reason;
  return createRunner()
    .run(["iptables", "--version"])
    .then(
      () => undefined,
      () => "iptables is not installed",
    );
}

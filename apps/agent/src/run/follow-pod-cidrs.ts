import { POD_CIDRS_TIMEOUT_MS, PodCIDRs } from "../node/pod-cidrs.ts";
import type { AgentParts } from "./parts.ts";
import type { Readiness } from "./readiness.ts";

/**
 * The own Node's podCIDRs, where local traffic is known by them; undefined elsewhere.
 *
 * @param fail called when they change, or have not come after `POD_CIDRS_TIMEOUT_MS`
 */
export function followPodCIDRs(
  { config, clock, nodeName }: AgentParts,
  readiness: Readiness,
  signal: AbortSignal,
  fail: (reason: string) => void,
): PodCIDRs | undefined {
  if (config.detectLocal.kind !== "node-cidr") return undefined;
  const podCIDRs = new PodCIDRs({
    onKnown: () => readiness.known("podCIDRs"),
    onChanged: (before, after) =>
      fail(`the podCIDRs of Node ${nodeName} changed from ${before.join(",")} to ${after.join(",") || "none"}`),
  });
  if (config.manifests === undefined) {
    const late = () => fail(`Node ${nodeName} was given no podCIDRs, which detectLocalMode NodeCIDR needs`);
    const cancel = clock.after(POD_CIDRS_TIMEOUT_MS, () => podCIDRs.known || late());
    signal.addEventListener("abort", cancel);
  }
  return podCIDRs;
}

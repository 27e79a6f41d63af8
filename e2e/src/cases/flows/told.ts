import type { Flow } from "@fairlead/inspect";
import type { Lab } from "@fairlead/lab/plain/lab";
import { fairlead } from "@fairlead/lab/tools/fairlead";
import { NETWORKS } from "@fairlead/testkit";
import { calls } from "./calls.ts";
import { flowLine, type Made, makeCalls } from "./made.ts";

/** At least a thousand in all. */
const EACH = Math.ceil(1_000 / calls.length);

/** Settings of node-a: what has ended is still known when it is asked for, on a busy machine too. */
export const REMEMBERED = {
  "net/netfilter/nf_conntrack_tcp_timeout_time_wait": "600",
  "net/netfilter/nf_conntrack_tcp_timeout_last_ack": "600",
  "net/netfilter/nf_conntrack_udp_timeout": "600",
};

interface ToldFlows {
  readonly made: Made;
  /** What `fairlead flows` says of them, as `flowLine` has it. */
  readonly told: readonly string[];
  readonly code: number;
}

/**
 * Makes a thousand connections on a lab that an agent serves, and asks the tool for those of services.
 *
 * @param manifests the folder of the agent's objects
 * @param hold they stay open
 */
export async function flowsTold(lab: Lab, manifests: string, hold: boolean): Promise<ToldFlows> {
  const made = await makeCalls(lab, EACH, hold);
  const own = ["--cluster-cidr", NETWORKS.calico.IPv4, "--cluster-cidr", NETWORKS.calico.IPv6];
  const others = ["--exclude-cluster-cidr", NETWORKS.ovn.IPv4, "--exclude-cluster-cidr", NETWORKS.ovn.IPv6];
  const where = ["-f", manifests, "--node", "node-a"];
  const { out, code } = await fairlead(lab, "flows", ...where, ...own, ...others, "-o", "json");
  const flows: readonly Flow[] = JSON.parse(out);
  return { made, told: flows.map(flowLine).sort(), code };
}

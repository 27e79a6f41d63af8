/** Objects and rules that were recorded of kube-proxy, and how commands are asked about them. */

import { goldenScenario } from "@fairlead/testkit";

export const { objects, iptables, nft: recorded } = goldenScenario("10-lb-source-ranges");
export const stdin = JSON.stringify(objects);
export const SVC = "KUBE-SVC-FYZB2HTOW53NRIPL";

export const CLUSTER = ["--node", "node-a", "--cluster-cidr", "10.144.0.0/16"];
export const agent = [...CLUSTER, "--node-address", "10.201.0.10", "--mode", "nftables", "-f", "-"];

/** What `ip -json address` prints on node-a. */
export const addresses = JSON.stringify([
  {
    ifname: "eth0",
    flags: ["UP"],
    addr_info: [{ family: "inet", local: "10.201.0.10", prefixlen: 24, scope: "global" }],
  },
]);

interface Trace {
  readonly outcomes: readonly {
    readonly verdict: string;
    readonly probability: number;
    readonly masqueraded: boolean;
    readonly destination: { readonly address: string; readonly port: number };
  }[];
}

/** Where the packets of `trace -o json` end. */
export function ends(out: string): string[] {
  const { outcomes }: Trace = JSON.parse(out);
  return outcomes.map(
    ({ verdict, probability, masqueraded, destination: { address, port } }) =>
      `${verdict} ${address}:${port} ${probability}${masqueraded ? " masqueraded" : ""}`,
  );
}

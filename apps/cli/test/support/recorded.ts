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

/** What the programs of a node print where nothing is programmed for IPv6, by the whole command or its first word. */
export const nodePrograms = (rules: string) => ({
  "iptables-nft-save": rules,
  "iptables-nft-save -t mangle": "*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n",
  "ip6tables-nft-save": "",
  "iptables --version": "iptables v1.8.9 (nf_tables)\n",
  "ip -json address": addresses,
  ip: "[]",
});

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

import { LET_PASS } from "@fairlead/lab/modes";
import type { Scene } from "../scene.ts";
import { until } from "../until.ts";

const DUMPS = [
  ["iptables-save"],
  ["ip6tables-save"],
  ["ipvsadm", "-Sn"],
  ["ipset", "save"],
  ["ip", "-oneline", "address", "show", "dev", "kube-ipvs0"],
  ["nft", "list", "table", "ip", "kube-proxy"],
  ["nft", "list", "table", "ip6", "kube-proxy"],
] as const;

/** Waits until no node's rules say a word of the address: no jump, no REJECT, no entry of a set that leads to one. */
export async function expectNoTrace({ cluster }: Scene, address: string, withinMs?: number): Promise<void> {
  const nothing = async () => {
    const found = await Promise.all(cluster.nodes.map((node) => traces(node.run, address)));
    const lines = found.flat();
    return lines.length === 0 ? undefined : lines.join("\n");
  };
  await until(`no trace of ${address} on any node`, nothing, withinMs);
}

/**
 * Waits until every node's agent has seen the service's endpoints and leaves it to the other network. Before it sees
 * them the service is ours and refused, and before it knows the service at all, its address is untouched as well.
 */
export async function expectForeign({ cluster, namespace, family }: Scene, service: string): Promise<void> {
  const key = `${namespace}/${service}`;
  await until(`${key} to be the other network's on every node`, async () => {
    const reported = await Promise.all(cluster.nodes.map(({ agent }) => agent.get("/ownership")));
    const known = reported.map((text) => ownerIn(text, key, family));
    return known.every((owner) => owner === "foreign") ? undefined : known.join(", ");
  });
}

interface OwnershipAnswer {
  readonly services: readonly {
    readonly service: string;
    readonly ipFamily: string;
    readonly ownership: string;
    readonly excludedEndpoints: number;
  }[];
}

function ownerIn(text: string, key: string, family: string): string {
  const { services }: OwnershipAnswer = JSON.parse(text);
  const found = services.find(({ service, ipFamily }) => service === key && ipFamily === family);
  if (found === undefined) return "unknown";
  return found.excludedEndpoints === 0 ? "without endpoints" : found.ownership;
}

type Run = Scene["nodes"][0]["run"];

async function traces(run: Run, address: string): Promise<readonly string[]> {
  // Tools of modes that are not there have nothing to say.
  const outputs = await Promise.all(
    DUMPS.map((argv) =>
      run(argv).then(
        ({ stdout }) => stdout.replace(LET_PASS, ""),
        () => "",
      ),
    ),
  );
  const word = new RegExp(`(^|[\\s[])${address.replaceAll(".", "\\.")}([\\s/\\]:,]|$)`);
  return outputs.flatMap((text) => text.split("\n")).filter((line) => word.test(line));
}

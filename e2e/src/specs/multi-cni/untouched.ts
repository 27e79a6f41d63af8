import type { Scene } from "../scene.ts";
import { until } from "../until.ts";

const dumps = [["iptables-save"], ["ip6tables-save"], ["ipvsadm", "-Sn"], ["ipset", "save"]] as const;

/** Waits until no node's rules say a word of the address: no jump, no REJECT, no set entry. */
export async function expectNoTrace({ cluster }: Scene, address: string, withinMs?: number): Promise<void> {
  const nothing = async () => {
    const found = await Promise.all(cluster.nodes.map((node) => traces(node.run, address)));
    const lines = found.flat();
    return lines.length === 0 ? undefined : lines.join("\n");
  };
  await until(`no trace of ${address} on any node`, nothing, withinMs);
}

type Run = Scene["nodes"][0]["run"];

async function traces(run: Run, address: string): Promise<readonly string[]> {
  // Tools of modes that are not there have nothing to say.
  const outputs = await Promise.all(
    dumps.map((argv) =>
      run(argv).then(
        ({ stdout }) => stdout,
        () => "",
      ),
    ),
  );
  const word = new RegExp(`(^|[\\s[])${address.replaceAll(".", "\\.")}([\\s/\\]:,]|$)`);
  return outputs.flatMap((text) => text.split("\n")).filter((line) => word.test(line));
}

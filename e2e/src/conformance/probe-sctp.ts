import { fileURLToPath } from "node:url";
import { type CasePacket, nodeA, socketAddress, type Ways, waysOf, wayTo } from "@fairlead/testkit";
import type { Lab } from "../lab/lab.ts";
import { namespaceOf } from "../lab/topology.ts";

const SCRIPT = fileURLToPath(new URL("../lab/sctp-init.pl", import.meta.url));
/** Until a refusal would have come. */
const WAIT_SECONDS = 0.3;

/** What connection tracking of node-a says of one packet. */
interface Tracked {
  readonly sport: number;
  readonly endpoint: string;
  readonly masqueraded: boolean;
}

/** Sends raw INIT packets and reads from the node's connection tracking how they were translated. */
export async function probeSctp(lab: Lab, packet: CasePacket, count: number): Promise<Ways> {
  const { from, source, destination, port } = packet;
  const words = [from === nodeA ? "-" : source, destination, port, count, WAIT_SECONDS].map(String);
  const { stdout } = await lab.runner(namespaceOf(from)).run(["perl", SCRIPT, ...words]);
  const refused = portsAfter(stdout, "refused");
  const tracked = await trackedPackets(lab, packet);
  return waysOf(
    portsAfter(stdout, "sent").map((sport) => {
      const found = tracked.find((entry) => entry.sport === sport);
      const end = refused.includes(sport) ? "reject" : (found?.endpoint ?? "drop");
      return { way: wayTo(end, found?.masqueraded ?? false), probability: 1 / count };
    }),
  );
}

function portsAfter(output: string, word: string): readonly number[] {
  const lines = output.split("\n").filter((line) => line.startsWith(`${word} `));
  return lines.map((line) => Number(line.slice(word.length)));
}

const ENTRY =
  / sctp .* src=(?<source>\S+) dst=(?<destination>\S+) sport=(?<sport>\d+) dport=(?<dport>\d+) .*src=(?<endpoint>\S+) dst=(?<seen>\S+) sport=(?<eport>\d+) dport=(?<seenPort>\d+)/;

async function trackedPackets(lab: Lab, packet: CasePacket): Promise<readonly Tracked[]> {
  const { stdout } = await lab.runner("node-a").run(["cat", "/proc/net/nf_conntrack"]);
  return stdout.split("\n").flatMap((line) => {
    const entry = ENTRY.exec(line)?.groups;
    if (entry === undefined || entry["destination"] !== packet.destination) return [];
    if (entry["source"] !== packet.source || Number(entry["dport"]) !== packet.port) return [];
    const untouched = entry["seen"] === packet.source && entry["seenPort"] === entry["sport"];
    const endpoint = socketAddress(entry["endpoint"] ?? "", Number(entry["eport"]));
    return [{ sport: Number(entry["sport"]), endpoint, masqueraded: !untouched }];
  });
}

import { socketText } from "@fairlead/base";
import type { Lab } from "@fairlead/lab/plain/lab";
import type { CasePacket } from "@fairlead/testkit";

/** What connection tracking of node-a says of one packet. */
export interface Tracked {
  readonly sport: number;
  readonly endpoint: string;
  readonly masqueraded: boolean;
}

const ENTRY =
  / (?<protocol>tcp|udp|sctp) .* src=(?<source>\S+) dst=(?<destination>\S+) sport=(?<sport>\d+) dport=(?<dport>\d+) .*src=(?<endpoint>\S+) dst=(?<seen>\S+) sport=(?<eport>\d+) dport=(?<seenPort>\d+)/;

/** How node-a translated the packets of this source to this frontend that it remembers. IPv4 only. */
export async function trackedPackets(lab: Lab, packet: CasePacket): Promise<readonly Tracked[]> {
  const { stdout } = await lab.runner("node-a").run(["cat", "/proc/net/nf_conntrack"]);
  return stdout.split("\n").flatMap((line) => {
    const entry = ENTRY.exec(line)?.groups;
    if (entry === undefined || !isOf(packet, entry)) return [];
    const untouched = entry["seen"] === packet.source && entry["seenPort"] === entry["sport"];
    const endpoint = socketText(entry["endpoint"] ?? "", Number(entry["eport"]));
    return [{ sport: Number(entry["sport"]), endpoint, masqueraded: !untouched }];
  });
}

function isOf({ protocol, source, destination, port }: CasePacket, entry: Readonly<Record<string, string>>): boolean {
  return (
    entry["protocol"] === protocol.toLowerCase() &&
    entry["source"] === source &&
    entry["destination"] === destination &&
    Number(entry["dport"]) === port
  );
}

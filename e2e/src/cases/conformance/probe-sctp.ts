import { fileURLToPath } from "node:url";
import { type Lab, namespaceOf } from "@fairlead/lab/plain/lab";
import { type CasePacket, NODE_A, type OutcomeShares, waysOf, wayTo } from "@fairlead/testkit";
import { trackedPackets } from "./tracked-packets.ts";

const SCRIPT = fileURLToPath(new URL("sctp-init.pl", import.meta.url));
/** Until a refusal would have come. */
const WAIT_SECONDS = 0.3;

/** Sends raw INIT packets and reads from the node's connection tracking how they were translated. */
export async function probeSctp(lab: Lab, packet: CasePacket, count: number): Promise<OutcomeShares> {
  const { from, source, destination, port } = packet;
  const words = [from === NODE_A ? "-" : source, destination, port, count, WAIT_SECONDS].map(String);
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

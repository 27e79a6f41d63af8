import type { Host } from "@fairlead/testkit";
import type { Lab } from "../two-nodes/lab.ts";
import type { TrafficFlow } from "./traffic.ts";

/**
 * Long enough for more than one SYN: the ICMPv6 answer to the first comes while connect() holds the socket, and is not
 * heeded. A busy machine may take seconds to answer.
 */
const TIMEOUT_MS = 15_000;

/** Who answers one request: the server's name, or `refused`, `lost` or the error's code. */
export function whoAnswers(lab: Lab, from: Host, to: string, port = 80): Promise<string> {
  return whoAnswersAt(lab, { from, to, port });
}

/** The same for a way that traffic takes. */
export async function whoAnswersAt(lab: Lab, { from, protocol = "TCP", to, port }: TrafficFlow): Promise<string> {
  const [result] = await lab.peer(from).send({ protocol, to, port, count: 1, parallel: 1, timeoutMs: TIMEOUT_MS });
  if (result === undefined) return "nothing";
  if (result.kind === "answer") return result.server;
  return result.kind === "error" ? result.code : result.kind;
}

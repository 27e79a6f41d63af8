import { familyOf, socketText } from "@fairlead/base";
import type { Flow } from "@fairlead/inspect";
import type { ProbeResult } from "@fairlead/lab/peer/protocol";
import { type Lab, namespaceOf } from "@fairlead/lab/plain/lab";
import { hosts } from "@fairlead/testkit";
import { type Call, calls } from "./calls.ts";

const TIMEOUT_MS = 30_000;

/** What the two ends of real connections know of them. */
export interface Made {
  /** How many connections were made, of services and not. */
  readonly connections: number;
  /** Those of services, as `flowLine` has them. */
  readonly lines: readonly string[];
}

/**
 * Makes all calls so many times, each on a connection of its own.
 *
 * @param hold they stay open until the lab is gone
 * @throws Error naming what was not answered
 */
export async function makeCalls(lab: Lab, each: number, hold = false): Promise<Made> {
  const made = await Promise.all(
    calls.map(async (call) => {
      const { from, protocol, to, port } = call;
      const results = await lab
        .peer(from)
        .send({ protocol, to, port, count: each, parallel: 8, timeoutMs: TIMEOUT_MS, hold });
      return results.map((result) => lineOf(call, result));
    }),
  );
  const all = made.flat();
  return { connections: all.length, lines: all.filter((line) => line !== undefined).sort() };
}

function lineOf(call: Call, result: ProbeResult): string | undefined {
  const { from, protocol, to, port, of } = call;
  const way = `${protocol} ${from.name} → ${socketText(to, port)}`;
  if (result.kind !== "answer") throw new Error(`${way}: ${result.kind === "error" ? result.code : result.kind}`);
  if (of === undefined) return undefined;
  const end = result.server === "sink" ? "not translated" : endpointOf(result.server, result.local, to);
  return `${protocol} ${result.sender} → ${socketText(to, port)} → ${end} ${of.service} ${of.owner}`;
}

/** Who answered. A UDP server knows its port only; who it is tells the address. */
function endpointOf(server: string, local: string, to: string): string {
  const host = hosts.find((one) => namespaceOf(one) === server);
  if (host === undefined) throw new Error(`${server} is no host of the lab`);
  return socketText(host.addresses[familyOf(to)], Number(local.slice(local.lastIndexOf(":") + 1)));
}

/** What `fairlead flows` says of a connection, in the same words. */
export function flowLine({ protocol, client, frontend, endpoint, service, owner }: Flow): string {
  const end = endpoint === undefined ? "not translated" : socketText(endpoint.address, endpoint.port);
  const remark = endpoint === undefined || endpoint.condition === "ready" ? "" : ` (${endpoint.condition})`;
  const way = [client, frontend].map(({ address, port }) => socketText(address, port)).join(" → ");
  return `${protocol} ${way} → ${end}${remark} ${service} ${owner}`;
}

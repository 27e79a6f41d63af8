import { fileURLToPath } from "node:url";
import { IP_FAMILIES } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { clientA, type Host, webA1 } from "@fairlead/testkit";
import { startScript } from "../support/script.ts";
import { address, applyLines, type IpLines, route } from "../wire.ts";
import { type Lab, namespaceOf, podInterface } from "./lab.ts";

export interface CrowdQuestion {
  readonly clients: readonly string[];
  readonly to: string;
  readonly port: number;
  /** How many connections each client begins at once, from as many CPUs as there are, up to four. */
  readonly sockets: number;
}

/** Clients with an address each, and endpoints with an address each, in two pods of node-a. */
export interface LabCrowd {
  /** @returns for each client what each of its sockets met: an endpoint, `ADDRESS:PORT`, or an error's code */
  call(question: CrowdQuestion): Promise<readonly (readonly string[])[]>;
  close(): Promise<void>;
}

export const CROWD_PORT = 9797;
const CLIENTS = 200;
const ENDPOINTS = 12;
/** Processes that begin connections. */
const CALLERS = 4;

const ADDRESSES = {
  IPv4: { client: (at: number) => `10.144.200.${at}`, endpoint: (at: number) => `10.144.201.${at}`, whole: 32 },
  IPv6: { client: (at: number) => `fd00:144::200:${at}`, endpoint: (at: number) => `fd00:144::201:${at}`, whole: 128 },
} as const;

export function crowdClients(family: IPFamily): readonly string[] {
  return Array.from({ length: CLIENTS }, (_, at) => ADDRESSES[family].client(at + 1));
}

/** The address of an endpoint, from 0 to 11. */
export function crowdEndpoint(family: IPFamily, at: number): string {
  return ADDRESSES[family].endpoint(at + 1);
}

const SCRIPT = fileURLToPath(new URL("./crowd-main.ts", import.meta.url));

export async function openCrowd(lab: Lab): Promise<LabCrowd> {
  const endpoints = (family: IPFamily) => Array.from({ length: ENDPOINTS }, (_, at) => crowdEndpoint(family, at));
  await using opened = new AsyncDisposableStack();
  for (const [pod, addresses] of [[clientA, crowdClients] as const, [webA1, endpoints] as const]) {
    opened.defer(await give(lab, pod, addresses));
  }
  const start = async (host: Host, ...args: readonly string[]) => {
    const script = await startScript(lab.namespace(namespaceOf(host)), SCRIPT, args);
    opened.defer(() => script.stop());
    return script;
  };
  await start(webA1, "serve", String(CROWD_PORT));
  const callers = await Promise.all(Array.from({ length: CALLERS }, () => start(clientA, "call")));
  const kept = opened.move();
  return {
    call: async ({ sockets, ...question }) => {
      const shares = callers.map((caller, at) => ({ caller, sockets: Math.ceil((sockets - at) / CALLERS) }));
      const asked = shares
        .filter((one) => one.sockets > 0)
        .map(
          async ({ caller, ...share }): Promise<readonly (readonly string[])[]> =>
            JSON.parse(await caller.ask(JSON.stringify({ ...question, ...share }))),
        );
      const answers = await Promise.all(asked);
      return question.clients.map((_, client) => answers.flatMap((each) => each[client] ?? []));
    },
    close: () => kept.disposeAsync(),
  };
}

/**
 * More addresses for a pod, and its node's ways to them.
 *
 * @returns takes them away again
 */
async function give(lab: Lab, pod: Host, addresses: (family: IPFamily) => readonly string[]) {
  const all = IP_FAMILIES.flatMap((family) =>
    addresses(family).map((one) => ({ one, cidr: `${one}/${ADDRESSES[family].whole}` })),
  );
  const inPod = (lines: IpLines) => applyLines(lab.runner(namespaceOf(pod)), lines);
  const onNode = (lines: IpLines) => applyLines(lab.runner("node-a"), lines);
  await inPod(all.map(({ cidr }) => address("eth0", cidr)));
  await onNode(all.map(({ one }) => route(one, { dev: podInterface(pod) })));
  return async () => {
    await onNode(all.map(({ one }) => `route delete ${one}`));
    await inPod(all.map(({ cidr }) => `address delete ${cidr} dev eth0`));
  };
}

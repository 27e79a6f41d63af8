/** The calls between specs and the guest, each a line of JSON. */

import { createInterface } from "node:readline";
import type { Duplex } from "node:stream";
import { IP_FAMILIES } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import type { Argv, RunResult } from "@fairlead/kernel";
import type { Probe, ProbeResult } from "../../peer/protocol.ts";
import { messageOf } from "../../support/processes.ts";
import { address, type IpLines, route, up } from "../../wire.ts";
import type { AgentStart, ClusterShape, NodeProxy, WantedPod } from "../cluster.ts";
import { FABRIC_NETWORK } from "../netns/ground.ts";
import type { ClusterRequest } from "../provider.ts";

type Name = keyof GuestCalls;

/** Asks the other side; what it throws there is thrown here, with the same message. */
export type Ask = <N extends Name>(
  name: N,
  ...args: Parameters<GuestCalls[N]>
) => Promise<Awaited<ReturnType<GuestCalls[N]>>>;

type Reply = { readonly id: number } & ({ readonly value: unknown } | { readonly failure: string });

/** A line that answers no request. */
interface ProgressLine {
  readonly progress: string;
}

interface Request {
  readonly id: number;
  readonly name: Name;
  readonly args: readonly unknown[];
}

/** Each request and each reply is one line of JSON; many may be under way. */
export function askOver(stream: Duplex, onProgress: (line: string) => void): Ask {
  const waiting = new Map<number, PromiseWithResolvers<never>>();
  let ended: Error | undefined;
  const end = (error: Error) => {
    ended = error;
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  };
  createInterface({ input: stream }).on("line", (line) => {
    const message: Reply | ProgressLine = JSON.parse(line);
    if ("progress" in message) onProgress(message.progress);
    else settle(waiting, message);
  });
  stream.on("error", end);
  stream.on("close", () => end(new Error("the guest has ended")));
  let next = 0;
  return (name, ...args) => {
    const call = Promise.withResolvers<never>();
    if (ended !== undefined) call.reject(ended);
    else {
      const request: Request = { id: next++, name, args };
      waiting.set(request.id, call);
      stream.write(`${JSON.stringify(request)}\n`);
    }
    return call.promise;
  };
}

/** Answers what the other side asks. Gives the way to tell it of progress. */
export function answerOver(stream: Duplex, calls: GuestCalls): (progress: string) => void {
  const write = (message: Reply | ProgressLine) => {
    if (stream.writable) stream.write(`${JSON.stringify(message)}\n`);
  };
  createInterface({ input: stream }).on("line", async (line) => {
    const { id, name, args }: Request = JSON.parse(line);
    try {
      write({ id, value: (await Reflect.apply(calls[name], calls, args)) ?? null });
    } catch (error) {
      write({ id, failure: messageOf(error) });
    }
  });
  return (progress) => write({ progress });
}

/** Written by the machine's side for the guest's: what it opens, and how it reaches the control plane. */
export interface GuestSettings {
  readonly request: ClusterRequest;
  readonly shape: ClusterShape;
  /** The API server's address, and its certificate as PEM. */
  readonly apiServer: {
    readonly host: string;
    readonly port: number;
    readonly ca: string;
    readonly url: string;
    readonly token: string;
  };
  /** File that the agents are given. */
  readonly proxyKubeconfig: string;
  /** File for what stands in for controllers. */
  readonly adminKubeconfig: string;
  /** Where the machine's side waits for the guest to connect. */
  readonly host: string;
  readonly port: number;
}

type Addresses = Readonly<Partial<Record<IPFamily, string>>>;

/** The part of a cluster that only the guest knows. */
export interface OpenedCluster {
  readonly nodes: readonly { readonly name: string; readonly zone: string; readonly addresses: Addresses }[];
  readonly outside: Addresses;
}

type AgentAction = "kill" | "SIGSTOP" | "SIGCONT";

/**
 * What the machine's side asks of the cluster in the guest: `Cluster` with names in place of objects, and without what
 * the machine's side does itself. Arguments and answers are JSON.
 */
export interface GuestCalls {
  open(): Promise<OpenedCluster>;
  /** @param client name of a node or a pod, or `outside` */
  send(client: string, probe: Probe): Promise<readonly ProbeResult[]>;
  run(node: string, argv: Argv): Promise<RunResult>;
  agent(node: string, action: AgentAction): Promise<void>;
  restartAgent(node: string, how: AgentStart): Promise<void>;
  swapAgent(node: string, proxy: NodeProxy): Promise<void>;
  startLocalInstance(node: string, serviceProxyName: string): Promise<void>;
  /** One that was started. */
  removeLocalInstance(node: string, serviceProxyName: string): Promise<void>;
  agentGet(node: string, path: string): Promise<string>;
  agentStatus(node: string, family: IPFamily, port: number): Promise<number>;
  agentLog(node: string): Promise<string>;
  startPod(wanted: WantedPodAt): Promise<{ readonly name: string; readonly addresses: Addresses }>;
  pod(name: string, action: "terminate" | "remove"): Promise<void>;
  /** @returns what it said when it was ready, and a name for the other calls */
  startPodScript(pod: string, file: string, args: readonly string[]): Promise<StartedScript>;
  askScript(script: string, line: string): Promise<string>;
  stopScript(script: string): Promise<void>;
  setPodReady(name: string, ready: boolean): Promise<void>;
  setPodLabels(name: string, labels: Readonly<Record<string, string | null>>): Promise<void>;
  state(): Promise<Readonly<Record<string, string>>>;
  dispose(): Promise<void>;
}

function settle(waiting: Map<number, PromiseWithResolvers<never>>, reply: Reply): void {
  const call = waiting.get(reply.id);
  waiting.delete(reply.id);
  if ("failure" in reply) call?.reject(new Error(reply.failure));
  // The other side has the same types.
  else call?.resolve(reply.value as never);
}

interface StartedScript {
  readonly name: string;
  readonly ready: string;
}

/** `WantedPod` with the node's name. */
type WantedPodAt = Omit<WantedPod, "node"> & { readonly node: string };

/**
 * The way between the guest's cluster and the machine's side, where the control plane is: a tap device in a namespace
 * of the machine, `vec0` in the guest, and a pair of interfaces from there to the cluster's fabric.
 */
export const TAP = "uml0";
const VECTOR = "vec0";
const TO_FABRIC = "fabric";
const FROM_FABRIC = "control";

type Ends = Readonly<Record<IPFamily, string>>;

/** The machine's end. The API server is there. */
export const MACHINE_END: Ends = { IPv4: "172.31.0.1", IPv6: "fd00:31::1" };
const GUEST_END: Ends = { IPv4: "172.31.0.2", IPv6: "fd00:31::2" };
const NEAR_END: Ends = { IPv4: "172.29.0.1", IPv6: "fd00:29::1" };
const FABRIC_END: Ends = { IPv4: "172.29.0.2", IPv6: "fd00:29::2" };

const LINK_NETWORK: Ends = { IPv4: "172.31.0.0/24", IPv6: "fd00:31::/64" };
const INNER_NETWORK: Ends = { IPv4: "172.29.0.0/24", IPv6: "fd00:29::/64" };
const LENGTH: Readonly<Record<IPFamily, number>> = { IPv4: 24, IPv6: 64 };

const at = (ends: Ends, dev: string) => IP_FAMILIES.map((family) => address(dev, `${ends[family]}/${LENGTH[family]}`));

/** In the machine's namespace. */
export const machineLines: IpLines = [
  `tuntap add dev ${TAP} mode tap`,
  up(TAP),
  ...at(MACHINE_END, TAP),
  ...IP_FAMILIES.flatMap((family) =>
    [FABRIC_NETWORK, INNER_NETWORK].map((network) => route(network[family], { via: GUEST_END[family] })),
  ),
];

/** In the guest's first namespace. */
export const guestLines: IpLines = [up(VECTOR), ...at(GUEST_END, VECTOR)];

/**
 * There too, once there is a fabric.
 *
 * @param fabric the process that holds it
 */
export function fabricPair(fabric: number): IpLines {
  return [
    `link add ${TO_FABRIC} type veth peer name ${FROM_FABRIC} netns ${fabric}`,
    up(TO_FABRIC),
    ...at(NEAR_END, TO_FABRIC),
    ...IP_FAMILIES.map((family) => route(FABRIC_NETWORK[family], { via: FABRIC_END[family] })),
  ];
}

/** In the cluster's fabric. */
export const fabricEndLines: IpLines = [
  up(FROM_FABRIC),
  ...at(FABRIC_END, FROM_FABRIC),
  ...IP_FAMILIES.map((family) => route(LINK_NETWORK[family], { via: NEAR_END[family] })),
];

/** A crowd on the kernel in memory, or on any other. */

import { once } from "node:events";
import { connect, createServer } from "node:net";
import { VirtualClock } from "@fairlead/base/testing";
import type { Backend } from "@fairlead/core";
import type { Runner } from "@fairlead/kernel";
import type { RuleSet } from "@fairlead/netfilter";
import { createTracer, type Environment, type Outcome, type Rules, type Tracer } from "@fairlead/trace";
import { CROWD_CLIENTS, type CrowdHistory, type CrowdNode } from "./crowd.ts";

export interface CrowdKernel {
  /** Another one when anything but what connections leave has changed. */
  version(): unknown;
  rules(): RuleSet | Rules;
  /** Of a client that is known, with what its connections have left since the rules were read. */
  environment(client: string): Environment;
  knows(client: string): boolean;
  /**
   * @param sender that the outcome was traced for: the client, or one that stands for all that are not known
   */
  take(outcome: Outcome, client: string, sender: string): void;
}

/** A kernel in memory, which may have to follow what a backend has written. */
interface ServedKernel extends CrowdKernel {
  changed?(): void;
}

type Served = Pick<CrowdNode, "apply" | "fullSync" | "restart" | "connect">;

/** @param backendAnew the backend as another process makes it, on the same kernel */
export function servedCrowd(
  backendAnew: () => Pick<Backend, "apply" | "sync">,
  kernel: ServedKernel,
  random: () => number,
): Served {
  let backend = backendAnew();
  const packets = new TracedCrowd(kernel, random);
  const changing = async (work: Promise<unknown>) => {
    await work;
    kernel.changed?.();
  };
  return {
    apply: (plan, change) => changing(backend.apply(plan, change)),
    fullSync: (plan) => changing(backend.sync(plan)),
    restart: (plan) => {
      backend = backendAnew();
      return changing(backend.sync(plan));
    },
    connect: (client, to) => packets.connect(client, to),
  };
}

/** A crowd whose packets are real. */
export interface RealCrowd extends Pick<CrowdNode, "clock" | "nodeAddress" | "connect"> {
  readonly connections: () => number;
  readonly close: () => void;
}

/** Clients, endpoints and the node in the network namespace that this process is in, which has nothing else. */
export async function openRealCrowd({ run }: Pick<Runner, "run">, nodeAddress: string): Promise<RealCrowd> {
  const addresses = ["10.144.128.0/24", `${nodeAddress}/32`, ...CROWD_CLIENTS.map((client) => `${client}/32`)];
  const lines = [
    ...addresses.map((address) => `address add ${address} dev lo`),
    // Routed to lo, what is rejected would not be answered.
    "link add out type veth peer name far",
    "link set far up",
    "link set out up",
    "route add 10.96.0.0/16 dev out",
  ];
  await run(["ip", "-batch", "-"], { input: `${lines.join("\n")}\n` });
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.end(`${socket.localAddress}:${socket.localPort}`);
  });
  server.listen(8080, "0.0.0.0");
  await once(server, "listening");
  let connections = 0;
  return {
    clock: new VirtualClock(),
    nodeAddress,
    connect: (client, { address, port }) => {
      connections += 1;
      return ask({ host: address, port, localAddress: client, localPort: FIRST_PORT + (connections % 40_000) });
    },
    connections: () => connections,
    close: () => server.close(),
  };
}

/** Nothing waits for a kernel's clock. */
export function inRealTime(history: CrowdHistory): CrowdHistory {
  return history.filter(({ step }) => step.kind !== "long-wait");
}

// Each connection has a source port of its own. The kernel remembers for 120 s what became of a SYN that was rejected,
// and another one from the same port to the same address takes the same way, whatever the rules say by then.
const FIRST_PORT = 20_000;

interface Asked {
  readonly host: string;
  readonly port: number;
  readonly localAddress: string;
  readonly localPort: number;
}

async function ask(asked: Asked): Promise<string> {
  const socket = connect({ ...asked, noDelay: true });
  let text = "";
  socket.setEncoding("utf8").on("data", (data: string) => {
    text += data;
  });
  try {
    await once(socket, "close");
    return text;
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : String(error);
  }
}

/** Sends in place of all clients of which nothing is known: their packets are traced once. */
const ANYBODY = "10.201.8.1";

/** First packets of connections, one after the other, each by one of the ways that the tracer has for it. */
class TracedCrowd {
  readonly #kernel: CrowdKernel;
  readonly #random: () => number;
  #version: unknown;
  #tracer: Tracer | undefined;
  readonly #anybodys = new Map<string, readonly Outcome[]>();

  constructor(kernel: CrowdKernel, random: () => number) {
    this.#kernel = kernel;
    this.#random = random;
  }

  /** @returns the endpoint `address:port` where it ends, or the verdict */
  connect(client: string, to: { readonly address: string; readonly port: number }): string {
    const isKnown = this.#kernel.knows(client);
    const tracer = this.#prepared();
    const outcomes = isKnown ? this.#trace(tracer, client, to) : this.#traceAnybody(tracer, to);
    const chosen = choose(outcomes, this.#random());
    this.#kernel.take(chosen, client, isKnown ? client : ANYBODY);
    const { verdict, translated, destination } = chosen;
    return verdict === "accept" && translated ? `${destination.address}:${destination.port}` : verdict;
  }

  #prepared(): Tracer {
    const version = this.#kernel.version();
    if (this.#tracer !== undefined && this.#version === version) return this.#tracer;
    this.#version = version;
    this.#anybodys.clear();
    this.#tracer = createTracer(this.#kernel.rules());
    return this.#tracer;
  }

  #traceAnybody(tracer: Tracer, to: { readonly address: string; readonly port: number }): readonly Outcome[] {
    const id = `${to.address} ${to.port}`;
    const outcomes = this.#anybodys.get(id) ?? this.#trace(tracer, ANYBODY, to);
    this.#anybodys.set(id, outcomes);
    return outcomes;
  }

  #trace(tracer: Tracer, source: string, { address, port }: { readonly address: string; readonly port: number }) {
    const packet = {
      family: "IPv4",
      protocol: "tcp",
      source,
      destination: address,
      sport: 40_000,
      dport: port,
    } as const;
    return tracer.trace({ ...packet, inInterface: "eth0" }, this.#kernel.environment(source));
  }
}

/**
 * One of the ways of a packet, as often as the tracer says that it takes it.
 *
 * @param random from 0 to before 1
 */
function choose(outcomes: readonly Outcome[], random: number): Outcome {
  let left = random;
  for (const outcome of outcomes) {
    left -= outcome.probability;
    if (left < 0) return outcome;
  }
  const last = outcomes.at(-1);
  if (last === undefined) throw new Error("the packet takes no way");
  return last;
}

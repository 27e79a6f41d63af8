/** Many clients and endpoints, whose affinity is followed while endpoints, agents and proxies change. */

import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { IP_FAMILIES } from "@fairlead/base";
import { PATIENCE_MS } from "@fairlead/base/testing";
import type { IPFamily } from "@fairlead/core";
import { type AgentProcess, agentFolder, startAgent } from "@fairlead/lab/agent";
import { kubeconfig, USERS } from "@fairlead/lab/control-plane/control-plane";
import { CROWD_PORT, crowdClients, crowdEndpoint, type LabCrowd, openCrowd } from "@fairlead/lab/plain/crowd";
import { type KubeProxyMode, startApi, startKubeProxy } from "@fairlead/lab/plain/kube-proxy";
import type { Lab } from "@fairlead/lab/plain/lab";
import { whoAnswersAt } from "@fairlead/lab/plain/requests";
import { rulesInPlace, SCENE_FLAGS } from "@fairlead/lab/plain/scene";
import { waitUntil } from "@fairlead/lab/support/wait-until";
import {
  clientA,
  clusterObjects,
  endpointSlice,
  NODE_A,
  type RawObject,
  service,
  webA1,
  workload,
} from "@fairlead/testkit";
import { AffinityRule } from "@fairlead/testkit/crowds";

/** What 200 clients met in one family. */
interface Met {
  readonly step: string;
  readonly family: IPFamily;
  /** Clients whose endpoint of before is usable still. */
  readonly known: number;
  /** Of those, the clients that came to another one. */
  readonly moved: number;
  /** The first thing that is not as it must be; absent: nothing. */
  readonly wrong?: string;
}

/** The API and the proxy that a crowd needs. */
interface CrowdGround {
  readonly crowd: LabCrowd;
  put(objects: readonly RawObject[]): Promise<void>;
  remove(objects: readonly RawObject[]): Promise<void>;
  /** Waits until the proxy serves what was put before. */
  settled(): Promise<void>;
}

/** A service with session affinity, in both families. */
interface CrowdService {
  readonly name: string;
  /** Which addresses it has: services with the same number have the same ones. */
  readonly number: number;
  readonly seconds: number;
  /** Numbers of the endpoints. */
  readonly endpoints: readonly number[];
}

interface ConnectOptions {
  readonly by?: "cluster-ip" | "node-port";
  readonly moves?: "forbidden" | "counted";
}

const SERVICE_PORT = 80;

/** 200 clients in each family that connect again and again, whatever happens to their service. */
export class FollowedCrowd {
  readonly met: Met[] = [];
  readonly #ground: CrowdGround;
  readonly #rules = { IPv4: new AffinityRule(), IPv6: new AffinityRule() };
  /** By family: where the clients of the service that had the addresses before came to. */
  readonly #others: Partial<Record<IPFamily, ReadonlyMap<string, string>>> = {};
  readonly #last: Partial<Record<IPFamily, ReadonlyMap<string, string>>> = {};
  #service: CrowdService;

  constructor(ground: CrowdGround, service: CrowdService) {
    this.#ground = ground;
    this.#service = service;
  }

  /** Gives the service other properties. */
  async change(fields: Partial<CrowdService>): Promise<void> {
    this.#service = { ...this.#service, ...fields };
    for (const family of IP_FAMILIES) this.#rules[family].endpoints(crowdEnds(this.#service, family));
    await this.#ground.put(crowdObjects(this.#service));
    await this.#ground.settled();
  }

  /** Another service of another name gets addresses and endpoints, at once; and, if it may, the clients. */
  async replace(name: string, { inherits }: { readonly inherits: boolean }): Promise<void> {
    this.forget();
    if (!inherits) Object.assign(this.#others, this.#last);
    const gone = this.#service;
    this.#service = { ...gone, name };
    await this.#ground.remove(crowdObjects(gone));
    await this.#ground.put(crowdObjects(this.#service));
    await this.#ground.settled();
  }

  /** The clients are free to come to other endpoints. */
  forget(): void {
    for (const family of IP_FAMILIES) this.#rules[family].forget();
  }

  /** All of them connect once, side by side. */
  async connect(step: string, { by = "cluster-ip", moves = "forbidden" }: ConnectOptions = {}): Promise<void> {
    for (const family of IP_FAMILIES) {
      const clients = crowdClients(family);
      const ends = await this.#ground.crowd.call({ clients, ...this.#target(family, by), sockets: 1 });
      const met = this.#judge(step, family, new Map(clients.map((client, at) => [client, ends[at]?.[0] ?? "nothing"])));
      const { wrong: _, ...counted } = met;
      this.met.push(moves === "counted" ? counted : met);
    }
  }

  /**
   * Each client begins several connections at once, its first ones. From then on it belongs to one of the endpoints
   * that these came to.
   *
   * @returns by family the clients that came to more than one endpoint
   */
  async connectAtOnce(sockets: number): Promise<Readonly<Record<IPFamily, number>>> {
    this.forget();
    const split = { IPv4: 0, IPv6: 0 };
    for (const family of IP_FAMILIES) {
      const clients = crowdClients(family);
      const target = this.#target(family, "cluster-ip");
      const first = await this.#ground.crowd.call({ clients, ...target, sockets });
      const later = await this.#ground.crowd.call({ clients, ...target, sockets: 1 });
      for (const [at, client] of clients.entries()) {
        const seen = new Set(first[at]);
        const end = later[at]?.[0] ?? "nothing";
        if (seen.size > 1) split[family]++;
        const wrong = seen.has(end) ? undefined : `${client} came to ${end}, and at once to ${[...seen].join(", ")}`;
        if (wrong !== undefined)
          this.met.push({ step: "after connections at once", family, known: 1, moved: 1, wrong });
        this.#rules[family].met(client, end);
      }
    }
    return split;
  }

  #target(family: IPFamily, by: "cluster-ip" | "node-port") {
    return by === "node-port"
      ? { to: NODE_A.addresses[family], port: crowdNodePort(this.#service) }
      : { to: crowdAddress(this.#service, family), port: SERVICE_PORT };
  }

  #judge(step: string, family: IPFamily, ends: ReadonlyMap<string, string>): Met {
    const rule = this.#rules[family];
    const { known } = rule;
    const wrong = [...ends].flatMap(([client, end]) => rule.met(client, end) ?? []);
    const [first = rule.shares() ?? inherited(this.#others[family], ends)] = wrong;
    delete this.#others[family];
    this.#last[family] = ends;
    return { step, family, known, moved: wrong.length, ...(first !== undefined && { wrong: first }) };
  }
}

export interface LivedThrough {
  readonly met: readonly Met[];
  /** Clients of 200 that came to more than one endpoint with the first connections, begun at once. */
  readonly split: { readonly IPv4: number; readonly IPv6: number };
}

interface LifeOptions {
  readonly restart: () => Promise<void>;
  /** Whether an endpoint is known of as many clients as there are: a list of xt_recent holds 100. */
  readonly remembersAll: boolean;
  /** Whether node port and ClusterIP lead a client to the same endpoint. */
  readonly sharesFrontends: boolean;
  /** Each step; else those that find most. */
  readonly whole: boolean;
}

const HOUR = 3600;
const FIVE = [0, 1, 2, 3, 4] as const;
const TEN = [...FIVE, 5, 6, 7, 8, 9] as const;

/**
 * A service with 200 clients in each family is scaled, updated and replaced, and the proxy restarts; after each step
 * all clients connect.
 */
export async function crowdLife(ground: CrowdGround, options: LifeOptions): Promise<LivedThrough> {
  const crowd = new FollowedCrowd(ground, { name: "crowd", number: 1, seconds: 3 * HOUR, endpoints: FIVE });
  await crowd.change({});
  await crowd.connect("at first");
  if (options.sharesFrontends) await crowd.connect("by the node port", { by: "node-port" });
  await update(crowd, options);
  await crowd.change({ seconds: HOUR });
  await options.restart();
  await crowd.connect("another timeout, and the proxy has restarted");
  await scale(crowd, options);
  // Where clients are remembered by address and port, they are those of whatever service has these.
  await crowd.replace("other", { inherits: !options.sharesFrontends });
  await crowd.connect("another service has the addresses");
  const fresh = new FollowedCrowd(ground, { name: "at-once", number: 2, seconds: HOUR, endpoints: TEN });
  await fresh.change({});
  const split = await fresh.connectAtOnce(8);
  await fresh.connect("after connections at once");
  return { met: [...crowd.met, ...fresh.met], split };
}

/** For people: what came of each step. */
export function lifeReport(who: string, { met, split }: LivedThrough): string {
  const several = `${split.IPv4} clients of IPv4 and ${split.IPv6} of IPv6 came to several endpoints at once`;
  return `${who}: ${several}\n${metReport(met)}`;
}

export function metReport(met: readonly Met[]): string {
  return met
    .map(({ step, family, known, moved, wrong = "" }) => `  ${step}, ${family}: ${moved} of ${known} moved ${wrong}\n`)
    .join("");
}

/** A proxy that serves the crowd's node. */
export type CrowdProxy =
  | { readonly fairlead: KubeProxyMode["mode"] }
  | (KubeProxyMode & { readonly kubeProxy: string });

/** A node of the lab with a crowd, an API server, and one proxy at a time. */
export interface CrowdNode extends CrowdGround, AsyncDisposable {
  /** Ends the proxy that runs, and starts this one; returns when it serves. */
  serve(proxy: CrowdProxy): Promise<void>;
  /** Ends the proxy that runs, and removes what it wrote: Fairlead's --cleanup knows kube-proxy's rules, too. */
  cleanUp(): Promise<void>;
}

export const crowdPorts = { podPorts: { tcp: [8080], udp: [] }, landingPorts: { tcp: [8080], udp: [] } };

interface Running {
  stop(): Promise<unknown>;
  log(): string | Promise<string>;
}

/** What waits for the proxy begins here; each number is a service of its own. */
const FIRST_PROOF = 100;

export async function openCrowdNode(lab: Lab): Promise<CrowdNode> {
  await using opened = new AsyncDisposableStack();
  const folder = await agentFolder([]);
  opened.defer(() => rm(folder.path, { recursive: true }));
  const api = await startApi(lab.namespace("node-a"), clusterObjects);
  opened.defer(() => api.stop());
  const config = join(folder.path, "kubeconfig");
  await writeFile(config, kubeconfig({ server: api.url, token: USERS.proxy.token }));
  const crowd = await openCrowd(lab);
  opened.defer(() => crowd.close());

  let running: Running | undefined;
  opened.defer(async () => void (await running?.stop()));
  let proofs = FIRST_PROOF;
  const settled = async () => {
    const { objects, clusterIP, port } = workload(proofs++, { endpoints: [webA1], families: IP_FAMILIES });
    await api.put(objects);
    for (const family of IP_FAMILIES) {
      const flow = { from: clientA, to: clusterIP[family], port };
      const answers = async () => ((await whoAnswersAt(lab, flow)) === webA1.name ? true : undefined);
      await waitUntil(`an answer at ${flow.to}`, PATIENCE_MS, answers).catch(async (error: unknown) => {
        throw new Error(`the proxy does not serve; its log:\n${await running?.log()}`, { cause: error });
      });
    }
  };
  const flags = [...SCENE_FLAGS, `--kubeconfig=${config}`, `--state-dir=${folder.state}`];
  const fairlead = async (mode: string): Promise<AgentProcess> => {
    const agent = startAgent(lab.namespace("node-a"), { flags: [...flags, `--proxy-mode=${mode}`] });
    await rulesInPlace(agent);
    return agent;
  };
  const kept = opened.move();
  return {
    crowd,
    put: api.put,
    remove: api.remove,
    settled,
    serve: async (proxy) => {
      await running?.stop();
      running =
        "fairlead" in proxy
          ? await fairlead(proxy.fairlead)
          : await startKubeProxy(lab, {
              ...proxy,
              program: proxy.kubeProxy,
              kubeconfig: config,
              folder: join(folder.path, "kube-proxy"),
            });
      await settled();
    },
    cleanUp: async () => {
      await running?.stop();
      running = undefined;
      const { exitCode, log } = await startAgent(lab.namespace("node-a"), { flags: [...flags, "--cleanup"] }).ended;
      if (exitCode !== 0) throw new Error(`--cleanup ended with ${exitCode}:\n${log}`);
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** As many clients stay by chance, with ten endpoints, once in a thousand million times. */
const MOST_BY_CHANCE = 0.25;

function inherited(before: ReadonlyMap<string, string> | undefined, after: ReadonlyMap<string, string>) {
  const same = [...(before ?? [])].filter(([client, end]) => after.get(client) === end).length;
  if (same <= MOST_BY_CHANCE * after.size) return undefined;
  return `${same} of ${after.size} came to the endpoint that they had of the other service`;
}

function crowdAddress({ number }: CrowdService, family: IPFamily): string {
  return { IPv4: `10.96.9.${number}`, IPv6: `fd00:10:96::9:${number}` }[family];
}

function crowdNodePort({ number }: CrowdService): number {
  return 30_900 + number;
}

function crowdObjects(crowd: CrowdService): readonly RawObject[] {
  const { name, seconds, endpoints } = crowd;
  const slices = IP_FAMILIES.map((family) =>
    endpointSlice(`${name}-${family.toLowerCase()}`, {
      service: name,
      family,
      ports: [{ port: CROWD_PORT }],
      endpoints: endpoints.map((at) => ({ address: crowdEndpoint(family, at), nodeName: "node-a" })),
    }),
  );
  const fields = {
    type: "NodePort",
    clusterIPs: IP_FAMILIES.map((family) => crowdAddress(crowd, family)),
    ports: [{ port: SERVICE_PORT, targetPort: CROWD_PORT, nodePort: crowdNodePort(crowd) }],
    affinitySeconds: seconds,
  } as const;
  return [service(name, fields), ...slices];
}

/** As connections that come to them report it. */
function crowdEnds({ endpoints }: CrowdService, family: IPFamily): readonly string[] {
  return endpoints.map((at) => `${crowdEndpoint(family, at)}:${CROWD_PORT}`);
}

async function update(crowd: FollowedCrowd, { whole }: LifeOptions): Promise<void> {
  if (whole) {
    await crowd.change({ endpoints: [...FIVE, 5] });
    await crowd.connect("an endpoint comes");
    await crowd.change({ endpoints: FIVE });
    await crowd.connect("it goes");
  }
  for (const at of whole ? FIVE : FIVE.slice(0, 1)) {
    await crowd.change({ endpoints: [...FIVE.slice(at + 1), ...TEN.slice(5, 6 + at)] });
    await crowd.connect(`rolling update, ${at + 1} of 5`);
  }
}

async function scale(crowd: FollowedCrowd, { whole, remembersAll }: LifeOptions): Promise<void> {
  await crowd.change({ endpoints: [9] });
  await crowd.connect("scaled to 1");
  if (whole) {
    await crowd.change({ endpoints: [8, 9] });
    await crowd.connect("scaled to 2", { moves: remembersAll ? "forbidden" : "counted" });
  }
  await crowd.change({ endpoints: [] });
  // The kernel bounds how many refusals it sends in a second: clients wait for theirs.
  if (whole) await crowd.connect("scaled to 0");
  await crowd.change({ endpoints: TEN });
  await crowd.connect("scaled to 10");
}

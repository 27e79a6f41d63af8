import { IP_FAMILIES } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { crowdClients, type LabCrowd } from "@fairlead/lab/plain/crowd";
import { NODE_A, type RawObject } from "@fairlead/testkit";
import { AffinityRule } from "@fairlead/testkit/crowds";
import {
  type CrowdService,
  crowdAddress,
  crowdEnds,
  crowdNodePort,
  crowdObjects,
  SERVICE_PORT,
} from "./crowd-service.ts";

/** What 200 clients met in one family. */
export interface Met {
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
export interface CrowdGround {
  readonly crowd: LabCrowd;
  put(objects: readonly RawObject[]): Promise<void>;
  remove(objects: readonly RawObject[]): Promise<void>;
  /** Waits until the proxy serves what was put before. */
  settled(): Promise<void>;
}

interface ConnectOptions {
  readonly by?: "cluster-ip" | "node-port";
  readonly moves?: "forbidden" | "counted";
}

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

/** As many clients stay by chance, with ten endpoints, once in a thousand million times. */
const MOST_BY_CHANCE = 0.25;

function inherited(before: ReadonlyMap<string, string> | undefined, after: ReadonlyMap<string, string>) {
  const same = [...(before ?? [])].filter(([client, end]) => after.get(client) === end).length;
  if (same <= MOST_BY_CHANCE * after.size) return undefined;
  return `${same} of ${after.size} came to the endpoint that they had of the other service`;
}

import type { VirtualClock } from "@fairlead/base/testing";
import type { ForwardingPlan, PlanChange, PlannerOptions } from "@fairlead/core";
import { TestCluster } from "../run/test-cluster.ts";
import { type CrowdHistory, type CrowdStep, LONGER_THAN_ALL } from "./history.ts";
import { AffinityRule } from "./rule.ts";
import {
  CROWD_ADDRESS,
  CROWD_NODE_PORT,
  type CrowdService,
  crowdObjects,
  FIRST_SERVICE,
  usableEndpoints,
} from "./service.ts";

/** A node in one mode, as a crowd meets it. */
export interface CrowdNode {
  readonly options: PlannerOptions;
  readonly clock: VirtualClock;
  readonly nodeAddress: string;
  /** Whether node port and ClusterIP lead a client to the same endpoint. */
  readonly sharesFrontends: boolean;
  /** Whether a port that gets another name keeps its clients. Default: yes. */
  readonly forgetsRenamed?: true;
  /** Whether another process knows no clients. Default: it knows those of before. */
  readonly forgetsAtRestart?: true;
  /** Whether a service that gets the addresses of another in one change gets its clients, too. Default: no. */
  readonly inherits?: true;
  apply(plan: ForwardingPlan, change: PlanChange): Promise<unknown>;
  fullSync(plan: ForwardingPlan): Promise<unknown>;
  /** Another process begins. */
  restart(plan: ForwardingPlan): Promise<unknown>;
  /** kube-proxy has served, each of these clients from then on at its endpoint; and this mode serves again. */
  afterKubeProxy?(plan: ForwardingPlan, clients: ReadonlyMap<string, string>): Promise<unknown>;
  /** @returns the endpoint `address:port` where a new connection ends, or what else becomes of it */
  connect(client: string, to: { readonly address: string; readonly port: number }): string | Promise<string>;
}

export const CROWD_CLIENTS = Array.from({ length: 200 }, (_, at) => `10.201.7.${at + 1}`);

/** @throws Error for the first step after which the rule does not hold, with what is wrong */
export async function followCrowd(history: CrowdHistory, node: CrowdNode): Promise<void> {
  const crowd = new Crowd(node);
  await crowd.begin();
  for (const [at, { step, asleep }] of history.entries()) {
    await crowd.step(step);
    const wrong = asleep ? undefined : await crowd.connectAll();
    if (wrong !== undefined) throw new Error(`step ${at}, ${JSON.stringify(step)}: ${wrong}`);
  }
}

class Crowd {
  readonly #node: CrowdNode;
  readonly #cluster: TestCluster;
  readonly #rules = { address: new AffinityRule(), nodePort: new AffinityRule() };
  #service: CrowdService = FIRST_SERVICE;

  constructor(node: CrowdNode) {
    this.#node = node;
    this.#cluster = new TestCluster(node.options);
  }

  async begin(): Promise<void> {
    this.#cluster.replan();
    await this.#node.fullSync(this.#plan);
    await this.#change(FIRST_SERVICE, []);
    const wrong = await this.connectAll();
    if (wrong !== undefined) throw new Error(`at first: ${wrong}`);
  }

  async step(step: CrowdStep): Promise<void> {
    const before = this.#service;
    switch (step.kind) {
      case "endpoints":
        return this.#change({ ...before, conditions: step.conditions });
      case "toggle":
        return this.#change({ ...before, conditions: before.conditions.with(step.at, step.to) });
      case "timeout":
        return this.#change({ ...before, seconds: step.seconds });
      case "renamed":
        if (this.#node.forgetsRenamed) this.#forget();
        return this.#change({ ...before, portName: `${before.portName}x`.slice(-8) });
      case "wait":
        return this.#node.clock.advanceNow(step.seconds * 1000);
      case "long-wait":
        this.#forget();
        return this.#node.clock.advanceNow(LONGER_THAN_ALL * 1000);
      case "again":
        await this.#remove(before);
        return this.#change(before, []);
      case "other":
        if (!this.#node.inherits) this.#forget();
        return this.#change({ ...before, name: `crowd-${Number(before.name.slice(6)) + 1}` }, crowdObjects(before));
      case "full-sync":
        await this.#node.fullSync(this.#plan);
        return undefined;
      case "restart":
        if (this.#node.forgetsAtRestart) this.#forget();
        await this.#node.restart(this.#plan);
        return undefined;
      default:
        return this.#afterKubeProxy();
    }
  }

  /** @returns what is wrong */
  async connectAll(): Promise<string | undefined> {
    for (const client of CROWD_CLIENTS) {
      const wrong = await this.#connect(client);
      if (wrong !== undefined) return wrong;
    }
    return this.#rules.address.shares() ?? this.#rules.nodePort.shares();
  }

  async #connect(client: string): Promise<string | undefined> {
    const { connect, nodeAddress, sharesFrontends } = this.#node;
    const end = await connect.call(this.#node, client, { address: CROWD_ADDRESS, port: 80 });
    const wrong = this.#rules.address.met(client, end);
    if (wrong !== undefined) return wrong;
    const other = await connect.call(this.#node, client, { address: nodeAddress, port: CROWD_NODE_PORT });
    if (sharesFrontends)
      return other === end || !end.includes(":") ? undefined : `${client} came to ${end}, by the node port to ${other}`;
    const wrongThere = this.#rules.nodePort.met(client, other);
    return wrongThere && `by the node port: ${wrongThere}`;
  }

  get #plan(): ForwardingPlan {
    return this.#cluster.plan("IPv4");
  }

  #forget(): void {
    for (const rule of Object.values(this.#rules)) rule.forget();
  }

  async #remove(service: CrowdService): Promise<void> {
    this.#forget();
    this.#cluster.remove(...crowdObjects(service));
    await this.#apply();
  }

  async #change(after: CrowdService, gone = crowdObjects(this.#service)): Promise<void> {
    const objects = crowdObjects(after);
    const stays = new Set(objects.map(({ metadata }) => metadata.name));
    this.#cluster.remove(...gone.filter(({ metadata }) => !stays.has(metadata.name)));
    this.#cluster.put(...objects);
    this.#service = after;
    for (const rule of Object.values(this.#rules)) rule.endpoints(usableEndpoints(after));
    await this.#apply();
  }

  async #apply(): Promise<void> {
    const change = this.#cluster.replan().changes.get("IPv4");
    if (change !== undefined) await this.#node.apply(this.#plan, change);
  }

  /** It draws anew for every client. */
  async #afterKubeProxy(): Promise<void> {
    const { afterKubeProxy } = this.#node;
    const usable = usableEndpoints(this.#service);
    if (afterKubeProxy === undefined) return;
    const clients = new Map(
      usable.length === 0 ? [] : CROWD_CLIENTS.map((client, at) => [client, usable[(at * 7) % usable.length] ?? ""]),
    );
    for (const [client, endpoint] of clients) {
      for (const rule of Object.values(this.#rules)) rule.knows(client, endpoint);
    }
    await afterKubeProxy.call(this.#node, this.#plan, clients);
  }
}

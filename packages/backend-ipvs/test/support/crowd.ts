import { VirtualClock } from "@fairlead/base/testing";
import { goldenNode, ipvsEnvironment } from "@fairlead/testkit";
import { type CrowdKernel, type CrowdNode, servedCrowd } from "@fairlead/testkit/crowds";
import { createIpvsBackend, DEVICE } from "../../src/index.ts";
import { FakeNode } from "./fake-node.ts";
import { worldOptions } from "./world.ts";

const NODE_ADDRESS = goldenNode(false).addresses[0] ?? "";

type Template = NonNullable<Parameters<CrowdKernel["take"]>[0]["template"]>;

/** Ipvs mode on a fake, with the persistence templates of its virtual servers. */
export function ipvsCrowd(random: () => number): CrowdNode {
  const clock = new VirtualClock();
  const node = new FakeNode();
  const backendAnew = () => createIpvsBackend(node.port("IPv4"), { clock, onProblem: () => {} });
  return {
    options: worldOptions([NODE_ADDRESS, "127.0.0.1"]),
    clock,
    nodeAddress: NODE_ADDRESS,
    sharesFrontends: false,
    // The virtual servers stay as they are.
    inherits: true,
    ...servedCrowd(backendAnew, new Templates(node, clock), random),
  };
}

/** A template lasts as long as its virtual server, and is used where that has the destination. */
class Templates implements CrowdKernel {
  readonly #node: FakeNode;
  readonly #clock: VirtualClock;
  #changes = 0;
  #known = new Map<string, { readonly template: Template; readonly until: number }>();

  constructor(node: FakeNode, clock: VirtualClock) {
    this.#node = node;
    this.#clock = clock;
  }

  changed(): void {
    this.#changes += 1;
    const servers = new Map(this.#node.servers.servers().map((server) => [serverOf(server), server]));
    for (const [id, { template }] of this.#known) {
      const { destination } = template;
      const there = servers
        .get(serverOf(template.server))
        ?.destinations.find(
          (one) => one.address === destination.address && one.port === destination.port && one.weight > 0,
        );
      if (there === undefined) this.#known.delete(id);
    }
  }

  version(): string {
    return `${this.#changes} ${this.#clock.monotonic()}`;
  }

  rules() {
    return this.#node.rules.IPv4.ruleSet();
  }

  environment(client: string) {
    const addresses = this.#node.links.device(DEVICE) ?? [];
    const base = ipvsEnvironment({ servers: this.#node.servers.servers(), sets: this.#node.sets.sets(), addresses });
    const templates = [...this.#known.values()].filter(
      ({ template, until }) => template.client === client && until > this.#clock.monotonic(),
    );
    return {
      ...base,
      ...(base.ipvs && { ipvs: { ...base.ipvs, templates: templates.map(({ template }) => template) } }),
    };
  }

  knows(client: string): boolean {
    return [...this.#known.values()].some(({ template }) => template.client === client);
  }

  take({ template }: Parameters<CrowdKernel["take"]>[0], client: string): void {
    if (template === undefined) return;
    const server = this.#node.servers.servers().find((one) => serverOf(one) === serverOf(template.server));
    const until = this.#clock.monotonic() + 1000 * (server?.persistenceSeconds ?? 0);
    this.#known.set(`${client} ${serverOf(template.server)}`, { template: { ...template, client }, until });
  }
}

function serverOf({ protocol, address, port }: Template["server"]): string {
  return `${protocol} ${address} ${port}`;
}

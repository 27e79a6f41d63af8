/**
 * The EndpointSlices of a Gateway's Service: those of the backends, with the listeners' port names and the shares that
 * the routes give them.
 */

import { IP_FAMILIES, type IPFamily, type Protocol } from "@fairlead/base";
import type { SlicePort } from "../requests.ts";
import type { GatewayService, Listener, Route, SourceSlice } from "./objects.ts";
import { sharesOf, type World } from "./routes.ts";
import { type DesiredService, digest } from "./service.ts";

/** The share of an EndpointSlice, from 0 to 1,000,000. */
export const WEIGHT = "fairlead.dev/weight";
/** On a slice without endpoints: its share is refused, and does not go to the others. */
export const WEIGHT_REFUSED = "fairlead.dev/weight-refused";

export interface DesiredSlice {
  readonly name: string;
  readonly service: string;
  readonly family: IPFamily;
  readonly annotations: Readonly<Record<string, string>>;
  readonly ports: readonly SlicePort[];
  /** Each in JSON. */
  readonly endpoints: readonly string[];
}

/**
 * The slices of a Gateway's Service. A backend has one for each family and set of ports, whatever the number of its own
 * and of listeners, so that its change is one write; with more than a thousand endpoints it has several.
 *
 * @param listeners that are served
 * @param winners the route that has a listener, by its name
 */
export function gatewaySlices(
  world: World,
  service: DesiredService,
  listeners: readonly Listener[],
  winners: ReadonlyMap<string, Route | undefined>,
): readonly DesiredSlice[] {
  const groups = new Map<string, Group[]>();
  listeners.forEach((listener, at) => {
    const [route, port] = [winners.get(listener.name), service.ports[at]];
    if (route === undefined || port === undefined) return;
    for (const { id, weight, backend, source } of weighed(world, route)) {
      const alike = groups.get(id) ?? [];
      groups.set(id, alike);
      const found = alike.find((one) => one.weight === weight);
      // Not by the weight, so that another weight is a change of the same slice.
      const group: Group = found ?? { id: `${id} ${alike.length}`, weight, backend, targets: [] };
      if (found === undefined) alike.push(group);
      group.targets.push({ name: port.name, protocol: port.protocol, source });
    }
  });
  return [...groups.values()].flat().flatMap((group) => slicesOf(world, service.name, group));
}

/** What has one share at all of its listeners. */
interface Group {
  /** The same for the same backend and weight: in the names of its slices. */
  readonly id: string;
  /** Undefined: there is no other share. */
  readonly weight: number | undefined;
  /** Undefined: the share is refused. */
  readonly backend: GatewayService | undefined;
  /** A port of the Gateway's Service, and the port of the backend by its name. */
  readonly targets: { readonly name: string; readonly protocol: Protocol; readonly source: string }[];
}

interface WeighedShare extends Pick<Group, "id" | "weight" | "backend"> {
  /** The name of the backend's port. */
  readonly source: string;
}

/** The largest weight of a slice. */
const MOST = 1_000_000;

/**
 * The shares of a route that take part: one for each backend and port, one for all that is refused, none of weight 0.
 * As the API of routes has it, a backend without endpoints is refused its share as one that is not there.
 */
function weighed(world: World, route: Route): readonly WeighedShare[] {
  const sums = new Map<string, { backend: GatewayService | undefined; source: string; weight: number }>();
  for (const share of sharesOf(world, route)) {
    if (share.weight === 0) continue;
    const isServed = !("refused" in share) && sourcesOf(world, share.service).length > 0;
    const [backend, source] = isServed ? [share.service, share.port] : [undefined, ""];
    const key = `${backend?.namespace}/${backend?.name} ${source}`;
    const sum = sums.get(key) ?? { backend, source, weight: 0 };
    sums.set(key, sum);
    sum.weight += share.weight;
  }
  const all = [...sums.values()];
  // With nothing but refused shares there are no endpoints, which refuses all.
  if (all.every(({ backend }) => backend === undefined)) return [];
  const exact = MOST / Math.max(...all.map(({ weight }) => weight));
  // A share of several slices is divided among them, which takes large numbers.
  const isDivided = all.some(({ backend }) => backend !== undefined && isSeveral(world, backend));
  const scale = isDivided ? exact : Math.min(1, exact);
  const ordinals = new Map<GatewayService | undefined, number>();
  return all.map(({ backend, source, weight }) => {
    // A slice has each port's name once: other ports of the same Service need other slices.
    const ordinal = ordinals.get(backend) ?? 0;
    ordinals.set(backend, ordinal + 1);
    const id = `${backend?.namespace}/${backend?.name} ${ordinal}`;
    return { id, backend, source, weight: all.length === 1 ? undefined : Math.max(1, Math.round(weight * scale)) };
  });
}

function sourcesOf(world: World, { namespace, name }: GatewayService): readonly SourceSlice[] {
  return world.slicesOf(`${namespace}/${name}`).filter(({ endpoints }) => endpoints.size > 0);
}

/** Whether endpoints of one family may need more than one slice: too many, or with different ports. */
function isSeveral(world: World, backend: GatewayService): boolean {
  const sources = sourcesOf(world, backend);
  return IP_FAMILIES.some((family) => {
    const ofFamily = sources.filter((one) => one.family === family);
    const ports = new Set(ofFamily.map((one) => JSON.stringify(one.ports)));
    return ports.size > 1 || ofFamily.reduce((sum, { endpoints }) => sum + endpoints.size, 0) > MOST_ENDPOINTS;
  });
}

/** Endpoints of a slice that the API server takes. */
const MOST_ENDPOINTS = 1_000;

function slicesOf(world: World, service: string, { id, weight, backend, targets }: Group): readonly DesiredSlice[] {
  const name = (...parts: readonly unknown[]) => `${service}-${digest([id, ...parts].join(" "))}`;
  if (backend === undefined) {
    const annotations = { [WEIGHT]: String(weight), [WEIGHT_REFUSED]: "true" };
    const ports = targets.map((target) => ({ name: target.name, protocol: target.protocol, port: REFUSED_PORT }));
    return IP_FAMILIES.map((family) => ({ name: name(family), service, family, annotations, ports, endpoints: [] }));
  }
  const chunks = chunksOf(sourcesOf(world, backend), targets);
  return IP_FAMILIES.flatMap((family) => {
    const ofFamily = chunks.filter((one) => one.family === family);
    const all = ofFamily.reduce((sum, { endpoints }) => sum + endpoints.size, 0);
    return ofFamily.map(({ ports, endpoints }, at) => {
      const share = weight === undefined ? undefined : Math.max(1, Math.round((weight * endpoints.size) / all));
      const annotations: Record<string, string> = share === undefined ? {} : { [WEIGHT]: String(share) };
      return { name: name(family, at), service, family, annotations, ports, endpoints: [...endpoints.values()] };
    });
  });
}

interface Chunk extends Pick<DesiredSlice, "family" | "ports"> {
  readonly endpoints: Map<string, string>;
}

/** Endpoints of one family with the same ports, as many as one slice takes. */
function chunksOf(sources: readonly SourceSlice[], targets: Group["targets"]): readonly Chunk[] {
  const sets = new Map<string, Chunk[]>();
  for (const source of sources) {
    const { family, endpoints } = source;
    const ports = targets.flatMap((target) => portIn(source, target));
    const key = `${family} ${ports.map(({ name, port }) => `${name}:${port}`).join()}`;
    const set = sets.get(key) ?? [];
    if (ports.length > 0) sets.set(key, set);
    const last = set.at(-1);
    if (last !== undefined && last.endpoints.size + endpoints.size <= MOST_ENDPOINTS) {
      for (const [address, text] of endpoints) last.endpoints.set(address, text);
    } else set.push({ family, ports, endpoints: new Map(endpoints) });
  }
  return [...sets.values()].flat();
}

/** Any: there is no endpoint that has it. */
const REFUSED_PORT = 1;

function portIn({ ports }: SourceSlice, { name, protocol, source }: Group["targets"][number]): readonly SlicePort[] {
  const found = ports.find((port) => port.name === source && port.protocol === protocol);
  return found === undefined ? [] : [{ name, protocol, port: found.port }];
}

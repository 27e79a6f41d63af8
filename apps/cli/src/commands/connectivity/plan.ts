/** The cases of a test: what they are made from, what they expect, and their table. */

import type { IPFamily } from "@fairlead/base";
import type { Style } from "../../frame/terminal.ts";
import { tableText } from "../../frame/text.ts";
import type { Expected, Probe } from "./pod.ts";

/** Where a client is; `here` is the node with an endpoint of every service, `there` the other one. */
export const PLACES = ["pod-here", "pod-there", "node-here", "node-there", "outside"] as const;
export type Place = (typeof PLACES)[number];

export interface TestNode {
  readonly name: string;
  readonly addresses: Readonly<Partial<Record<IPFamily, string>>>;
}

export interface TestPod {
  readonly name: string;
  readonly addresses: Readonly<Partial<Record<IPFamily, string>>>;
}

export interface TestService {
  readonly name: ServiceName;
  readonly clusterIPs: Readonly<Partial<Record<IPFamily, string>>>;
  readonly port: number;
  readonly nodePort?: number;
  readonly externalIPs: Readonly<Partial<Record<IPFamily, string>>>;
  readonly loadBalancerIPs: Readonly<Partial<Record<IPFamily, string>>>;
}

export type ServiceName =
  | "web"
  | "web-local"
  | "web-internal"
  | "web-sticky"
  | "web-none"
  | "web-headless"
  | "web-hairpin";

export interface Ground {
  readonly namespace: string;
  readonly families: readonly IPFamily[];
  readonly here: TestNode;
  readonly there: TestNode;
  /** Servers: `web-a` is here, `web-b` there. */
  readonly servers: Readonly<Record<"web-a" | "web-b", TestPod>>;
  readonly services: readonly TestService[];
  readonly places: readonly Place[];
  /** Whether names are resolved: there is a cluster DNS. */
  readonly dns: boolean;
  /** Whether the outside has routes to the addresses of load balancers and to external IPs. */
  readonly routed: boolean;
}

/** One packet's way that is judged: a row of the report has those of all places. */
export interface Case {
  readonly service: string;
  /** `cluster-ip 10.96.0.10:80/TCP` */
  readonly frontend: string;
  readonly policy: string;
  readonly family: IPFamily;
  readonly place: Place;
  readonly probe: Probe;
}

type Draft = Omit<Case, "probe"> & { readonly probe: Omit<Probe, "id"> };

/** Requests of a probe: that an endpoint of two is missed by chance happens once in half a billion runs. */
const MANY = 30;
const FEW = 6;

/** Every case that can be asked on this ground, in the order of the report. */
export function casesOf(ground: Ground): readonly Case[] {
  const drafts = ground.families.flatMap((family) =>
    ground.services.flatMap((service) =>
      PLACES.filter((place) => ground.places.includes(place)).flatMap((place) => [
        ...PLANS[service.name]({ ground, service, family, place }),
      ]),
    ),
  );
  return drafts.map((draft, id) => ({ ...draft, probe: { ...draft.probe, id } }));
}

interface About {
  readonly ground: Ground;
  readonly service: TestService;
  readonly family: IPFamily;
  readonly place: Place;
}

const PLANS: Readonly<Record<TestService["name"], (about: About) => Iterable<Draft>>> = {
  web: (about) => [...clusterIP(about, answeredByBoth(about), ["TCP", "UDP"]), ...external(about, answeredByBoth)],
  "web-local": (about) => external(about, answeredLocally),
  "web-internal": (about) => clusterIP(about, answeredInternally(about), ["TCP"], "internal Local"),
  "web-sticky": (about) => {
    const expected: Expected = { kind: "answered", by: ["web-a", "web-b"], spread: "one" };
    return clusterIP(about, { expected, requests: MANY }, ["TCP"], "ClientIP affinity");
  },
  "web-none": (about) => clusterIP(about, { expected: { kind: "refused" }, requests: FEW }, ["TCP"], "no endpoint"),
  "web-headless": headless,
  // Its client is its only endpoint.
  "web-hairpin": (about) => {
    if (about.place !== "pod-here") return [];
    const expected: Expected = { kind: "answered", by: ["web-hairpin"], spread: "any" };
    return clusterIP(about, { expected, requests: FEW }, ["TCP"], "hairpin");
  },
};

type Hope = Pick<Probe, "expected" | "requests">;

/** The outside has no route to ClusterIPs. */
function* clusterIP(
  about: About,
  hope: Hope,
  protocols: readonly ("TCP" | "UDP")[],
  policy = "Cluster",
): Generator<Draft> {
  const { service, family, place } = about;
  const address = service.clusterIPs[family];
  if (address === undefined || place === "outside") return;
  for (const protocol of protocols)
    yield draft(about, "cluster-ip", address, service.port, { ...hope, protocol, policy });
}

function* external(about: About, hopeAt: (about: About, at: "here" | "there" | "anywhere") => Hope): Generator<Draft> {
  const { ground, service, family, place } = about;
  const policy = service.name === "web-local" ? "external Local" : "Cluster";
  const { nodePort } = service;
  for (const at of ["here", "there"] as const) {
    const address = ground[at].addresses[family];
    if (address === undefined || nodePort === undefined || !isJudged(about, at)) continue;
    yield draft(about, `node-port of ${ground[at].name}`, address, nodePort, {
      ...hopeAt(about, at),
      protocol: "TCP",
      policy,
    });
  }
  // Only the outside asks the network where those are; packets of nodes and pods never get that far.
  if (place === "outside" && !ground.routed) return;
  for (const [kind, addresses] of [
    ["external-ip", service.externalIPs],
    ["load-balancer", service.loadBalancerIPs],
  ] as const) {
    const address = addresses[family];
    if (address === undefined || !isJudged(about, "anywhere")) continue;
    yield draft(about, kind, address, service.port, { ...hopeAt(about, "anywhere"), protocol: "TCP", policy });
  }
}

/**
 * What Kubernetes promises. Where a pod or a node asks a Local service at an address that its own node answers, or a
 * node's address without an endpoint, implementations differ.
 */
function isJudged({ service, place }: About, at: "here" | "there" | "anywhere"): boolean {
  if (service.name !== "web-local" || at === "here") return true;
  if (at === "anywhere") return place === "pod-here" || place === "node-here" || place === "outside";
  return place === "outside";
}

/** @param at absent: at the ClusterIP, where endpoints see the pod itself */
function answeredByBoth({ ground, place }: About, at?: string): Hope {
  const expected = { kind: "answered", by: Object.keys(ground.servers), spread: "each" } as const;
  const keepsSource = at === undefined && place.startsWith("pod");
  return { expected: keepsSource ? { ...expected, seesClient: true } : expected, requests: MANY };
}

function answeredLocally({ ground, place }: About, at: "here" | "there" | "anywhere"): Hope {
  if (at === "there") return { expected: { kind: "unanswered" }, requests: FEW };
  const expected = { kind: "answered", by: ["web-a"], spread: "any" } as const;
  const notSeen = [ground.here, ground.there].flatMap(({ addresses }) => Object.values(addresses));
  return { expected: place === "outside" ? { ...expected, notSeen } : expected, requests: FEW };
}

function answeredInternally({ place }: About): Hope {
  if (place.endsWith("there")) return { expected: { kind: "unanswered" }, requests: FEW };
  return { expected: { kind: "answered", by: ["web-a"], spread: "any" }, requests: FEW };
}

function headless(about: About): readonly Draft[] {
  const { ground, service, family, place } = about;
  if (!ground.dns || !place.startsWith("pod")) return [];
  const addresses = Object.values(ground.servers).flatMap((pod) => pod.addresses[family] ?? []);
  const text = `${service.name}.${ground.namespace}.svc.cluster.local`;
  const expected: Expected = { kind: "resolved", addresses };
  const probe = { protocol: "UDP", address: "", port: 0, name: { text, family }, requests: 1, expected } as const;
  return [{ service: service.name, frontend: "DNS", policy: "headless", family, place, probe }];
}

function draft(
  { service, family, place }: About,
  kind: string,
  address: string,
  port: number,
  { policy, ...probe }: Hope & Pick<Probe, "protocol"> & { readonly policy: string },
): Draft {
  const frontend = probe.protocol === "TCP" ? kind : `${kind}, ${probe.protocol}`;
  return { service: service.name, frontend, policy, family, place, probe: { ...probe, address, port } };
}

export interface Judged extends Pick<Case, "service" | "frontend" | "policy" | "family" | "place"> {
  /** Where the packet was sent: `10.96.0.10:80`, or a name. */
  readonly to: string;
  /** What is wrong; absent: it is right. */
  readonly complaint?: string;
}

/** One of what is not asked from places: affinity's rest, a rolling update, another network's service. */
export interface Check {
  readonly name: string;
  /** Absent: it is right. */
  readonly complaint?: string;
  /** Why it was not done. */
  readonly skipped?: string;
}

const HEADS: Readonly<Record<Place, string>> = {
  "pod-here": "pod here",
  "pod-there": "pod there",
  "node-here": "node here",
  "node-there": "node there",
  outside: "outside",
};

/** A row for each frontend, a column for each place; what is wrong below. */
export function reportText(cases: readonly Judged[], checks: readonly Check[], style: Style): string {
  const rows = Map.groupBy(cases, ({ service, frontend, policy, family }) =>
    [service, frontend, policy, family].join("|"),
  );
  const head = ["service", "frontend", "policy", "family", ...PLACES.map((place) => HEADS[place])];
  const table = tableText(
    head,
    Array.from(rows.values(), (row) => rowOf(row, style)),
  );
  const wrong = cases.flatMap((one) => (one.complaint === undefined ? [] : [`${style.bad("✗")} ${caseText(one)}\n`]));
  return [table, "\n", ...checks.map((check) => checkText(check, style)), ...wrong].join("");
}

function rowOf(row: readonly Judged[], style: Style): readonly string[] {
  const [first] = row;
  const cells = PLACES.map((place) => {
    const here = row.filter((one) => one.place === place);
    if (here.length === 0) return "-";
    return here.some(({ complaint }) => complaint !== undefined) ? style.bad("FAIL") : style.good("ok");
  });
  return [first?.service ?? "", first?.frontend ?? "", first?.policy ?? "", first?.family ?? "", ...cells];
}

function caseText({ service, frontend, policy, place, to, complaint }: Judged): string {
  return `${service}: ${frontend} ${to} (${policy}) from ${HEADS[place]}: ${complaint}`;
}

function checkText({ name, complaint, skipped }: Check, style: Style): string {
  if (skipped !== undefined) return `${style.dim("-")} ${name}: not tested: ${skipped}\n`;
  return complaint === undefined ? `${style.good("✓")} ${name}\n` : `${style.bad("✗")} ${name}: ${complaint}\n`;
}

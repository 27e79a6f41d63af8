/** Recordings of kube-proxy, and the options for them. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { BlockList, isIPv6 } from "node:net";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { familyOf } from "@fairlead/base";
import type { IPFamily, LocalTrafficDetector, ModeSemantics, NodePortAddresses, PlannerOptions } from "@fairlead/core";
import { ServerReader, SetReader, type SetState, type VirtualServerState } from "@fairlead/netfilter";
import { kubernetesService, type RawObject } from "./objects.ts";

/** The node a golden scenario was recorded on. */
export interface GoldenNode {
  readonly name: string;
  readonly zone: string;
  /** IPv4 first; the IPv6 address for the dual-stack scenarios only. */
  readonly addresses: readonly string[];
  readonly clusterCIDRs: readonly string[];
  readonly serviceCIDRs: readonly string[];
}

/**
 * API objects and what the real kube-proxy made of them in the kernel, mode by mode, as the tools printed it.
 */
export interface GoldenScenario {
  /** `01-clusterip` */
  readonly name: string;
  readonly dualStack: boolean;
  /** Raw objects in API form, without server-side defaults, default/kubernetes included. */
  readonly objects: readonly RawObject[];
  readonly node: GoldenNode;
  /** iptables-save */
  readonly iptables: string;
  /** ip6tables-save, for the dual-stack scenarios only. */
  readonly ip6tables?: string;
  /** ipvsadm-save, ip address, ipset save and iptables-save; recorded on 10.201.0.60 and fd00:201::60. */
  readonly ipvs: string;
  /** nft list ruleset */
  readonly nft: string;
}

/** Folder of the golden files: the scenarios' and, under `kube-proxy/`, the defaults, flags, metrics and endpoints. */
export const goldenFolder = fileURLToPath(new URL("../fixtures/golden/", import.meta.url));

export function goldenScenarios(): readonly GoldenScenario[] {
  return readdirSync(join(goldenFolder, "scenarios"))
    .sort()
    .map((file) => goldenScenario(basename(file, ".json")));
}

const FIRST_DUAL_STACK = 25;

export function goldenScenario(name: string): GoldenScenario {
  const dualStack = Number.parseInt(name, 10) >= FIRST_DUAL_STACK;
  const scenario = {
    name,
    dualStack,
    objects: [...kubernetesService(), ...readObjects(name)],
    node: goldenNode(dualStack),
    iptables: readGolden(`${name}.iptables`),
    ipvs: readGolden(`${name}.ipvs`),
    nft: readGolden(`${name}.nft`),
  };
  return dualStack ? { ...scenario, ip6tables: readGolden(`${name}.ip6tables`) } : scenario;
}

/** The node that all recordings were made on. */
export function goldenNode(dualStack: boolean): GoldenNode {
  return {
    name: "node-a",
    zone: "z1",
    addresses: dualStack ? ["10.201.0.10", "fd00:201::10"] : ["10.201.0.10"],
    clusterCIDRs: dualStack ? ["10.144.0.0/16", "fd00:144::/48"] : ["10.144.0.0/16"],
    serviceCIDRs: dualStack ? ["10.96.0.0/12", "fd00:10:96::/108"] : ["10.96.0.0/12"],
  };
}

/** Options of kube-proxy that a recording was made with; absent ones are its defaults. */
export interface RecordedOptions {
  readonly dualStack?: boolean;
  readonly masqueradeAll?: boolean;
  readonly masqueradeBit?: number;
  readonly localhostNodePorts?: boolean;
  readonly tcpBeLiberal?: boolean;
  /** CIDRs */
  readonly nodePortAddresses?: readonly string[];
  /** Absent: by the node's clusterCIDRs. */
  readonly detectLocal?: LocalTrafficDetector;
}

/** API objects and what kube-proxy made of them in iptables mode with the options. */
export interface RecordedScenario {
  readonly name: string;
  readonly options: RecordedOptions;
  readonly objects: readonly RawObject[];
  readonly node: GoldenNode;
  /** iptables-save, and ip6tables-save for the dual-stack ones. */
  readonly saves: Readonly<Partial<Record<IPFamily, string>>>;
}

const folder = fileURLToPath(new URL("../fixtures/golden-more/", import.meta.url));

/** The recordings alongside the golden scenarios (`fixtures/golden-more`), iptables mode only. */
export function recordedScenarios(): readonly RecordedScenario[] {
  const names = readdirSync(folder).flatMap((file) => /^(\d\d-.*)\.json(?:\.gz)?$/.exec(file)?.[1] ?? []);
  return names.sort().map(recordedScenario);
}

export function recordedNodePortAddresses({ options, node }: RecordedScenario, family: IPFamily): NodePortAddresses {
  const isOfFamily = (text: string) => isIPv6(text.split("/")[0] ?? "") === (family === "IPv6");
  const cidrs = options.nodePortAddresses?.filter(isOfFamily) ?? [];
  if (cidrs.length === 0) return { kind: "all" };
  const selected = new BlockList();
  for (const [network = "", length] of cidrs.map((cidr) => cidr.split("/"))) {
    selected.addSubnet(network, Number(length), family === "IPv6" ? "ipv6" : "ipv4");
  }
  const own = [...node.addresses, "127.0.0.1", "::1"].filter(isOfFamily);
  const addresses = own.filter((address) => selected.check(address, family === "IPv6" ? "ipv6" : "ipv4"));
  return { kind: "list", addresses: addresses.sort() };
}

export const IPVS_RECORDED_ON: Readonly<Record<IPFamily, string>> = { IPv4: "10.201.0.60", IPv6: "fd00:201::60" };

export interface IpvsText {
  /** iptables-save and ip6tables-save; undefined: the family was not recorded. */
  readonly rules: Readonly<Record<IPFamily, string | undefined>>;
  readonly servers: readonly VirtualServerState[];
  readonly sets: readonly SetState[];
  /** Those of kube-ipvs0. */
  readonly addresses: readonly string[];
}

/** Reads what ipvsadm-save, ip address, ipset save and iptables-save printed, one after the other. */
export function readIpvsText(text: string): IpvsText {
  const sections = sectionsOf(text);
  const lines = (name: string) => sections.get(name) ?? [];
  return {
    rules: { IPv4: sections.get("iptables")?.join("\n"), IPv6: sections.get("ip6tables")?.join("\n") },
    servers: readLines(lines("ipvsadm"), new ServerReader()),
    sets: readLines(lines("ipset"), new SetReader()),
    addresses: lines("kube-ipvs0").flatMap((line) => /inet6? ([^/]+)\//.exec(line)?.[1] ?? []),
  };
}

/** What a golden node's agent plans with in a mode, unless asked otherwise. */
export function goldenPlannerOptions(
  node: GoldenNode,
  semantics: ModeSemantics,
  more: Partial<PlannerOptions> = {},
): PlannerOptions {
  const of = (values: readonly string[], family: IPFamily) => values.filter((value) => familyOf(value) === family);
  const [ip4] = of(node.addresses, "IPv4");
  const [ip6] = of(node.addresses, "IPv6");
  return {
    nodeName: node.name,
    zone: node.zone,
    families: ["IPv4", "IPv6"],
    nodeIPs: { ...(ip4 && { IPv4: ip4 }), ...(ip6 && { IPv6: ip6 }) },
    detectors: {
      IPv4: { kind: "cidrs", cidrs: of(node.clusterCIDRs, "IPv4") },
      ...(ip6 && { IPv6: { kind: "cidrs", cidrs: of(node.clusterCIDRs, "IPv6") } }),
    },
    nodePortAddresses: {},
    masqueradeAll: false,
    semantics,
    ...more,
  };
}

function readGolden(file: string): string {
  return readFileSync(join(goldenFolder, file), "utf8");
}

function readObjects(name: string): readonly RawObject[] {
  return JSON.parse(readGolden(`scenarios/${name}.json`));
}

function recordedScenario(name: string): RecordedScenario {
  const { options, objects } = JSON.parse(readText(`${name}.json`) ?? "");
  const ip6tables = readText(`${name}.ip6tables`);
  return {
    name,
    options,
    objects: [...kubernetesService(), ...objects],
    node: goldenNode(options.dualStack === true),
    saves: { IPv4: readText(`${name}.iptables`) ?? "", ...(ip6tables !== undefined && { IPv6: ip6tables }) },
  };
}

function readText(file: string): string | undefined {
  const path = join(folder, file);
  if (existsSync(path)) return readFileSync(path, "utf8");
  return existsSync(`${path}.gz`) ? gunzipSync(readFileSync(`${path}.gz`)).toString("utf8") : undefined;
}

/** `# NAME` begins a section. */
function sectionsOf(text: string): ReadonlyMap<string, readonly string[]> {
  const sections = new Map<string, string[]>();
  let current: string[] = [];
  for (const line of text.split("\n")) {
    if (!line.startsWith("# ")) current.push(line);
    else {
      current = [];
      sections.set(line.slice(2), current);
    }
  }
  return sections;
}

interface LineReader<T> {
  push(line: string): T | undefined;
  end(): T | undefined;
}

function readLines<T>(lines: readonly string[], reader: LineReader<T>): T[] {
  return [...lines.map((line) => reader.push(line)), reader.end()].filter((item) => item !== undefined);
}

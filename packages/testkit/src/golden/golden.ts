import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { kubernetesService } from "../objects/kubernetes.ts";
import type { RawObject } from "../objects/raw.ts";

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
 * API objects and what the real kube-proxy v1.37.1 made of them in the kernel, mode by mode, as the tools printed it.
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
export const goldenFolder = fileURLToPath(new URL("../../fixtures/golden/", import.meta.url));

const FIRST_DUAL_STACK = 25;

/** Every golden scenario, in the order of their numbers. */
export function goldenScenarios(): readonly GoldenScenario[] {
  return readdirSync(join(goldenFolder, "scenarios"))
    .sort()
    .map((file) => goldenScenario(basename(file, ".json")));
}

/** @throws Error when there is no scenario of this name */
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

function readGolden(file: string): string {
  return readFileSync(join(goldenFolder, file), "utf8");
}

function readObjects(name: string): readonly RawObject[] {
  return JSON.parse(readGolden(`scenarios/${name}.json`));
}

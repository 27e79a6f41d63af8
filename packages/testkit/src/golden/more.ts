import { existsSync, readdirSync, readFileSync } from "node:fs";
import { BlockList, isIPv6 } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import type { IPFamily, LocalTrafficDetector, NodePortAddresses } from "@fairlead/core";
import { kubernetesService } from "../objects/kubernetes.ts";
import type { RawObject } from "../objects/raw.ts";
import { type GoldenNode, goldenNode } from "./golden.ts";

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

/** API objects and what kube-proxy v1.37.1 made of them in iptables mode with the options. */
export interface RecordedScenario {
  readonly name: string;
  readonly options: RecordedOptions;
  readonly objects: readonly RawObject[];
  readonly node: GoldenNode;
  /** iptables-save, and ip6tables-save for the dual-stack ones. */
  readonly saves: Readonly<Partial<Record<IPFamily, string>>>;
}

const folder = fileURLToPath(new URL("../../fixtures/golden-more/", import.meta.url));

/** The recordings alongside the golden scenarios (`fixtures/golden-more`), iptables mode only. */
export function recordedScenarios(): readonly RecordedScenario[] {
  const names = readdirSync(folder).flatMap((file) => /^(\d\d-.*)\.json(?:\.gz)?$/.exec(file)?.[1] ?? []);
  return names.sort().map(recordedScenario);
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

/** Which addresses of the recorded node served node ports, as the planner takes it. */
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

import { COUNTING_SOURCES, type CountOptions, countIn } from "@fairlead/lab/qemu/boot";
import type { KernelVersion } from "@fairlead/lab/qemu/kernel-versions";
import type { GuestCounts } from "./counted.ts";
import { CLIENT, inNode, networkLines, SERVER, type Way } from "./network.ts";
import type { CountedService } from "./objects.ts";
import { printedNumber } from "./printed.ts";
import type { Subject } from "./subject.ts";
import { UNITS, type Unit } from "./units.ts";

/** What a guest is asked, and with what. */
type Asked = Pick<CountOptions, "script" | "files"> &
  Partial<Pick<CountOptions, "modules" | "programs" | "memoryMiB" | "libraries">>;

const MODULES = [
  ...["veth", "vxlan", "nf_tables", "nf_conntrack", "nf_conntrack_netlink", "nf_flow_table", "nf_flow_table_inet"],
  ...["chain_nat", "nat", "masq", "ct", "numgen", "hash", "fib_ipv4", "reject_ipv4", "flow_offload"].map(
    (name) => `nft_${name}`,
  ),
];

/** Boots a guest of a kernel that has `count`, `batch`, `nft` and `ip`. */
export function ask(version: KernelVersion, asked: Asked): ReturnType<typeof countIn> {
  const modules = [...MODULES, ...(asked.modules ?? [])];
  const programs = ["nft", "ip", ...(asked.programs ?? [])];
  return countIn(version, { ...asked, modules, programs, sources: COUNTING_SOURCES });
}

/** What a guest needs in addition to what nftables mode does. */
export interface GuestNeeds extends Omit<Asked, "script" | "files"> {
  /** In the node, before each subject's rules. Default: nft's. */
  readonly flush?: string;
}

/** What a guest is to count. */
export interface Measurement {
  readonly version: KernelVersion;
  readonly way: Way;
  readonly service: CountedService;
  readonly subjects: readonly Subject[];
  readonly units: readonly Unit[];
  readonly guest?: GuestNeeds;
}

/**
 * Counts what packets cost with the rules of each subject, one after the other in one guest: the instructions of the
 * client, the nodes and the server together.
 */
export async function count({
  version,
  way,
  service,
  subjects,
  units,
  guest = {},
}: Measurement): Promise<{ readonly release: string; readonly counts: GuestCounts }> {
  const { flush = "nft flush ruleset", ...more } = guest;
  const { address, port, endpoints } = service;
  const counted = (at: number) =>
    units.map(
      (unit) => `echo "${at} ${unit} $(count ${unit} ${CLIENT} ${SERVER} ${address} ${port} ${UNITS[unit].times})"`,
    );
  const lines = subjects.flatMap(({ load }, at) => [inNode(flush), ...load, ...counted(at)]);
  const script = ["count seed", ...networkLines(way, endpoints), ...lines].join("\n");
  const files = Object.assign({}, ...subjects.map((subject) => subject.files));
  const { release, text } = await ask(version, { ...more, files, script });
  const numbers = (at: number) => Object.fromEntries(units.map((unit) => [unit, printedNumber(text, `${at} ${unit}`)]));
  const counts = Object.fromEntries(subjects.map(({ name }, at) => [name, numbers(at)]));
  return { release, counts };
}

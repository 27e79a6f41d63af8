import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { countIn } from "@fairlead/lab/qemu/boot";
import { guestKernel, type KernelVersion } from "@fairlead/lab/qemu/kernel";
import { folderPrefix } from "@fairlead/lab/support/folder-prefix";
import { execa } from "execa";
import { CLIENT, inNode, networkLines, SERVER } from "./network.ts";
import { ruleTexts, SERVICE, SUBJECTS, type Subject } from "./rules.ts";

/** What is counted, and how often: so much that one more makes no difference. */
export const UNITS = {
  connect: { what: "new connection with one request", times: 200 },
  request: { what: "request over an open connection", times: 300 },
  datagram: { what: "UDP packet", times: 3_200 },
  stream: { what: "megabyte in pieces of 64 kB", times: 10 },
} as const;
export type Unit = keyof typeof UNITS;

/** Instructions for each unit, of the client, the node and the server together. */
export interface Counts {
  readonly release: string;
  readonly instructions: Readonly<Record<Subject, Partial<Readonly<Record<Unit, number>>>>>;
}

const MODULES = [
  ...["veth", "nf_tables", "nf_conntrack", "nf_conntrack_netlink", "nf_flow_table", "nf_flow_table_inet"],
  ...["chain_nat", "nat", "masq", "ct", "numgen", "hash", "fib_ipv4", "reject_ipv4", "flow_offload"].map(
    (name) => `nft_${name}`,
  ),
];

const SOURCE = fileURLToPath(import.meta.resolve("@fairlead/lab/qemu/count").replace(/\.ts$/, ".c"));

/** Counts what packets cost with the rules of each subject, one after the other in one guest. */
export async function count(version: KernelVersion, units: readonly Unit[]): Promise<Counts> {
  const kernel = await guestKernel(version);
  const folder = await mkdtemp(join(tmpdir(), `${folderPrefix}-count-`));
  try {
    const counting = join(folder, "count");
    await execa("gcc", ["-O2", "-static", "-o", counting, SOURCE]);
    const texts = ruleTexts();
    const files = Object.fromEntries(SUBJECTS.map((subject, at) => [`rules-${at}`, texts[subject]]));
    const programs = [counting, await pathOf("nft"), await pathOf("ip")];
    const text = await countIn({ kernel, modules: MODULES, programs, files, script: script(units) });
    return { release: kernel.release, instructions: read(text) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function script(units: readonly Unit[]): string {
  const counted = (at: number) =>
    units.map((unit) => {
      const { address, port } = SERVICE;
      const asked = `count ${unit} ${CLIENT} ${SERVER} ${address} ${port} ${UNITS[unit].times}`;
      return `echo "${at} ${unit} $(${asked})"`;
    });
  const ofSubject = (at: number) => [inNode("nft flush ruleset"), inNode(`nft -f /guest/rules-${at}`), ...counted(at)];
  return ["count seed", ...networkLines(SERVICE.endpoints), ...SUBJECTS.flatMap((_, at) => ofSubject(at))].join("\n");
}

/** `1 request 27316.0` */
function read(text: string): Counts["instructions"] {
  const of = (at: number) =>
    Object.fromEntries(
      Array.from(text.matchAll(/^(\d) (\w+) ([\d.]+)$/gm), ([, subject, unit, value]) => [subject, unit, value])
        .filter(([subject]) => subject === String(at))
        .map(([, unit, value]) => [unit, Number(value)]),
    );
  return { "kube-proxy": of(0), Fairlead: of(1), "Fairlead with the fast path": of(2) };
}

async function pathOf(program: string): Promise<string> {
  const { stdout } = await execa("which", [program], { env: { PATH: `${process.env["PATH"]}:/usr/sbin:/sbin` } });
  return stdout.trim();
}

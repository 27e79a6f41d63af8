import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type CountOptions, countIn } from "@fairlead/lab/qemu/boot";
import { type GuestKernel, guestKernel } from "@fairlead/lab/qemu/kernel";
import type { KernelVersion } from "@fairlead/lab/qemu/kernel-versions";
import { folderPrefix } from "@fairlead/lab/support/run-inventory";
import { execa } from "execa";

/** What a guest is asked, and with what. */
export type Asked = Pick<CountOptions, "script" | "files"> &
  Partial<Pick<CountOptions, "modules" | "programs" | "memoryMiB" | "libraries">>;

const MODULES = [
  ...["veth", "vxlan", "nf_tables", "nf_conntrack", "nf_conntrack_netlink", "nf_flow_table", "nf_flow_table_inet"],
  ...["chain_nat", "nat", "masq", "ct", "numgen", "hash", "fib_ipv4", "reject_ipv4", "flow_offload"].map(
    (name) => `nft_${name}`,
  ),
];

/** Boots a guest of a kernel that has `count`, `batch`, `nft` and `ip`. */
export async function ask(version: KernelVersion, asked: Asked): Promise<{ kernel: GuestKernel; text: string }> {
  const kernel = await guestKernel(version);
  const folder = await mkdtemp(join(tmpdir(), `${folderPrefix}-count-`));
  try {
    const programs = [
      ...(await Promise.all(["count", "batch"].map((name) => compiled(name, folder)))),
      ...(await Promise.all(["nft", "ip", ...(asked.programs ?? [])].map(pathOf))),
    ];
    const modules = [...MODULES, ...(asked.modules ?? [])];
    return { kernel, text: await countIn({ ...asked, kernel, modules, programs }) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function compiled(name: string, folder: string): Promise<string> {
  const source = fileURLToPath(import.meta.resolve(`@fairlead/lab/qemu/${name}`).replace(/\.ts$/, ".c"));
  const program = join(folder, name);
  await execa("gcc", ["-O2", "-static", "-o", program, source]);
  return program;
}

async function pathOf(program: string): Promise<string> {
  if (program.startsWith("/")) return program;
  const { stdout } = await execa("which", [program], { env: { PATH: `${process.env["PATH"]}:/usr/sbin:/sbin` } });
  return stdout.trim();
}

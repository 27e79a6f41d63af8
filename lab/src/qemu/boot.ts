import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { folderPrefix } from "../support/run-inventory.ts";
import { BEGIN, END, type InitramfsOptions, makeInitramfs } from "./initramfs.ts";
import { guestKernel } from "./kernel.ts";
import type { KernelVersion } from "./kernel-versions.ts";

const MEMORY_MIB = 768;

/** The programs `count` and `batch`, which count what packets and changes cost. */
export const COUNTING_SOURCES = ["count.c", "batch.c"].map((name) => fileURLToPath(new URL(name, import.meta.url)));

/** What runs in a guest. */
export interface CountOptions extends Omit<InitramfsOptions, "folder" | "kernel"> {
  /** Default 768. */
  readonly memoryMiB?: number;
}

/**
 * One processor, emulated: each instruction takes a nanosecond of the guest's time, whatever else the machine does, and
 * an idle guest does not wait.
 */
const COUNTING = ["-accel", "tcg", "-icount", "shift=0,sleep=off", "-smp", "1"];

const KERNEL = "console=ttyS0 panic=-1 quiet mitigations=off clocksource=tsc tsc=reliable";

/**
 * Boots a guest without a network and runs a script in it.
 *
 * @returns what the script printed, and the kernel as `uname -r` says it
 * @throws Error with the guest's last words when the script failed, or did not come to its end
 */
export async function countIn(
  version: KernelVersion,
  { memoryMiB = MEMORY_MIB, ...options }: CountOptions,
): Promise<{ readonly release: string; readonly text: string }> {
  const kernel = await guestKernel(version);
  const folder = await mkdtemp(join(tmpdir(), `${folderPrefix}-qemu-`));
  try {
    const archive = await makeInitramfs({ ...options, kernel, folder });
    const machine = ["-m", String(memoryMiB), "-nic", "none", "-nographic", "-no-reboot"];
    const boot = ["-kernel", kernel.image, "-initrd", archive, "-append", KERNEL];
    const { stdout, stderr } = await execa("qemu-system-x86_64", [...COUNTING, ...machine, ...boot], {
      stdin: "ignore",
      reject: false,
    });
    return { release: kernel.release, text: printed(stdout.replaceAll("\r", ""), stderr) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function printed(console: string, errors: string): string {
  const [, behind] = console.split(`${BEGIN}\n`);
  const [text, status] = (behind ?? "").split(END);
  if (text !== undefined && status?.trim().startsWith("0")) return text;
  throw new Error(`the guest failed: ${`${console}\n${errors}`.trim().split("\n").slice(-20).join("\n")}`);
}

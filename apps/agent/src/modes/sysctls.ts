import type { Kernel } from "../host/kernel.ts";
import type { Log } from "../log/log.ts";

/** A kernel setting that a mode relies on. */
export interface RequiredSysctl {
  /** With dots: `net.ipv4.ip_forward`. */
  readonly name: string;
  readonly value: string;
  readonly reason: string;
}

/** Sets kernel settings. A line names each that was changed and each that cannot be set. */
export async function setSysctls(
  required: readonly RequiredSysctl[],
  { sysctl }: Pick<Kernel, "sysctl">,
  log: Log,
): Promise<void> {
  for (const { name, value, reason } of required) {
    const result = await sysctl.set(name.replaceAll(".", "/"), value);
    if (result.outcome === "changed") log.info("Set a sysctl", { name, value, reason });
    else if (result.outcome !== "kept") {
      log.warn("Failed to set a sysctl; the kernel's value stays in effect", {
        name,
        value,
        neededFor: reason,
        reason: result.reason,
      });
    }
  }
}

/** By which interfaces answers leave, and the numbers that this takes. */

import type { Report } from "../report.ts";
import type { ConfigInput } from "../resolve/input.ts";
import type { AgentConfig, ReplyViaSettings } from "../types.ts";
import { KUBELET_DROP, MARK_RANGES, markText, ROUTING_TABLES, RULE_PRIORITIES } from "../used-numbers.ts";

/**
 * The table of nftables that marks connections for `replyVia`, in both families. No agent with a service proxy name has
 * a table of this name: theirs begin with `fairlead-`.
 */
export const REPLY_TABLE = "fairlead_reply";

/** The only bits that neither kube-proxy nor kubelet, Calico, Cilium or Istio use. */
const MARK_MASK = 0x3000;
/** Before the rules that pod networks have for their pods' packets (512 and more), behind the table `local` (0). */
const RULE_PRIORITY = 200;
const FIRST_TABLE = 17_000;
/** unspec, default, main, local (linux/rtnetlink.h). */
const KERNELS_TABLES: readonly number[] = [0, 253, 254, 255];

type Serving = Pick<AgentConfig, "mode" | "serviceProxyName" | "nftables"> & {
  readonly [mode in AgentConfig["mode"]]: { readonly masqueradeBit: number };
};

/** Undefined: answers leave as the node routes them. */
export function resolveReplyVia(
  { fairlead }: ConfigInput,
  config: Serving,
  report: Report,
): ReplyViaSettings | undefined {
  const { replyVia, replyRouting } = fairlead;
  if (replyVia === undefined) return undefined;
  const { mode, serviceProxyName } = config;
  if (mode === "userspace" || mode === "kernelspace")
    report.error("replyVia", "works in iptables, nftables and ipvs mode");
  if (mode === "nftables" && config.nftables.fastPath !== undefined) {
    report.error(
      "replyVia",
      `cannot be combined with ${report.name("nftables.fastPath")}: its packets meet no routing rules`,
    );
  }
  if (serviceProxyName !== "") {
    const name = report.name("serviceProxyName");
    report.error("replyVia", `is for the node's first proxy, and ${name} makes this one a second; remove one of them`);
  }
  const { markMask = MARK_MASK, rulePriority = RULE_PRIORITY, firstTable = FIRST_TABLE } = replyRouting;
  checkMask(markMask, config[mode].masqueradeBit, replyRouting.unusedMarks ?? [], report);
  const settings = { uplinks: replyVia, markMask, rulePriority, firstTable };
  checkNumbers(settings, report);
  if (replyVia !== "auto") checkUplinks(replyVia, settings, report);
  return settings;
}

/**
 * How many uplinks a mask can distinguish: its lowest bit is set in all marks, so that another program's bits are not
 * taken for one.
 */
export function mostUplinks(mask: number): number {
  return 2 ** (bitsOf(mask) - 1);
}

function bitsOf(mask: number): number {
  return mask.toString(2).replaceAll("0", "").length;
}

function checkMask(mask: number, masqueradeBit: number, unused: readonly string[], report: Report): void {
  const ranges: Readonly<Record<string, number>> = {
    masqueradeBit: 2 ** masqueradeBit,
    "kubelet's drop bit": KUBELET_DROP,
    ...Object.fromEntries(Object.entries(MARK_RANGES).filter(([name]) => !unused.includes(name))),
  };
  for (const [name, range] of Object.entries(ranges)) {
    const common = (mask & range) >>> 0;
    if (common === 0) continue;
    const hint = name in MARK_RANGES ? `; where no ${name} runs, list it in replyRouting.unusedMarks` : "";
    report.error(
      "replyRouting.markMask",
      `must not contain bits of ${name} (${markText(range)}): ${markText(common)} is both${hint}`,
      markText(mask),
    );
  }
}

function checkNumbers(
  { markMask, rulePriority, firstTable }: Pick<ReplyViaSettings, "markMask" | "rulePriority" | "firstTable">,
  report: Report,
): void {
  for (const [name, priorities] of Object.entries(RULE_PRIORITIES)) {
    if (!priorities.includes(rulePriority)) continue;
    const message = `must not be a priority of ${name}'s routing rules (${priorities.join(", ")})`;
    report.error("replyRouting.rulePriority", message, String(rulePriority));
  }
  const last = firstTable + mostUplinks(markMask) - 1;
  for (const [name, tables] of Object.entries(ROUTING_TABLES)) {
    if (!tables.some((table) => table >= firstTable && table <= last)) continue;
    const message = `must not lead to tables of ${name} (${tables.join(", ")}): those of replyVia are ${firstTable} to ${last}`;
    report.error("replyRouting.firstTable", message, String(firstTable));
  }
}

function checkUplinks(
  uplinks: Exclude<ReplyViaSettings["uplinks"], "auto">,
  { markMask, firstTable }: Pick<ReplyViaSettings, "markMask" | "firstTable">,
  report: Report,
): void {
  const most = mostUplinks(markMask);
  if (uplinks.length === 0) report.error("replyVia", "must name an interface, or be auto");
  if (uplinks.length > most) {
    report.error("replyVia", `has ${uplinks.length} interfaces; markMask ${markText(markMask)} is enough for ${most}`);
  }
  for (const [at, { interface: name, table }] of uplinks.entries()) {
    const path = `replyVia[${at}]`;
    if (!/^(?!\.\.?$)[^\s/]{1,15}$/.test(name)) {
      report.error(`${path}.interface`, "must be the name of an interface, such as eth1", name);
    } else if (uplinks.findIndex((one) => one.interface === name) !== at) {
      report.error(`${path}.interface`, "must be listed once", name);
    }
    if (table === undefined) continue;
    if (KERNELS_TABLES.includes(table) || (table >= firstTable && table < firstTable + most)) {
      report.error(
        `${path}.table`,
        `must be a table of yours: not 253 to 255, nor one of those from replyRouting.firstTable (${firstTable})`,
        String(table),
      );
    }
  }
}

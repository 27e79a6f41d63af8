import { FLOWTABLE } from "@fairlead/backend-nftables";
import { type AgentConfig, whyNotAuto } from "@fairlead/config";
import type { Finding } from "@fairlead/inspect";
import type { NftTable } from "@fairlead/netfilter/nft";

/** How the table of a node is compared where the fast path is configured. */
export interface ComparedFastPath {
  /** The configuration that the table was made by. */
  readonly config: AgentConfig;
  /** What is worth knowing, and no difference; absent: nothing. */
  readonly note?: string;
  readonly findings: readonly Finding[];
}

/**
 * An agent writes the table as without the option where the kernel has not passed the test of its flowtables.
 *
 * @param found the table of nftables that the agent programs; undefined: there is none
 * @param wanted names of the devices that the agent chooses; undefined: they are not known
 */
export function comparedFastPath(
  config: AgentConfig,
  found: NftTable | undefined,
  wanted: ReadonlySet<string> | undefined,
): ComparedFastPath {
  const { fastPath, ...others } = config.nftables;
  if (fastPath === undefined || found === undefined) return { config, findings: [] };
  const flowtable = found.flowtables?.get(FLOWTABLE);
  if (flowtable === undefined) {
    const note = "the fast path is configured and disabled on this node; `fairlead doctor` says why";
    return { config: { ...config, nftables: others }, note, findings: [] };
  }
  const unknown = whyNotAuto(config);
  if (unknown !== undefined)
    return { config, note: `the flowtable's devices are not compared: ${unknown}`, findings: [] };
  if (wanted === undefined) return { config, findings: [] };
  const there = new Set(flowtable.devices);
  const finding = (kind: Finding["kind"]) => (name: string) => ({
    kind,
    where: `flowtable ${FLOWTABLE}`,
    what: `device ${name}`,
  });
  const missing = [...wanted].filter((name) => !there.has(name));
  const extra = [...there].filter((name) => !wanted.has(name));
  return { config, findings: [...missing.map(finding("missing")), ...extra.map(finding("extra"))] };
}

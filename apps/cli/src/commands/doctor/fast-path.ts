import { FLOWTABLE, tableName } from "@fairlead/backend-nftables";
import { parseJSON, textAt } from "@fairlead/base";
import { type AgentConfig, whyNotAuto } from "@fairlead/config";
import type { FastPathFacts, NodeState } from "@fairlead/inspect";
import type { NftTable } from "@fairlead/netfilter/nft";
import { fastPathDevices } from "../../node/fast-path-devices.ts";
import { type Attempt, isThere, outputOf } from "./command-result.ts";

/** There where the kernel was built with flowtables, whether their module is loaded or not. */
const TIMEOUT = "/proc/sys/net/netfilter/nf_flowtable_tcp_timeout";

/** What a node shows of the fast path; undefined: it is not configured. */
export async function fastPathFacts(
  config: AgentConfig,
  state: NodeState,
  attempt: Attempt,
): Promise<FastPathFacts | undefined> {
  const { nftables, serviceProxyName, stateDir } = config;
  if (nftables.fastPath === undefined) return undefined;
  const { tables } = state;
  const own = tableName(serviceProxyName);
  const devices = tables && devicesOf(tables.filter(({ name }) => name === own));
  const present = new Set(Array.isArray(devices) ? devices : []);
  const auto = whyNotAuto(config);
  const chosen = fastPathDevices(config, state);
  return {
    flowtables: isThere(await attempt("cat", TIMEOUT)),
    test: await testOf(stateDir, attempt),
    devices,
    refused: Array.from(chosen?.refused ?? [], ([device, reason]) => ({ device, reason })),
    ...(auto !== undefined && { auto }),
    others: (tables ?? []).filter(({ name }) => name !== own).flatMap((table) => sharedBy(table, present)),
  };
}

/** The same in both families, as the agent has them. */
function devicesOf(tables: readonly NftTable[]): FastPathFacts["devices"] {
  const found = tables.flatMap(({ flowtables }) => flowtables?.get(FLOWTABLE) ?? []);
  return found.length === 0 ? "no flowtable" : [...new Set(found.flatMap(({ devices }) => devices))];
}

function sharedBy(table: NftTable, own: ReadonlySet<string>): FastPathFacts["others"] {
  return [...(table.flowtables?.values() ?? [])].flatMap(({ name, devices }) => {
    const shared = devices.filter((device) => own.has(device));
    return shared.length === 0 ? [] : [{ table: `${table.family} ${table.name}`, flowtable: name, devices: shared }];
  });
}

/** What the agent or --init-only noted of this kernel since it booted. */
async function testOf(stateDir: string, attempt: Attempt): Promise<FastPathFacts["test"]> {
  const seen = await attempt("cat", `${stateDir}/fast-path.json`);
  if (seen.kind === "unseen") return { kind: "unknown" };
  const noted = parseJSON(outputOf(seen) ?? "null");
  const boot = outputOf(await attempt("cat", "/proc/sys/kernel/random/boot_id"))?.trim();
  if (textAt(noted, "boot") !== boot) return { kind: "none" };
  const outcome = textAt(noted, "outcome");
  if (outcome === "failed") return { kind: "failed", reason: textAt(noted, "reason") ?? "unknown" };
  return { kind: outcome === "passed" ? "passed" : "none" };
}

import { advice, asRoot } from "./advice.ts";
import { good, unknown, warning } from "./diagnosis.ts";
import type { Diagnosis, FastPathFacts, NodeFacts } from "./facts.ts";

const CHECK = "fast path";
/** Devices that a line names. */
const NAMED = 5;
const NAME_DEVICES = "name the devices of pods and of other nodes in nftables.fastPath.devices";

/** Whether the fast path is in use where it is configured. Services work without it, so nothing is bad. */
export function fastPath({ fastPath: facts }: NodeFacts): readonly Diagnosis[] {
  if (facts === undefined) return [];
  return [use(facts), ...facts.refused.map(leftOut), ...facts.others.map(shared)];
}

function use({ flowtables, test, devices, auto }: FastPathFacts): Diagnosis {
  if (auto !== undefined) return warning(CHECK, `disabled: ${auto}`, advice("fast-path-devices", NAME_DEVICES));
  if (flowtables === false) {
    const text = "boot a kernel that has CONFIG_NF_FLOW_TABLE, or take nftables.fastPath out of the configuration";
    return warning(CHECK, "disabled: this kernel has no flowtables", advice("fast-path-kernel", text));
  }
  if (test.kind === "failed") {
    const text = "boot another kernel, or take nftables.fastPath out of the configuration; services work without it";
    return warning(CHECK, `disabled: this kernel failed its test: ${test.reason}`, advice("fast-path-failed", text));
  }
  if (devices === undefined) return unknown(CHECK, "the flowtable cannot be read", asRoot());
  if (devices === "no flowtable") {
    const found =
      test.kind === "none" ? "there is no result of its test since this node booted" : "there is no flowtable";
    const text =
      "run `fairlead-proxy --init-only` with the agent's configuration in a privileged init container, with the same " +
      "--state-dir, and start the agent again; its log says at the start why the fast path is disabled";
    return warning(CHECK, `disabled: ${found}`, advice("fast-path-test", text));
  }
  if (devices.length === 0) {
    return warning(CHECK, "no device is in the flowtable", advice("fast-path-devices", NAME_DEVICES));
  }
  return good(CHECK, `for ${listed(devices)}`);
}

function leftOut({ device, reason }: FastPathFacts["refused"][number]): Diagnosis {
  const text = "name other devices in nftables.fastPath.devices; packets that come in by this one meet all rules";
  return warning(`${CHECK} for ${device}`, `left out: ${reason}`, advice("fast-path-device", text));
}

/** Calico's, for example: which of the two a connection is in depends on which rule came first. */
function shared({ table, flowtable, devices }: FastPathFacts["others"][number]): Diagnosis {
  const text =
    "use one of the two: leave these devices out of nftables.fastPath.devices, or have the other program make no flowtable";
  const found = `table ${table} has the flowtable ${flowtable} on ${listed(devices)}, too`;
  return warning("flowtables of other programs", found, advice("fast-path-other", text));
}

function listed(devices: readonly string[]): string {
  const more = devices.length - NAMED;
  return `${devices.slice(0, NAMED).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

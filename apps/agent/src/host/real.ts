import { tableName } from "@fairlead/backend-nftables";
import { errorChainText, IP_FAMILIES, systemClock } from "@fairlead/base";
import {
  areTablesThere,
  createChainsThere,
  createConntrack,
  createDeviceFollower,
  createGlance,
  createIpset,
  createIpvsadm,
  createLinks,
  createModules,
  createNfacct,
  createNodeAddresses,
  createRouting,
  createRunner,
  createSysctl,
  detectVariant,
  isNftTableThere,
  openGenericSocket,
  openIptables,
  openIptablesInUse,
  openNetfilterSocket,
  openNftables,
  openRouteListening,
  openRouteSocket,
  openTracking,
} from "@fairlead/kernel";
import type { Log } from "../log/log.ts";
import { testFlowtable } from "./flowtable-test.ts";
import type { Kernel } from "./kernel.ts";
import { removeNftTables } from "./nft-leftovers.ts";
import { sourceAddress } from "./source-address.ts";

/** The kernel of the network namespace that this process runs in. */
export function realKernel(log: Log): Kernel {
  const runner = createRunner();
  const onProblem = onceEach((error) =>
    log.warn("Node address updates lost; known addresses stay in effect, retrying", { error }),
  );
  const onFallback = (reason: unknown) =>
    log.verbose(1, "Deleting conntrack entries with conntrack-tools; this is slow for many entries", {
      reason: errorChainText(reason),
    });
  // One answer for both families, found once: looking takes several processes.
  let variant: ReturnType<typeof detectVariant> | undefined;
  const detect = () => (variant ??= detectVariant(runner));
  return {
    iptables: (family) =>
      openIptables(runner, { family, detect, glance: createGlance, chainsThere: createChainsThere }),
    iptablesInUse: (family) =>
      openIptablesInUse(runner, { family, areThere: areTablesThere, chainsThere: createChainsThere }),
    ipvs: {
      servers: createIpvsadm(runner, { open: openGenericSocket }),
      sets: createIpset(runner, { open: openNetfilterSocket }),
      links: createLinks(runner, { open: openRouteSocket }),
    },
    modules: createModules(runner),
    addresses: createNodeAddresses(runner, {
      open: openRouteSocket,
      listen: openRouteListening,
      onProblem,
    }),
    devices: createDeviceFollower({ open: openRouteSocket, listen: openRouteListening, timers: systemClock }),
    testFlowtable: () => testFlowtable(runner),
    routing: createRouting(runner, { listen: openRouteListening }),
    conntrack: createConntrack(runner, { onFallback }),
    tracking: () => openTracking(runner),
    nfacct: createNfacct(runner, { open: openNetfilterSocket }),
    sysctl: createSysctl(),
    nftables: () => openNftables(),
    removeNftTables: (serviceProxyName) => removeNftTables({ open: openNftables, runner }, tableName(serviceProxyName)),
    hasNftTable,
    sourceAddress,
  };
}

async function hasNftTable(name: string): Promise<boolean | undefined> {
  const [IPv4, IPv6] = await Promise.all(IP_FAMILIES.map((family) => isNftTableThere(family, name)));
  return IPv4 === true || IPv6 === true || (IPv4 ?? IPv6);
}

/** Tries come again and again; what went wrong is reported when it is something else than before. */
function onceEach(report: (error: string) => void): (error: unknown) => void {
  let last = "";
  return (error) => {
    const text = errorChainText(error);
    if (text !== last) report(text);
    last = text;
  };
}

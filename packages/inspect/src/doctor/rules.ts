import { AS_ROOT, bad, type Check, good, unknown, warning } from "./diagnosis.ts";
import { named } from "./named.ts";

/** What is looked at of the rules that the node holds, of the proxy and of others. */
export const ruleChecks: readonly Check[] = [iptables, otherVariant, policies, otherTables, traceRules];

function iptables({ variant, mayReadRules, needs }: Parameters<Check>[0]): ReturnType<Check> {
  const check = "iptables";
  if (variant === undefined && needs.nftTables !== undefined) return good(check, "not found, and not needed");
  if (variant === undefined)
    return bad(check, "not found", "install iptables 1.8 or newer (Debian: apt-get install iptables)");
  if (!mayReadRules) return bad(check, `${variant}, but its rules may not be read`, AS_ROOT);
  return good(check, `${variant} variant`);
}

function otherVariant({ variant, rules }: Parameters<Check>[0]): ReturnType<Check> {
  const check = "rules of the other variant";
  const other = rules.find((count) => count.variant !== variant);
  if (other === undefined) return good(check, "none");
  if (!other.readable) return unknown(check, `those of ${other.variant} may not be read`, AS_ROOT);
  if (other.proxy + other.others === 0) return good(check, "none");
  const found = `${other.variant} has ${other.proxy} rules of a proxy and ${other.others} of others, alongside ${variant}`;
  const advice = `the kernel asks both: remove a proxy's leftovers with ${other.variant === "nft" ? "iptables-nft" : "iptables-legacy"}, or have all programs use one variant`;
  return other.proxy > 0 ? bad(check, found, advice) : warning(check, found, advice);
}

function policies({ rules, variant, needs }: Parameters<Check>[0]): ReturnType<Check> {
  const check = "policies";
  if (variant === undefined && needs.nftTables !== undefined) return good(check, "there is no iptables");
  const own = rules.filter((count) => count.variant === variant);
  if (own.length === 0 || own.some(({ readable }) => !readable)) return unknown(check, "may not be read", AS_ROOT);
  const chains = own.flatMap((count) => count.dropping);
  if (chains.length === 0) return good(check, "nothing is dropped by default");
  return warning(
    check,
    `${chains.join(", ")} of filter drop what no rule accepts`,
    "have whoever set them (a firewall, docker) let pods' and services' packets through, or set the policy to ACCEPT",
  );
}

/** Nothing is looked at in modes that have no table. */
export function ownTables({ nftTables, needs }: Parameters<Check>[0]): readonly ReturnType<Check>[] {
  const check = "nft tables of the mode";
  const wanted = needs.nftTables ?? [];
  if (wanted.length === 0) return [];
  if (nftTables === undefined)
    return [
      unknown(check, "cannot be listed", `${AS_ROOT}; where this machine has no netlink it takes nft (nftables)`),
    ];
  const there = nftTables.filter((name) => isNamed(name, wanted));
  if (there.length > 0) return [good(check, there.join(", "))];
  return [bad(check, `${wanted.join(", ")}: not there`, "start the agent, or look at its log: it makes the table")];
}

/** @param table `ip kube-proxy` */
function isNamed(table: string, names: readonly string[]): boolean {
  return names.includes(table.slice(table.indexOf(" ") + 1));
}

/** Agents with a service proxy name alongside the one that is looked at; nothing where there are none. */
export function otherInstances({ instances = [] }: Parameters<Check>[0]): readonly ReturnType<Check>[] {
  return instances.map(({ name, tables, running }) => {
    const check = `instance ${name}`;
    const found = `service proxy ${name} has ${tables.join(", ")}`;
    if (running !== false) return good(check, found);
    return warning(
      check,
      `${found}, and does not run`,
      `start it, or remove its tables: fairlead-proxy --cleanup --service-proxy-name=${name}`,
    );
  });
}

function otherTables(facts: Parameters<Check>[0]): ReturnType<Check> {
  const { nftTables: all, needs, serviceProxyName, instances = [] } = facts;
  const check = "nft tables of others";
  if (all === undefined)
    return unknown(check, "cannot be listed", `${AS_ROOT}; where this machine has no netlink it takes nft (nftables)`);
  const known = instances.flatMap(({ tables }) => tables);
  // An agent with a name runs alongside the node's first proxy, which may have them.
  const firsts = serviceProxyName === undefined ? [] : ["kube-proxy"];
  const nftTables = all.filter(
    (name) => !isNamed(name, [...(needs.nftTables ?? []), ...firsts]) && !known.includes(name),
  );
  const proxies = nftTables.filter((name) => / kube-proxy$/.test(name));
  if (proxies.length > 0)
    return bad(
      check,
      `${proxies.join(", ")}: what kube-proxy's nftables mode left`,
      "remove it: kube-proxy --cleanup, or nft delete table",
    );
  if (nftTables.length === 0) return good(check, "none");
  return warning(
    check,
    named(nftTables),
    "make sure that these tables do not drop what services need; packets meet them in addition to iptables",
  );
}

/** `fairlead trace --watch` takes its rule away; one that was killed could not. */
function traceRules({ traceRules: found }: Parameters<Check>[0]): ReturnType<Check> {
  const check = "rules of fairlead trace";
  if (found === undefined) return unknown(check, "cannot be listed or not removed", AS_ROOT);
  const { removed, running, unknown: unseen } = found;
  if (unseen.length > 0) {
    return unknown(
      check,
      `whether their process runs cannot be seen from here: ${unseen.join("; ")}`,
      "run it in the host's process namespace; or remove them, if no fairlead trace --watch runs: iptables-nft -t raw -D …",
    );
  }
  const texts = [
    ...(removed.length === 0 ? [] : [`removed what a killed one left: ${removed.join("; ")}`]),
    ...(running.length === 0 ? [] : [`${running.length} of process ${running.join(", ")}, which runs`]),
  ];
  return good(check, texts.join("; ") || "none");
}

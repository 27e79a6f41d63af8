import { REPLY_TABLE } from "@fairlead/config";
import { type Advice, advice, asRoot } from "./advice.ts";
import { bad, type Check, good, unknown, warning } from "./diagnosis.ts";
import type { RuleCount } from "./facts.ts";

const ONE_VARIANT = "have all programs use one variant";

const LIST_TABLES = asRoot("where this machine has no netlink it takes nft (nftables)");

/** The table of the node's first proxy in nftables mode. */
const FIRST_PROXYS = "kube-proxy";

const LONGEST_NAME = 60;

/** What is looked at of the rules that the node holds, of the proxy and of others. */
export const ruleChecks: readonly Check[] = [iptables, otherVariant, policies, otherTables];

/** Nothing is looked at in modes that have no table. */
export function ownTables({ nftTables, needs }: Parameters<Check>[0]): readonly ReturnType<Check>[] {
  const check = "nft tables of the mode";
  const wanted = needs.nftTables ?? [];
  if (wanted.length === 0) return [];
  if (nftTables === undefined) return [unknown(check, "cannot be listed", LIST_TABLES)];
  const there = nftTables.filter((name) => isNamed(name, wanted));
  if (there.length > 0) return [good(check, there.join(", "))];
  return [
    bad(
      check,
      `${wanted.join(", ")}: not there`,
      advice("make-table", "start the agent, or look at its log: it makes the table"),
    ),
  ];
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
      advice("instance", `start it, or remove its tables: \`fairlead-proxy --cleanup --service-proxy-name=${name}\``),
    );
  });
}

/** What a line names of many; the others are counted. */
const MOST_NAMED = 5;

/** Names as one line has room for them: the first few, cut where they are long, and how many more there are. */
export function named(names: readonly string[], most = MOST_NAMED, separator = ", "): string {
  const shown = names.slice(0, most).map((name) => shortened(name));
  const more = names.length - shown.length;
  return shown.join(separator) + (more > 0 ? `${separator}and ${more} more` : "");
}

function iptables(facts: Parameters<Check>[0]): ReturnType<Check> {
  const { variant, mayReadRules, needs } = facts;
  const check = "iptables";
  if (variant === undefined && needs.iptables.length === 0) return good(check, "not found, and not needed");
  if (variant === undefined)
    return bad(
      check,
      "not found",
      advice("install-iptables", "install iptables 1.8 or newer (Debian: `apt-get install iptables`)"),
    );
  if (!mayReadRules) return bad(check, `${variant}, but its rules may not be read`, asRoot());
  const undecided = undecidedVariant(facts);
  if (undecided !== undefined) return bad(check, "both variants have rules of a proxy", undecided);
  return good(check, `${variant} variant`);
}

/**
 * Two rule sets serve, and nothing says by which of them the running proxy does: programs then count rules, and what
 * they count changes with each Service.
 *
 * @returns what decides it; undefined: it is decided, or the mode writes neither
 */
function undecidedVariant({ variant, rules, needs }: Parameters<Check>[0]): Advice | undefined {
  if (variant === undefined || needs.iptables.length === 0 || rules.some(({ hinted }) => hinted)) return undefined;
  if (rules.filter(({ proxy }) => proxy > 0).length < 2) return undefined;
  const hint = `\`iptables-${variant} -t mangle -N KUBE-IPTABLES-HINT\``;
  return advice(
    "decide-variant",
    `the kernel asks both, and kubelet's chain that names this host's variant is missing: decide for ${variant} with ${hint}, restart the proxy, which then writes there, and run doctor again for what was left in the other one`,
  );
}

function otherVariant(facts: Parameters<Check>[0]): ReturnType<Check> {
  const { variant, rules, needs } = facts;
  const check = "rules of the other variant";
  const other = rules.find((count) => count.variant !== variant);
  if (other === undefined) return good(check, "none");
  if (!other.readable) return unknown(check, `those of ${other.variant} may not be read`, asRoot());
  if (other.proxy + other.others === 0) return good(check, "none");
  const found = `${other.variant} has ${other.proxy} rules of a proxy and ${other.others} of others, alongside ${variant}`;
  if (other.proxy === 0) return warning(check, found, advice("one-variant", `the kernel asks both: ${ONE_VARIANT}`));
  const own = rules.find((count) => count.variant === variant)?.proxy ?? 0;
  // The proxy's own image may choose otherwise than this host.
  if (own === 0 && needs.iptables.length > 0)
    return warning(
      check,
      found,
      advice("one-variant", `the kernel asks both, and the proxy uses ${other.variant}: ${ONE_VARIANT}`),
    );
  const undecided = undecidedVariant(facts);
  if (undecided !== undefined) return bad(check, found, undecided);
  return bad(
    check,
    found,
    advice("remove-other-variant", `the kernel asks both: ${ONE_VARIANT}; ${removal(other.variant)}`),
  );
}

/** Nothing but the proxy's chains goes, in that variant only. A proxy's own image may use another one than the host. */
function removal(left: RuleCount["variant"]): string {
  const commands = ["iptables", "ip6tables"].map((tool) => {
    return `\`${tool}-${left}-save | grep -v KUBE- | ${tool}-${left}-restore\``;
  });
  return `if the running proxy does not use ${left}, remove what was left there with ${commands.join(" and ")}`;
}

function policies({ rules, variant, needs }: Parameters<Check>[0]): ReturnType<Check> {
  const check = "policies";
  if (variant === undefined && needs.iptables.length === 0) return good(check, "there is no iptables");
  const own = rules.filter((count) => count.variant === variant);
  if (own.length === 0 || own.some(({ readable }) => !readable)) return unknown(check, "may not be read", asRoot());
  const chains = own.flatMap((count) => count.dropping);
  if (chains.length === 0) return good(check, "nothing is dropped by default");
  return warning(
    check,
    `${chains.join(", ")} of filter drop what no rule accepts`,
    advice(
      "let-through",
      "allow pod and service traffic in the firewall that sets this policy, or set the policy to ACCEPT",
    ),
  );
}

/** @param table `ip kube-proxy` */
function isNamed(table: string, names: readonly string[]): boolean {
  return names.includes(table.slice(table.indexOf(" ") + 1));
}

function otherTables(facts: Parameters<Check>[0]): ReturnType<Check> {
  const { nftTables: all, needs, serviceProxyName, running, instances = [], uplinks } = facts;
  const check = "nft tables of others";
  if (all === undefined) return unknown(check, "cannot be listed", LIST_TABLES);
  const known = instances.flatMap(({ tables }) => tables);
  // An agent with a name runs alongside the node's first proxy, which may have them.
  const firsts = [
    ...(serviceProxyName === undefined ? [] : [FIRST_PROXYS]),
    ...(running?.nftTables ?? []),
    // With `replyVia` it is the node's own.
    ...(uplinks === undefined ? [] : [REPLY_TABLE]),
  ];
  const nftTables = all.filter(
    (name) => !isNamed(name, [...(needs.nftTables ?? []), ...firsts]) && !known.includes(name),
  );
  const proxys = nftTables.filter((name) => isNamed(name, [FIRST_PROXYS]));
  if (proxys.length > 0) return leftTables(check, proxys, facts);
  if (nftTables.length === 0) return good(check, "none");
  return warning(
    check,
    named(nftTables),
    advice(
      "check-tables",
      "make sure that these tables do not drop what services need; packets meet them in addition to iptables",
    ),
  );
}

/** Tables that may serve are not to be removed: what a proxy in nftables mode has there comes back late or never. */
function leftTables(check: string, tables: readonly string[], facts: Parameters<Check>[0]): ReturnType<Check> {
  const { running, proxies, allProcesses } = facts;
  const names = tables.join(", ");
  const remove = tables.map((table) => `\`nft delete table ${table}\``).join(" and ");
  if (running !== undefined) {
    return bad(
      check,
      `${names}: left by nftables mode; the proxy runs in ${running.mode} mode`,
      advice("delete-left-tables", `run ${remove}`),
    );
  }
  if (proxies.length > 0 || !allProcesses) {
    const found = `${names}: whether a proxy in nftables mode serves by them is not known`;
    return unknown(
      check,
      found,
      advice(
        "ask-running-proxy",
        "run it where the proxy's metrics port answers, or give --mode nftables if that is its mode",
      ),
    );
  }
  const found = `${names}: left by nftables mode, and no proxy runs`;
  const what = "start the proxy: in nftables mode it serves by these tables, in another one it removes them";
  return bad(check, found, advice("start-proxy-first", what));
}

function shortened(name: string): string {
  return name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1)}…` : name;
}

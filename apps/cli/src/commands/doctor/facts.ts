import { detectVariant, nodeLockProcess, type Runner } from "@fairlead/kernel";
import { parseRoutes } from "@fairlead/trace";
import type { ApiFacts, NamedCIDR, NodeFacts, RuleCount } from "@fairlead/verify";
import type { AgentSetup } from "../../inputs/agent.ts";
import { nodeAddresses } from "../../node/kernel-state.ts";

const SYSCTLS = [
  "net/ipv4/ip_forward",
  "net/ipv6/conf/all/forwarding",
  "net/bridge/bridge-nf-call-iptables",
  "net/ipv4/vs/conntrack",
] as const;

/** Looks at this node; what cannot be seen is left out. */
export async function nodeFacts(
  { mode, config, filter }: AgentSetup,
  serviceCIDRs: readonly string[],
  api: ApiFacts,
  runner: Runner,
): Promise<NodeFacts> {
  const attempt = attemptWith(runner);
  const counts = await Promise.all((["nft", "legacy"] as const).map((variant) => countRules(runner, variant)));
  const present = counts.filter((count) => count !== undefined);
  const variant = present.length === 0 ? undefined : await detectVariant(runner);
  const cidr = (use: NamedCIDR["use"]) => (text: string) => ({ use, cidr: text });
  const addresses = await nodeAddresses(runner).catch(() => []);
  const sysctls = await Promise.all(
    SYSCTLS.map(async (key) => [key, (await attempt("cat", `/proc/sys/${key}`))?.trim()] as const),
  );
  return {
    mode,
    ...(variant !== undefined && { variant }),
    mayReadRules: present.some((count) => count.variant === variant && count.readable),
    rules: present,
    nftTables: nftTables(await attempt("nft", "list", "flowtables")),
    sysctls: Object.fromEntries(sysctls.flatMap(([key, value]) => (value === undefined ? [] : [[key, value]]))),
    kernel: {
      "connection tracking": (await attempt("cat", "/proc/sys/net/netfilter/nf_conntrack_max")) !== undefined,
      ipvs: (await attempt("cat", "/proc/net/ip_vs")) !== undefined,
      ipset: (await attempt("ipset", "list", "-n")) !== undefined,
    },
    proxies: await proxies(attempt),
    routes: await routes(attempt),
    cidrs: [
      ...config.clusterCIDRs.map(cidr("pods")),
      ...filter.excludeCIDRs.map(cidr("excluded pods")),
      ...serviceCIDRs.flatMap((given) => given.split(",")).map(cidr("services")),
      ...addresses
        .filter((address) => !isLocal(address))
        .map((address) => cidr("node")(`${address}/${address.includes(":") ? 128 : 32}`)),
    ],
    api,
  };
}

type Attempt = (program: string, ...args: readonly string[]) => Promise<string | undefined>;

function attemptWith(runner: Runner): Attempt {
  return async (program, ...args) => {
    try {
      return (await runner.run([program, ...args])).stdout;
    } catch {
      return undefined;
    }
  };
}

/** Loopback, link-local addresses and those by which pods know the node. */
function isLocal(address: string): boolean {
  return /^(?:127\.|169\.254\.|::1$|fe80:)/.test(address);
}

/** Undefined: the variant is not installed. */
async function countRules(
  runner: Runner,
  variant: "nft" | "legacy",
): Promise<(RuleCount & { readonly readable: boolean }) | undefined> {
  const attempt = attemptWith(runner);
  if ((await attempt(`iptables-${variant}-save`, "--version")) === undefined) return undefined;
  const text = await attempt(`iptables-${variant}-save`);
  const lines = (text ?? "").split("\n");
  const rules = lines.filter((line) => line.startsWith("-A "));
  const proxy = rules.filter((line) => / KUBE-|^-A KUBE-/.test(line)).length;
  return {
    variant,
    proxy,
    others: rules.length - proxy,
    dropping: droppingChains(text ?? ""),
    readable: text !== undefined,
  };
}

function droppingChains(text: string): readonly string[] {
  const [, filter = ""] = /^\*filter\n([\s\S]*?)^COMMIT/m.exec(text) ?? [];
  return [...filter.matchAll(/^:(\S+) DROP /gm)].map(([, chain = ""]) => chain);
}

/**
 * `table ip kube-proxy {`; those of iptables have its own tables' names. Listing flowtables names every table and reads nothing else;
 * `list tables` reads all rules first, a minute beside those of 10,000 services (nftables 1.0).
 */
function nftTables(text: string | undefined): readonly string[] {
  const names = [...(text ?? "").matchAll(/^table (\S+) (\S+) \{$/gm)];
  const own: ReadonlySet<string> = new Set(["filter", "nat", "mangle", "raw", "security"]);
  return names.flatMap(([, family = "", name = ""]) => (own.has(name) ? [] : [`${family} ${name}`]));
}

async function proxies(attempt: Attempt): Promise<NodeFacts["proxies"]> {
  const fairlead = await nodeLockProcess().catch(() => undefined);
  const listed = (await attempt("ps", "-e", "-o", "pid=,comm=")) ?? "";
  const others = [...listed.matchAll(/^ *(\d+) (kube-proxy|cilium-agent|kube-router)$/gm)];
  return [
    ...(fairlead === undefined ? [] : [{ pid: fairlead, name: "fairlead-proxy" }]),
    ...others.map(([, pid, name = ""]) => ({ pid: Number(pid), name })),
  ];
}

async function routes(attempt: Attempt): Promise<readonly string[]> {
  const families = [
    ["-4", "IPv4"],
    ["-6", "IPv6"],
  ] as const;
  const all = await Promise.all(
    families.map(async ([flag, family]) =>
      parseRoutes((await attempt("ip", "-json", flag, "route", "show")) ?? "", family),
    ),
  );
  return all
    .flat()
    .flatMap(({ cidr }) =>
      /\/0$/.test(cidr) ? [] : [cidr.includes("/") ? cidr : `${cidr}/${cidr.includes(":") ? 128 : 32}`],
    );
}

/** What a node's doctor knows of it. Absent: it could not be found out, which is a complaint where it matters. */
export interface NodeFacts {
  readonly mode: "iptables" | "ipvs";
  /** Whether the rules of the kernel may be read and written. */
  readonly mayReadRules: boolean;
  /** The iptables that this host uses; absent: there is none. */
  readonly variant?: "nft" | "legacy";
  /** How many rules each variant holds, of the proxy (KUBE-…) and of others. */
  readonly rules: readonly RuleCount[];
  /** Names of tables that nft has beside those of iptables. */
  readonly nftTables: readonly string[];
  /** By path below /proc/sys; absent keys are not there. */
  readonly sysctls: Readonly<Record<string, string>>;
  /** Parts of the kernel, and whether they are there. */
  readonly kernel: Readonly<Record<KernelPart, boolean>>;
  /** Processes that serve as a proxy on this node. */
  readonly proxies: readonly { readonly pid: number; readonly name: string }[];
  /** CIDRs of the node's routes, defaults left out. */
  readonly routes: readonly string[];
  readonly cidrs: readonly NamedCIDR[];
  readonly api: ApiFacts;
}

export type KernelPart = "connection tracking" | "ipvs" | "ipset";

export interface RuleCount {
  readonly variant: "nft" | "legacy";
  readonly proxy: number;
  readonly others: number;
  /** Policies of filter's built-in chains that drop. */
  readonly dropping: readonly string[];
}

export interface NamedCIDR {
  readonly cidr: string;
  readonly use: "pods" | "excluded pods" | "services" | "node";
}

export type ApiFacts =
  | { readonly kind: "unasked" }
  | { readonly kind: "unreachable"; readonly reason: string }
  | { readonly kind: "answers"; readonly server: string; readonly denied: readonly string[] };

/** One thing that was looked at. */
export interface Diagnosis {
  readonly check: string;
  /** bad: services do not work; warning: they may not, or not all of them. */
  readonly state: "good" | "warning" | "bad";
  readonly found: string;
  /** What to do; absent where all is good. */
  readonly advice?: string;
}

/** What an archive keeps of a node: its kernel's state, the pages and the log of its agent. */

import { parseJSON } from "@fairlead/base";
import { type ConfigurationKind, PROXY_MODES, shareableConfiguration } from "@fairlead/config";
import type { NodeState, RuleListing } from "@fairlead/inspect";
import type { NftRule, NftTable } from "@fairlead/netfilter/nft";
import { fields, type Keep, type KeptFields, text } from "./keep.ts";

/** The state without the texts that other programs chose: comments, prefixes of logs, names of strings. */
export function shareableState({ rules, tables, problems, ...state }: NodeState): NodeState {
  const reasons = Object.entries(problems).map(([part, why]) => [part, withoutSecrets(why.slice(0, 500))] as const);
  return {
    ...state,
    ...(rules && { rules: rules.map(shareableListing) }),
    ...(tables && { tables: tables.map(shareableTable) }),
    problems: Object.fromEntries(reasons),
  };
}

/** What the schema of a configuration lets leave its node. */
export function configuration(kind: ConfigurationKind): Keep {
  return (value) => shareableConfiguration(kind, value, withoutSecrets);
}

const WHY = text(/^[^"]{0,500}$/);
/** Kinds and names. */
const OBJECTS: Keep = (value) => (Array.isArray(value) ? value.filter((one) => OBJECT.test(String(one))) : undefined);
const OBJECT = /^[A-Za-z0-9./-]{1,300}$/;
const OWNERSHIP: KeptFields = {
  services: [
    "service",
    "ipFamily",
    "ownership",
    ["why", (value) => WHY(typeof value === "string" ? withoutSecrets(value.replaceAll(/"[^"]*"/g, "…")) : value)],
    "decidingCIDRs",
    "ownEndpoints",
    "excludedEndpoints",
    "frontends",
  ],
  "networks.sources": ["source", "side", "state"],
  "networks.cidrs": ["cidr", "side", "source", "stage", "since", ["objects", OBJECTS]],
  "networks.conflicts": ["cidr", "side", "within"],
};

/** What stands in place of what may be a secret. */
const LEFT_OUT = "[left out]";

const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]+-----[\s\S]*?(?:-----END [A-Z ]+-----|$)/g, LEFT_OUT],
  // User and password of a URL: to the last @ before a space.
  [/([a-z][a-z0-9+.-]*:\/\/)[^\s"'<>]*@/gi, `$1${LEFT_OUT}@`],
  [/\beyJ[\w-]{6,}\.[\w-]+(?:\.[\w-]*)?/g, LEFT_OUT],
  [/\b(bearer|basic)(\s+)[\w.~+/=-]{4,}/gi, `$1$2${LEFT_OUT}`],
  [
    /([\w-]*(?:token|passw(?:or)?d|secret|api[-_]?key|credential|authorization)[\w-]*\\?["']?\s*[=:]\s*)(\\?"(?:[^"\\]|\\.)*"|'[^']*'|[^\s,;}\]]+)/gi,
    `$1${LEFT_OUT}`,
  ],
  // kubeadm's bootstrap tokens.
  [/\b[a-z0-9]{6}\.[a-z0-9]{16}\b/g, LEFT_OUT],
  [/\b[0-9a-f]{32,}\b/gi, LEFT_OUT],
];

/** Small and capital letters and digits in one word: no word of a log, but what keys and tokens look like. */
const RANDOM = /[A-Za-z0-9_+=~-]{12,}/g;

const MODE = text(new RegExp(`^(?:${PROXY_MODES.join("|")})?$`));

/** Metrics of proxies and of their process. */
const OF_PROXY = /^(?:# (?:HELP|TYPE) )?(?:fairlead|kubeproxy|kubernetes|rest_client|process|nodejs|go)_/;

/** An agent's pages, by their paths, as far as they are kept. */
const PAGES: Readonly<Record<string, (page: string) => string | undefined>> = {
  "/proxyMode": (page) => (MODE(page.trim()) === undefined ? undefined : page.trim()),
  "/configz": jsonPage(
    fields({
      "": [
        ["kubeproxy.config.k8s.io", configuration("KubeProxyConfiguration")],
        ["fairlead.dev", configuration("FairleadConfiguration")],
      ],
      commandLine: ["userspace-only"],
    }),
  ),
  "/ownership": jsonPage(fields(OWNERSHIP)),
  "/metrics": (page) =>
    `${page
      .split("\n")
      .filter((line) => OF_PROXY.test(line))
      .map(withoutSecrets)
      .join("\n")}\n`,
  "/livez": withoutSecrets,
};

export const PAGE_PATHS = Object.keys(PAGES);

/** @returns undefined: nothing of it is kept */
export function keptPage(path: string, page: string): string | undefined {
  return PAGES[path]?.(page);
}

/**
 * Free text that others may have written into, such as a log: what looks like a secret is left out. What secrets look
 * like is a guess, so that free text is only taken where it is worth it.
 */
export function withoutSecrets(text: string): string {
  const known = PATTERNS.reduce((left, [pattern, by]) => left.replace(pattern, by), text);
  return known.replace(RANDOM, (word) => (looksRandom(word) ? LEFT_OUT : word));
}

/** Texts of rules that any program chooses: of iptables' options, which escapes quotes within. */
const CHOSEN = /(--(?:comment|log-prefix|nflog-prefix|string|hex-string)) (?:"((?:[^"\\]|\\.)*)"|([^\s"]+))/g;

function shareableListing({ save, problem, ...listing }: RuleListing): RuleListing {
  return {
    ...listing,
    ...(save !== undefined && { save: shareableRules(save) }),
    ...(problem !== undefined && { problem: withoutSecrets(problem.slice(0, 500)) }),
  };
}

/** Comments of a proxy name services, addresses and chains; those of other programs may say anything. */
function shareableRules(save: string): string {
  return save.replace(CHOSEN, (whole, option: string, _quoted, _plain, at: number) => {
    return isOfProxy(lineAt(save, at)) ? whole : `${option} "${LEFT_OUT}"`;
  });
}

/** Whether a rule is in a proxy's chain, or leads to one. */
function isOfProxy(line: string): boolean {
  return line.startsWith("-A KUBE-") || / -j KUBE-[A-Z0-9-]+$/.test(line);
}

function lineAt(text: string, at: number): string {
  const end = text.indexOf("\n", at);
  return text.slice(text.lastIndexOf("\n", at) + 1, end === -1 ? undefined : end);
}

/** kube-proxy's table of nftables, and those of Fairlead: a second proxy's, that of `replyVia`. */
const OWN_TABLE = /^(?:kube-proxy|fairlead[-_][\w-]+)$/;

/** `userData` is what libnftnl wrote of a set, its comment too. */
function shareableTable({ chains, sets, ...table }: NftTable): NftTable {
  const own = OWN_TABLE.test(table.name);
  const comment = own ? <T>(one: T): T => one : withoutComment;
  const rule = own ? <T>(one: T): T => one : shareableRule;
  return {
    ...comment(table),
    chains: new Map(Array.from(chains, ([name, chain]) => [name, { ...comment(chain), rules: chain.rules.map(rule) }])),
    sets: new Map(
      Array.from(sets, ([name, { userData: _theirs, ...set }]) => {
        const elements = Array.from(set.elements, ([key, element]) => [key, comment(element)] as const);
        return [name, { ...comment(set), elements: new Map(elements) }];
      }),
    ),
  };
}

/** The prefix of a log: of a step that is not known what may say anything. */
const PREFIX = /(prefix )"(?:[^"\\]|\\.)*"/g;

function shareableRule({ expressions, ...rule }: NftRule): NftRule {
  return {
    ...withoutComment(rule),
    expressions: expressions.map((one) =>
      one.kind === "unknown" ? { ...one, text: one.text.replace(PREFIX, `$1"${LEFT_OUT}"`) } : one,
    ),
  };
}

function withoutComment<T extends { readonly comment?: string }>(one: T): T {
  return one.comment === undefined ? one : { ...one, comment: LEFT_OUT };
}

function jsonPage(keep: Keep): (page: string) => string | undefined {
  return (page) => {
    const parsed = parseJSON(page);
    return parsed === undefined ? undefined : JSON.stringify(keep(parsed));
  };
}

function looksRandom(word: string): boolean {
  return word.split(/[-_]/).some((part) => part.length >= 8 && isMixed(part)) || (word.length >= 20 && isMixed(word));
}

function isMixed(part: string): boolean {
  return /[a-z]/.test(part) && /[A-Z]/.test(part) && /\d/.test(part);
}

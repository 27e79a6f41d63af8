import { type ConfigurationKind, shareableConfiguration } from "@fairlead/config";
import { withoutSecrets } from "./free-text.ts";
import { cidr, fields, jsonText, type Keep, listOf, name, number, oneOf, text, time } from "./keep.ts";

const MODE = oneOf("", "iptables", "ipvs", "nftables", "userspace");
const NAMED = /^[a-z0-9][a-z0-9./-]{0,252}$/;

/** What the schema of a configuration lets leave its node. */
export function configuration(kind: ConfigurationKind): Keep {
  return (value) => shareableConfiguration(kind, value, withoutSecrets);
}

const WHY = text(/^[^"]{0,500}$/);
const OWNERSHIP = fields({
  services: listOf(
    fields({
      service: text(NAMED),
      ipFamily: oneOf("IPv4", "IPv6"),
      ownership: oneOf("ours", "foreign", "mixed"),
      why: (value) => WHY(typeof value === "string" ? withoutSecrets(value.replaceAll(/"[^"]*"/g, "…")) : value),
      decidingCIDRs: listOf(cidr),
      ownEndpoints: number,
      excludedEndpoints: number,
      frontends: name,
    }),
  ),
  networks: fields({
    sources: listOf(fields({ source: name, side: name, state: name })),
    cidrs: listOf(
      fields({
        cidr,
        side: name,
        source: name,
        stage: name,
        since: time,
        objects: listOf(text(/^[A-Za-z0-9./-]{1,300}$/)),
      }),
    ),
    conflicts: listOf(fields({ cidr, with: cidr })),
    heldBack: number,
  }),
});

/** Metrics of proxies and of their process. */
const OF_PROXY = /^(?:# (?:HELP|TYPE) )?(?:fairlead|kubeproxy|kubernetes|rest_client|process|nodejs|go)_/;

/** An agent's pages, by their paths, as far as they are kept. */
const PAGES: Readonly<Record<string, (page: string) => string | undefined>> = {
  "/proxyMode": (page) => (MODE(page.trim()) === undefined ? undefined : page.trim()),
  "/configz": jsonPage(
    fields({
      "kubeproxy.config.k8s.io": configuration("KubeProxyConfiguration"),
      "fairlead.dev": configuration("FairleadConfiguration"),
      commandLine: fields({ "userspace-only": oneOf("true", "false") }),
    }),
  ),
  "/ownership": jsonPage(OWNERSHIP),
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

function jsonPage(keep: ReturnType<typeof fields>) {
  const kept = jsonText(keep);
  return (page: string): string | undefined => {
    const found = kept(page);
    return typeof found === "string" ? found : undefined;
  };
}

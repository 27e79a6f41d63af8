import { familyOf } from "@fairlead/base";
import type { Match, Rule, Target } from "@fairlead/netfilter";
import type { FakeKernel } from "./kernel.ts";
import type { Refusal } from "./refusal.ts";

/** What the tool itself finds wrong with a rule, before any table is looked at. */
export function checkRule(kernel: FakeKernel, chain: string, rule: Rule): Refusal | undefined {
  return (
    checkInterfaces(chain, rule) ??
    checkFamily(kernel, rule) ??
    first(rule.matches, (match) => checkMatch(kernel, rule, match)) ??
    (rule.target && checkTarget(kernel, rule, rule.target))
  );
}

function checkInterfaces(chain: string, rule: Rule): Refusal | undefined {
  if (rule.outInterface !== undefined && (chain === "PREROUTING" || chain === "INPUT"))
    return usage(`Can't use -o with ${chain}\n`);
  if (rule.inInterface !== undefined && (chain === "POSTROUTING" || chain === "OUTPUT"))
    return usage(`Can't use -i with ${chain}\n`);
  return undefined;
}

function checkFamily({ family }: FakeKernel, rule: Rule): Refusal | undefined {
  return first([rule.source, rule.destination], (address) => {
    const [host = "", length = ""] = address?.cidr.split("/") ?? [];
    if (host === "" || familyOf(host) === family) return undefined;
    return usage(family === "IPv6" ? `host/network \`${host}' not found` : `invalid mask \`${length}' specified`);
  });
}

function checkMatch(kernel: FakeKernel, rule: Rule, match: Match): Refusal | undefined {
  if (match.kind === "set" && !kernel.sets.has(match.name)) return usage(`Set ${match.name} doesn't exist.\n`);
  if (match.kind === "unknown" && !kernel.knows(match.module)) {
    return usage(`Couldn't load match \`${match.module}':No such file or directory\n`);
  }
  if (match.kind !== "tcp" && match.kind !== "udp" && match.kind !== "sctp") return undefined;
  if (rule.protocol?.value === match.kind && rule.protocol.negated !== true) return undefined;
  if (kernel.variant === "nft" && match.kind !== "sctp") {
    return usage(`${match.kind.toUpperCase()} match requires '-p ${match.kind}'`);
  }
  return undefined;
}

function checkTarget({ family }: FakeKernel, rule: Rule, target: Target): Refusal | undefined {
  if (
    target.kind === "reject" &&
    target.with.startsWith("icmp6") !== (family === "IPv6") &&
    target.with !== "tcp-reset"
  ) {
    return usage(`unknown reject type "${target.with}"`);
  }
  if (target.kind !== "dnat") return undefined;
  if (target.to.startsWith("[") && family === "IPv4") return usage("Invalid address format");
  const [, host = "", port] = /^([^[:]+)(:\d+)?$/.exec(target.to) ?? [];
  if (host.includes(".") && family === "IPv6") return usage(`Bad IP address "${host}"`);
  const hasPort = port !== undefined || target.to.includes("]:");
  const carriesPorts = ["tcp", "udp", "sctp", "dccp"].includes(rule.protocol?.value ?? "");
  return hasPort && !carriesPorts ? usage("Need TCP, UDP, SCTP or DCCP with port specification") : undefined;
}

function usage(words: string): Refusal {
  return { form: "usage", words };
}

function first<T>(items: Iterable<T>, check: (item: T) => Refusal | undefined): Refusal | undefined {
  for (const item of items) {
    const refusal = check(item);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

import type { NodeState, RuleListing } from "@fairlead/inspect";
import type { NftTable } from "@fairlead/netfilter/nft";
import { LEFT_OUT, withoutSecrets } from "./free-text.ts";

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

/** Texts of rules that anybody chooses: of iptables' options, which escapes quotes within. */
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
  const comment = OWN_TABLE.test(table.name) ? <T>(one: T): T => one : withoutComment;
  return {
    ...comment(table),
    chains: new Map(
      Array.from(chains, ([name, chain]) => [name, { ...comment(chain), rules: chain.rules.map(comment) }]),
    ),
    sets: new Map(
      Array.from(sets, ([name, { userData: _theirs, ...set }]) => {
        const elements = Array.from(set.elements, ([key, element]) => [key, comment(element)] as const);
        return [name, { ...comment(set), elements: new Map(elements) }];
      }),
    ),
  };
}

function withoutComment<T extends { readonly comment?: string }>(one: T): T {
  return one.comment === undefined ? one : { ...one, comment: LEFT_OUT };
}

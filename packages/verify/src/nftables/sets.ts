import { type NftSet, type NftTable, type SetElement, valueText } from "@fairlead/netfilter/nft";
import type { Finding } from "../finding.ts";
import { isOfClass, verdictMeaning } from "./classes.ts";
import { isKubeProxyTable, kubeProxyChain } from "./kube-proxy.ts";
import type { OwnerOf } from "./owners.ts";

/** How sets and their elements differ; what packets put into them is theirs, and pools are not looked at. */
export function compareSets(expected: NftTable, actual: NftTable, ownerOf: OwnerOf): readonly Finding[] {
  const names = new Set([...expected.sets.keys(), ...actual.sets.keys()]);
  const kubeProxys = isKubeProxyTable(actual);
  return [...names].flatMap((name) => {
    const [wanted, found] = [expected.sets.get(name), actual.sets.get(name)];
    // Anonymous sets are compared as parts of the rules that they stand in.
    if (isOfClass(name) || [wanted, found].some((set) => set?.flags.includes("anonymous"))) return [];
    if (wanted === undefined) return found === undefined ? [] : compareElements(emptied(found), found, ownerOf);
    if (found === undefined) {
      return kubeProxys ? [] : [{ kind: "missing" as const, where: nameOf(wanted), what: "the set" }];
    }
    const [type, foundType] = [typeText(wanted), typeText(found)];
    if (type !== foundType) {
      return [{ kind: "different" as const, where: nameOf(wanted), what: `${foundType}, expected ${type}` }];
    }
    return compareElements(wanted, found, ownerOf);
  });
}

function emptied(set: NftSet): NftSet {
  return { ...set, elements: new Map() };
}

function compareElements(wanted: NftSet, found: NftSet, ownerOf: OwnerOf): readonly Finding[] {
  if (found.flags.includes("dynamic")) return [];
  const finding = (kind: Finding["kind"], { key }: SetElement, what: string): Finding => {
    const service = ownerOf(key);
    return { kind, where: nameOf(wanted), what, ...(service !== undefined && { service }) };
  };
  const missing = [...wanted.elements].flatMap(([id, element]) => {
    const there = found.elements.get(id);
    const [text, foundText] = [elementText(wanted, element), there && elementText(found, there)];
    if (foundText === undefined) return [finding("missing", element, text)];
    const isSame = text === foundText || (there !== undefined && kubeProxyChain(there) !== undefined);
    return isSame ? [] : [finding("different", element, `${foundText}, expected ${text}`)];
  });
  const extra = [...found.elements].filter(([id]) => !wanted.elements.has(id));
  return [...missing, ...extra.map(([, element]) => finding("extra", element, elementText(found, element)))];
}

function nameOf({ name, data }: NftSet): string {
  return `${data === undefined ? "set" : "map"} ${name}`;
}

function typeText({ key, data, flags, timeout }: NftSet): string {
  const value = data === undefined ? "" : ` : ${data === "verdict" ? data : data.join(" . ")}`;
  const more = [...flags].sort().join(",") + (timeout === undefined ? "" : ` timeout ${timeout}ms`);
  return `type ${key.join(" . ")}${value} ${more}`.trimEnd();
}

function elementText({ key: types, data }: NftSet, { key, value, intervalEnd }: SetElement): string {
  const text = intervalEnd ? `before ${valueText(types, key)}` : valueText(types, key);
  if (value === undefined || data === undefined) return text;
  if (typeof value === "object") return `${text} : ${verdictMeaning(value)}`;
  return data === "verdict" ? text : `${text} : ${valueText(data, value)}`;
}

import { type NftSet, type NftTable, type SetElement, valueText } from "@fairlead/netfilter/nft";
import type { Finding } from "../rules/rules.ts";
import { isOfClass, verdictMeaning } from "./classes.ts";
import { kubeProxyChain } from "./kube-proxy.ts";
import type { OwnerOf } from "./owners.ts";

/**
 * How sets and their elements differ; what packets put into them is theirs, and pools are not looked at. A step is an
 * element.
 *
 * @param kubeProxys as `isKubeProxyTable` has it of the actual one
 */
export function* compareSets(
  expected: NftTable,
  actual: NftTable,
  ownerOf: OwnerOf,
  kubeProxys: boolean,
): Generator<void, readonly Finding[], void> {
  const findings: (readonly Finding[])[] = [];
  for (const name of new Set([...expected.sets.keys(), ...actual.sets.keys()])) {
    const [wanted, found] = [expected.sets.get(name), actual.sets.get(name)];
    // Anonymous sets are compared as parts of the rules that they stand in.
    if (isOfClass(name) || [wanted, found].some((set) => set?.flags.includes("anonymous"))) continue;
    if (wanted !== undefined && found !== undefined) findings.push(yield* compareSet(wanted, found, ownerOf));
    else if (found !== undefined) findings.push(yield* compareElements(emptied(found), found, ownerOf));
    else if (wanted !== undefined && !kubeProxys) {
      findings.push([{ kind: "missing", where: nameOf(wanted), what: "the set" }]);
    }
  }
  return findings.flat();
}

function* compareSet(wanted: NftSet, found: NftSet, ownerOf: OwnerOf): Generator<void, readonly Finding[], void> {
  const [type, foundType] = [typeText(wanted), typeText(found)];
  if (type === foundType) return yield* compareElements(wanted, found, ownerOf);
  return [{ kind: "different", where: nameOf(wanted), what: `${foundType}, expected ${type}` }];
}

function emptied(set: NftSet): NftSet {
  return { ...set, elements: new Map() };
}

function* compareElements(wanted: NftSet, found: NftSet, ownerOf: OwnerOf): Generator<void, readonly Finding[], void> {
  if (found.flags.includes("dynamic")) return [];
  const finding = (kind: Finding["kind"], { key }: SetElement, what: string): Finding => {
    const service = ownerOf(key);
    return { kind, where: nameOf(wanted), what, ...(service !== undefined && { service }) };
  };
  const findings: Finding[] = [];
  for (const [id, element] of wanted.elements) {
    yield;
    const there = found.elements.get(id);
    const text = elementText(wanted, element);
    if (there === undefined) findings.push(finding("missing", element, text));
    else {
      const foundText = elementText(found, there);
      const isSame = text === foundText || kubeProxyChain(there) !== undefined;
      if (!isSame) findings.push(finding("different", element, `${foundText}, expected ${text}`));
    }
  }
  for (const [id, element] of found.elements) {
    yield;
    if (!wanted.elements.has(id)) findings.push(finding("extra", element, elementText(found, element)));
  }
  return findings;
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

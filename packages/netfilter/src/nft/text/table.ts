import { durationText } from "../expressions/duration.ts";
import type { BaseChain, NftChain, NftFlowtable, NftSet, NftTable } from "../model.ts";
import type { DATA_TYPES } from "../types.ts";
import { ruleText } from "./printer.ts";
import { quoted } from "./quote.ts";
import { elementTexts } from "./set.ts";

/**
 * A table as `nft list table` prints it, which `nft -f` takes where the table is not there: sets first, then chains,
 * each in its order. Elements stand one in a line.
 */
export function tableText(table: NftTable): string {
  return `${[...tableLines(table)].join("\n")}\n`;
}

/** The same by lines, for tables of a hundred thousand elements. */
export function* tableLines(table: NftTable): Generator<string, void, void> {
  yield `table ${table.family} ${table.name} {`;
  if (table.comment !== undefined) yield `\tcomment ${quoted(table.comment)}`;
  for (const set of table.sets.values()) {
    if (set.flags.includes("anonymous")) continue;
    yield* setLines(set);
    yield "";
  }
  for (const flowtable of table.flowtables?.values() ?? []) {
    yield* flowtableLines(flowtable);
    yield "";
  }
  let first = true;
  for (const chain of table.chains.values()) {
    if (!first) yield "";
    first = false;
    yield* chainLines(chain, table);
  }
  yield "}";
}

function* setLines(set: NftSet): Generator<string, void, void> {
  yield `\t${set.data === undefined && set.objects === undefined ? "set" : "map"} ${set.name} {`;
  yield `\t\t${typeText(set)}`;
  if (set.size !== undefined) yield `\t\tsize ${set.size}`;
  const flags = set.flags.filter((flag) => flag !== "anonymous");
  if (flags.length > 0) yield `\t\tflags ${flags.join(",")}`;
  if (set.timeout !== undefined) yield `\t\ttimeout ${durationText(set.timeout)}`;
  if (set.comment !== undefined) yield `\t\tcomment ${quoted(set.comment)}`;
  const elements = elementTexts(set);
  for (const [at, element] of elements.entries()) {
    const begin = at === 0 ? "\t\telements = { " : "\t\t\t     ";
    yield `${begin}${element}${at + 1 === elements.length ? " }" : ","}`;
  }
  yield "\t}";
}

function* flowtableLines({ name, priority, devices, counter }: NftFlowtable): Generator<string, void, void> {
  yield `\tflowtable ${name} {`;
  yield `\t\thook ingress priority ${priorityText(priority, "ingress")}`;
  // Names that nft would not take as they are stand in quotation marks, as it prints them.
  if (devices.length > 0) yield `\t\tdevices = { ${devices.map(deviceText).join(", ")} }`;
  if (counter) yield "\t\tcounter";
  yield "\t}";
}

function deviceText(name: string): string {
  return /^[a-zA-Z][\w/\\.-]*$/.test(name) ? name : quoted(name);
}

/** What numgen gives has no type of a name: the key is written by an expression that has it. */
function typeText({ key, data, objects }: NftSet): string {
  if (objects !== undefined) return `type ${key.join(" . ")} : ${objects}`;
  const value = data === undefined ? "" : ` : ${data === "verdict" ? "verdict" : data.join(" . ")}`;
  return key.includes("integer")
    ? `typeof ${key.map((type) => TYPEOF[type]).join(" . ")}${typeofValue(key, data)}`
    : `type ${key.join(" . ")}${value}`;
}

/**
 * A rule that translates to a `tcp dport` is for TCP only to `nft -f`. It takes `th dport` where the rule looks up a
 * port of the packet; elsewhere the rule has to ask for the protocol itself. (What nft keeps with the agent's maps is
 * `tcp dport` all the same: 1.0.6 refuses rules for tables with the other.)
 */
function typeofValue(key: NftSet["key"], data: NftSet["data"]): string {
  if (data === undefined) return "";
  const port = key.includes("inet_service") ? { inet_service: "th dport" } : {};
  const names = { ...TYPEOF, ...port };
  return ` : ${data === "verdict" ? "verdict" : data.map((type) => names[type]).join(" . ")}`;
}

const TYPEOF: Readonly<Record<keyof typeof DATA_TYPES, string>> = {
  ipv4_addr: "ip daddr",
  ipv6_addr: "ip6 daddr",
  inet_proto: "meta l4proto",
  inet_service: "tcp dport",
  tcp_flag: "tcp flags",
  mark: "meta mark",
  integer: "numgen random mod 65536",
  ct_state: "ct state",
  ifname: "iifname",
};

function* chainLines({ name, base, comment, rules }: NftChain, table: NftTable): Generator<string, void, void> {
  yield `\tchain ${name} {`;
  if (comment !== undefined) yield `\t\tcomment ${quoted(comment)}`;
  if (base !== undefined) yield `\t\t${baseText(base)}`;
  for (const rule of rules) yield `\t\t${ruleText(rule, table)}`;
  yield "\t}";
}

function baseText({ type, hook, priority, policy }: BaseChain): string {
  return `type ${type} hook ${hook} priority ${priorityText(priority, hook)}; policy ${policy};`;
}

/** nft names priorities of the IP families near to where they have a name at that hook (std_prios). */
export const NAMED_PRIORITIES: readonly (readonly [
  name: string,
  priority: number,
  hooks: readonly BaseChain["hook"][] | undefined,
])[] = [
  ["raw", -300, undefined],
  ["mangle", -150, undefined],
  ["dstnat", -100, ["prerouting"]],
  ["filter", 0, undefined],
  ["security", 50, undefined],
  ["srcnat", 100, ["postrouting"]],
];

/** How far from a named priority nft still tells one by it. */
const NEAR = 10;

function priorityText(priority: number, hook: BaseChain["hook"] | "ingress"): string {
  const near = NAMED_PRIORITIES.find(
    ([, value, hooks]) =>
      Math.abs(priority - value) <= NEAR && (hooks === undefined || (hook !== "ingress" && hooks.includes(hook))),
  );
  if (near === undefined) return String(priority);
  const [name, value] = near;
  if (priority === value) return name;
  return priority < value ? `${name} - ${value - priority}` : `${name} + ${priority - value}`;
}

/** What each expression of nftables does with a packet: one row for each kind, named and ordered as in netfilter. */

import { bytesText } from "@fairlead/base";
import {
  ADDRESS_TYPES,
  addressHex,
  bytesOf,
  CT_DIRECTIONS,
  CT_STATES,
  CT_STATUSES,
  type Expression,
  type Hex,
  hexOf,
  hostHex,
  hostNumber,
  lengthOf,
  type NamedObject,
  type NftSet,
  PROTOCOLS,
  portHex,
  type Verdict,
} from "@fairlead/netfilter/nft";
import type { Remembered } from "../environment.ts";
import type { Host } from "../host.ts";
import type { Hook } from "../packet.ts";
import { outInterface, UNREACHABLE } from "../route.ts";
import { masqueradeWalk, translate } from "../targets.ts";
import { isDNATed, type PacketEnd, type Walk } from "../walk.ts";
import { jhash } from "./jhash.ts";
import { BREAK, isKnown, mayBe, type NftRuleContext, type Result, rememberedBy } from "./rule-context.ts";

type ExpressionOf<Kind extends Expression["kind"]> = Extract<Expression, { readonly kind: Kind }>;

/** What an expression of one kind does: loads registers, changes the walk, ends the rule or gives a verdict. */
type Evaluate<Kind extends Expression["kind"]> = (expression: ExpressionOf<Kind>, place: NftRuleContext) => Result;

/** @throws TraceError where the kernel would not load a translation */
function demandNat(place: NftRuleContext, name: string, hooks: readonly Hook[]): void {
  if (place.walk.stage?.isNat !== true) throw place.undecidable(`${name} is valid in chains of type nat only`);
  demandHook(place, name, hooks);
}

/** @throws TraceError where the kernel would not load the expression */
function demandHook(place: NftRuleContext, name: string, hooks: readonly Hook[]): void {
  if (hooks.includes(place.walk.hook)) return;
  throw place.undecidable(`${name} is valid at ${hooks.join(", ")} only`);
}

function followed(verdict: Verdict): Result {
  switch (verdict.kind) {
    case "jump":
    case "goto":
      return { kind: "call", chain: verdict.chain, goto: verdict.kind === "goto" };
    case "continue":
      return undefined;
    default:
      return { kind: verdict.kind };
  }
}

const ADDRESSES = { IPv4: { source: 12, destination: 16 }, IPv6: { source: 8, destination: 24 } } as const;

/** Addresses and ports are known of a packet, of the first of a connection TCP's flags, and nothing else. */
const payload: Evaluate<"payload"> = ({ base, offset, length, to }, { walk, registers }) => {
  const header = base === "network" ? networkHeader(walk) : transportHeader(walk);
  const bytes = header.slice(2 * offset, 2 * (offset + length)).padEnd(2 * length, "?");
  registers.load(to, bytes);
  if (bytes.includes("?"))
    registers.reason = `bytes ${offset} to ${offset + length - 1} of its ${base} header are not known`;
  return undefined;
};

function networkHeader({ family, source, destination }: Walk): string {
  const { source: at } = ADDRESSES[family];
  return `${"?".repeat(2 * at)}${addressHex(source.address)}${addressHex(destination.address)}`;
}

/** Sequence numbers and the header's length are between the ports and the flags. */
function transportHeader({ source, destination, protocol, state }: Walk): string {
  const ports = portDigits(source) + portDigits(destination);
  return protocol === "tcp" && state === "NEW" ? ports + "?".repeat(18) + SYN : ports;
}

const SYN = "02";

function portDigits({ port }: PacketEnd): string {
  return port === undefined ? "????" : portHex(port);
}

const NAME_BYTES = 16;

const meta: Evaluate<"meta"> = (expression, place) => {
  const { walk, host, registers } = place;
  if ("from" in expression) {
    if (expression.key === "nftrace") return undefined;
    const mark = registers.read(expression.from, 4);
    if (!isKnown(mark)) throw place.undecidable(registers.reason);
    walk.mark = hostNumber(mark);
    return undefined;
  }
  const { key, to } = expression;
  switch (key) {
    case "mark":
      registers.load(to, hostHex(walk.mark));
      return undefined;
    case "random":
      return randomKey(to, place);
    case "l4proto":
      registers.load(to, protocolHex(walk.protocol) ?? "??");
      registers.reason = `the number of the protocol ${walk.protocol} is not known`;
      return undefined;
    case "iifname":
      registers.load(to, nameHex(walk.inInterface));
      return undefined;
    case "oifname": {
      const name = outInterface(walk, host);
      if (name !== undefined) registers.load(to, nameHex(name));
      else registers.loadUnknown(to, NAME_BYTES, "the outgoing interface is not known");
      return undefined;
    }
  }
};

/** The values that the set distinguishes in which the rule looks the number up. */
function randomKey(to: number, { rule, sets, registers }: NftRuleContext): Result {
  const lookup = rule.expressions.find((one) => one.kind === "lookup" && one.from === to);
  const set = lookup?.kind === "lookup" ? sets.get(lookup.set) : undefined;
  if (set?.flags.includes("interval") && set.key[0] === "random") return { kind: "choice", among: sets.parts(set), to };
  registers.loadUnknown(to, BYTES.mark, "a random number is not known");
  return undefined;
}

function protocolHex(name: string): string | undefined {
  const number = PROTOCOLS[name] ?? Number(name);
  return Number.isInteger(number) ? hexOf([number]) : undefined;
}

/** Where there is no interface the name is empty. */
function nameHex(name: string): string {
  return hexOf(new TextEncoder().encode(name)).padEnd(2 * NAME_BYTES, "0");
}

/** No register holds more bytes. */
const LONGEST = 16;
const BYTES = { direction: 1, mark: 4 } as const;

const ct: Evaluate<"ct"> = (expression, { walk, registers }) => {
  // The tracer does not follow a statement that sets a mark: for later rules the mark is unknown.
  if ("from" in expression) return undefined;
  const { key, direction, to } = expression;
  const state = connectionState(walk);
  if (direction !== undefined) {
    if (state === "INVALID" || state === "UNTRACKED") return BREAK;
    registers.loadUnknown(to, LONGEST, `the tracer does not know "ct ${direction} ${key}" of the connection`);
    return undefined;
  }
  if (key === "state") {
    registers.loadNumber(to, CT_STATES[state.toLowerCase()] ?? 0);
    return undefined;
  }
  // Without an entry there is no status (nft_ct_get_eval).
  if (state === "INVALID" || state === "UNTRACKED") return BREAK;
  if (key === "status") registers.loadNumber(to, statusOf(walk));
  else if (key === "direction" && state === "NEW") registers.load(to, ORIGINAL);
  else if (key === "direction" || key === "mark") {
    registers.loadUnknown(to, BYTES[key], `the connection's ${key} is not known`);
  }
  return undefined;
};

/** The first packet comes from the one that begins the connection. */
const ORIGINAL = hexOf([CT_DIRECTIONS.original]);

/** Before connection tracking a packet has no entry, but for one that the host sent to itself. */
function connectionState({ state, stage, looped }: Walk): Walk["state"] {
  return stage?.tracked === false && !looped ? "INVALID" : state;
}

/** Whether it is assured depends on all packets of the connection: taken as not. */
function statusOf(walk: Walk): number {
  const known = walk.state !== "NEW" || walk.looped;
  const bits = [
    ...(known ? ["confirmed"] : []),
    ...(walk.state === "ESTABLISHED" ? ["seen-reply"] : []),
    ...(walk.state === "RELATED" ? ["expected"] : []),
    ...(walk.masqueraded ? ["snat"] : []),
    ...(isDNATed(walk) ? ["dnat"] : []),
  ];
  return bits.reduce((sum, name) => sum | (CT_STATUSES[name] ?? 0), 0);
}

/** As far as the kernel's answer follows from addresses and not from routes. */
const fib: Evaluate<"fib"> = ({ of, to }, { walk, host, registers }) => {
  registers.loadNumber(to, ADDRESS_TYPES[typeOf(of === "saddr" ? walk.source : walk.destination, host)] ?? 0);
  return undefined;
};

function typeOf({ words }: PacketEnd, host: Host): string {
  if (host.isBroadcast(words)) return "broadcast";
  if (host.isMulticast(words)) return "multicast";
  return host.isLocal(words) ? "local" : "unicast";
}

const hash: Evaluate<"hash"> = ({ from, length, modulus, seed, to }, { registers }) => {
  const hashed = registers.read(from, length);
  if (!isKnown(hashed)) return { kind: "draw", modulus, to };
  registers.loadNumber(to, scaled(jhash(bytesOf(hashed), seed), modulus));
  return undefined;
};

/** 32 bits to a number from 0 to before `modulus` (reciprocal_scale). */
function scaled(value: number, modulus: number): number {
  return Number((BigInt(value) * BigInt(modulus)) >> 32n);
}

const numgen: Evaluate<"numgen"> = ({ modulus, to }) => ({ kind: "draw", modulus, to });

const cmp: Evaluate<"cmp"> = ({ operator, from, value }, { registers }) => {
  const held = registers.read(from, value.length / 2);
  if (isKnown(held)) return holds(operator, held, value) ? undefined : BREAK;
  const isEquality = operator === "==" || operator === "!=";
  if (!isEquality || mayBe(held, value)) return { kind: "open", problem: registers.reason };
  return operator === "!=" ? undefined : BREAK;
};

/** Bytes are compared from the first on (memcmp), as hexadecimal digits of one case are. */
function holds(operator: ExpressionOf<"cmp">["operator"], held: string, value: string): boolean {
  switch (operator) {
    case "==":
      return held === value;
    case "!=":
      return held !== value;
    case "<":
      return held < value;
    case "<=":
      return held <= value;
    case ">":
      return held > value;
    case ">=":
      return held >= value;
  }
}

const bitwise: Evaluate<"bitwise"> = ({ from, to, mask, xor }, { registers }) => {
  const value = registers.read(from, mask.length / 2);
  registers.load(to, [...value].map((digit, at) => maskedDigit(digit, mask[at] ?? "0", xor[at] ?? "0")).join(""));
  return undefined;
};

/** What is masked away is known whatever it was. */
function maskedDigit(digit: string, mask: string, xor: string): string {
  if (mask === "0") return xor;
  if (!isKnown(digit)) return digit;
  return ((Number.parseInt(digit, 16) & Number.parseInt(mask, 16)) ^ Number.parseInt(xor, 16)).toString(16);
}

const immediate: Evaluate<"immediate"> = (expression, { registers }) => {
  if ("verdict" in expression) return followed(expression.verdict);
  registers.load(expression.to, expression.value);
  return undefined;
};

const lookup: Evaluate<"lookup"> = (expression, place) => {
  const { walk, host, sets, registers } = place;
  const set = sets.get(expression.set);
  if (set === undefined) throw place.undecidable(`there is no set ${expression.set}`);
  const key = registers.read(expression.from, lengthOf(set.key));
  const found = sets.find(set, key, rememberedBy(walk.remembered, host.environment.remembered ?? []));
  if (found.kind === "open") return notKnown(expression, set, place, `${found.problem}: ${registers.reason}`);
  if ((found.kind === "absent") !== (expression.inverted === true)) return BREAK;
  return found.kind === "found" ? take(expression, found.value, place) : undefined;
};

function take({ to }: ExpressionOf<"lookup">, value: Hex | Verdict | undefined, place: NftRuleContext): Result {
  if (to === undefined || value === undefined) return undefined;
  if (typeof value !== "string") return followed(value);
  if (to !== "verdict") place.registers.load(to, value);
  return undefined;
}

/** A rule may still match for an unknown value; after an unknown verdict the path is unknown. */
function notKnown({ to }: ExpressionOf<"lookup">, { data }: NftSet, place: NftRuleContext, problem: string): Result {
  if (to === "verdict") throw place.undecidable(problem);
  if (to !== undefined && data !== undefined && data !== "verdict") {
    place.registers.loadUnknown(to, lengthOf(data), problem);
  }
  return { kind: "open", problem };
}

/** A map keeps the value that it has, and a set that is full ends the rule (nft_dynset_eval). */
const dynset: Evaluate<"dynset"> = (expression, place) => {
  const { walk, host, sets, registers } = place;
  const { set: name, operation, from } = expression;
  const set = sets.get(name);
  if (set === undefined) throw place.undecidable(`there is no set ${name}`);
  const key = registers.read(from, lengthOf(set.key));
  const value = mappedValue(expression, set, place);
  if (!isKnown(key) || (value !== undefined && !isKnown(value))) throw place.undecidable(registers.reason);
  const about = { table: sets.name, set: name, key };
  if (operation === "delete") {
    walk.remembered = { item: { ...about, deleted: true }, before: walk.remembered };
    return undefined;
  }
  const found = sets.find(set, key, rememberedBy(walk.remembered, host.environment.remembered ?? []));
  if (found.kind !== "found" && isFull(set)) return BREAK;
  const kept = found.kind === "found" ? found.value : value;
  const timeout = expression.timeout ?? set.timeout;
  const item: Remembered = {
    ...about,
    ...(kept !== undefined && { value: kept }),
    ...(timeout !== undefined && { timeout }),
  };
  walk.remembered = { item, before: walk.remembered };
  return undefined;
};

function mappedValue(
  { value }: ExpressionOf<"dynset">,
  { data }: NftSet,
  { registers }: NftRuleContext,
): string | undefined {
  return value === undefined || data === undefined || data === "verdict"
    ? undefined
    : registers.read(value, lengthOf(data));
}

/** What packets of the same trace have put there does not count. */
function isFull({ size, elements }: NftSet): boolean {
  return size !== undefined && elements.size >= size;
}

const objref: Evaluate<"objref"> = (expression, place) => {
  if ("object" in expression) return effectOf(expression.object, `"${expression.name}"`, place);
  const { walk, host, sets, registers } = place;
  const map = sets.get(expression.map);
  if (map?.objects === undefined) throw place.undecidable(`there is no map ${expression.map} of objects`);
  const key = registers.read(expression.from, lengthOf(map.key));
  const found = sets.find(map, key, rememberedBy(walk.remembered, host.environment.remembered ?? []));
  if (found.kind === "absent") return BREAK;
  const effect = effectOf(map.objects, `of map ${map.name}`, place);
  if (found.kind === "found" || effect === BREAK) return effect;
  return { kind: "open", problem: `${found.problem}: ${registers.reason}` };
};

/** What the kernel's nft_*_obj_eval does, as far as rules and routes are concerned. */
function effectOf(object: NamedObject, name: string, { walk, undecidable }: NftRuleContext): Result {
  switch (object) {
    case "counter":
    case "ct helper":
    case "ct timeout":
    case "secmark":
      return undefined;
    case "ct expectation":
      return connectionState(walk) === "NEW" && !walk.looped ? undefined : BREAK;
    case "limit":
    case "quota":
      return { kind: "open", problem: `the tracer cannot decide whether ${object} ${name} is used up` };
    case "synproxy":
      if (walk.protocol !== "tcp") return BREAK;
      throw undecidable(`synproxy ${name} answers for the server`);
  }
}

const ADDRESS_BYTES = { ip: 4, ip6: 16 } as const;

const nat: Evaluate<"nat"> = ({ family, address, port }, place) => {
  const { walk, registers } = place;
  demandNat(place, "dnat", ["PREROUTING", "OUTPUT"]);
  const to = registers.read(address, ADDRESS_BYTES[family]);
  const behind = port === undefined ? undefined : registers.read(port, 2);
  if (!isKnown(to + (behind ?? ""))) throw place.undecidable(registers.reason);
  const hasPort = behind !== undefined && walk.destination.port !== undefined;
  translate(walk, bytesText(bytesOf(to)), hasPort ? Number.parseInt(behind, 16) : undefined);
  return { kind: "accept" };
};

const masq: Evaluate<"masq"> = (_, place) => {
  demandNat(place, "masquerade", ["POSTROUTING"]);
  masqueradeWalk(place.walk, place.host);
  return { kind: "accept" };
};

const reject: Evaluate<"reject"> = ({ with: how }, place) => {
  demandHook(place, "reject", ["PREROUTING", "INPUT", "FORWARD", "OUTPUT"]);
  if (how === "port-unreachable") return { kind: "reject", with: UNREACHABLE[place.walk.family] };
  // There is no reset to what is not TCP; the packet is dropped all the same.
  return place.walk.protocol === "tcp" ? { kind: "reject", with: "tcp-reset" } : { kind: "drop" };
};

/**
 * As nft_flow_offload_eval. The packet itself goes on in either case; whether the rule does depends on what only the
 * kernel knows: whether the connection is in a flowtable already, has a helper, and finds a route both ways.
 */
const flowOffload: Evaluate<"flow-offload"> = ({ flowtable }, { walk }) => {
  const mayBe = connectionState(walk) === "ESTABLISHED" && (walk.protocol === "tcp" || walk.protocol === "udp");
  if (!mayBe) return BREAK;
  return {
    kind: "open",
    problem: `the tracer cannot decide whether flowtable ${flowtable} takes the connection, whose later packets then meet no rules`,
  };
};

/** Statements that let the packet on and change nothing that rules ask for, as nft lists them. */
const NEUTRAL = /^(?:log\b|meta (?:nftrace|priority|pkttype) set )/;

/**
 * Fields that a match begins with in nft's text; with `set` behind them it is a statement that changes the packet, with
 * `vmap` it gives a verdict.
 */
const FIELDS = [
  ...["ip", "ip6", "tcp", "udp", "udplite", "sctp", "dccp", "icmp", "icmpv6", "ah", "esp", "comp", "th", "ether"],
  ...["vlan", "arp", "meta", "ct", "fib", "rt", "socket", "osf", "ipsec", "exthdr", "iif", "oif", "iifname", "oifname"],
  ...[
    "iifgroup",
    "oifgroup",
    "iiftype",
    "oiftype",
    "mark",
    "skuid",
    "skgid",
    "limit",
    "quota",
    "numgen",
    "jhash",
    "symhash",
  ],
];

/** What only says yes or no. */
const TEST = new RegExp(`^(?:${FIELDS.join("|")}|@[nt]h,\\S+) (?!.*\\b(?:set|vmap)\\b)`);

/** What has no type may be a match, which can't be decided, or make no difference; otherwise its effect is unknown. */
const unknown: Evaluate<"unknown"> = ({ text, effect, to }, { registers, undecidable }) => {
  // An extension of iptables, of which nft lists the name only.
  const hint = /(?:^|\s)xt (?:match|target) /.test(text) ? ", which iptables-nft-save prints in full: trace that" : "";
  const problem = `the tracer does not know "${text}"${hint}`;
  if (to !== undefined) registers.loadUnknown(to, LONGEST, problem);
  if (effect === "none" || NEUTRAL.test(text)) return undefined;
  if (effect !== "test" && !TEST.test(text)) throw undecidable(problem);
  registers.reason = problem;
  return { kind: "open", problem };
};

const evaluators: { readonly [Kind in Expression["kind"]]: Evaluate<Kind> } = {
  bitwise,
  cmp,
  counter: () => undefined,
  ct,
  dynset,
  fib,
  "flow-offload": flowOffload,
  hash,
  immediate,
  lookup,
  masq,
  meta,
  nat,
  numgen,
  objref,
  payload,
  reject,
  unknown,
};

/** @throws TraceError for what can't be decided, or what the kernel would refuse at this place */
export function evaluateExpression(expression: Expression, place: NftRuleContext): Result {
  // The table has each kind by its own name, which the type system can't follow.
  return (evaluators[expression.kind] as Evaluate<Expression["kind"]>)(expression as never, place);
}

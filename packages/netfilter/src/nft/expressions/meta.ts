import { DATA_TYPES } from "../types.ts";
import type { ExpressionKind } from "./kind.ts";
import { type Register, registerNumber, registerOf } from "./registers.ts";

/** Loads what the kernel knows of the packet alongside its bytes, or sets the mark, or whether it is traced. */
export type Meta =
  | { readonly kind: "meta"; readonly key: MetaKey; readonly to: Register }
  | { readonly kind: "meta"; readonly key: keyof typeof SETTABLE; readonly from: Register };

/** enum nft_meta_keys, with nft's names. */
const KEYS = { mark: 3, iifname: 6, oifname: 7, l4proto: 16 } as const;
type MetaKey = keyof typeof KEYS;
const SETTABLE = { mark: 3, nftrace: 12 } as const;

const DATA = { to: 1, key: 2, from: 3 } as const;
const FACTS = {
  mark: { text: "meta mark", type: "mark", length: 4 },
  iifname: { text: "iifname", type: "ifname", length: 16 },
  oifname: { text: "oifname", type: "ifname", length: 16 },
  l4proto: { text: "meta l4proto", type: "inet_proto", length: 1 },
} as const;

export const meta: ExpressionKind<Meta> = {
  name: "meta",
  encode(expression, writer) {
    if ("from" in expression)
      writer.u32(DATA.key, SETTABLE[expression.key]).u32(DATA.from, registerNumber(expression.from));
    else writer.u32(DATA.key, KEYS[expression.key]).u32(DATA.to, registerNumber(expression.to));
  },
  decode(data) {
    const [number, to, from] = [data.u32(DATA.key), data.u32(DATA.to), data.u32(DATA.from)];
    const [key, set] = [keyIn(KEYS, number), keyIn(SETTABLE, number)];
    if (key !== undefined && to !== undefined) return { kind: "meta", key, to: registerOf(to) };
    return set === undefined || from === undefined ? undefined : { kind: "meta", key: set, from: registerOf(from) };
  },
  print(expression, printer) {
    if (expression.key === "nftrace") {
      printer.say(`meta nftrace set ${Number(printer.value(expression.from, 1).text)}`);
      return;
    }
    const { text, type, length } = FACTS[expression.key];
    if ("from" in expression) {
      const { constant, text: held } = printer.value(expression.from, length);
      printer.say(`${text} set ${constant === undefined ? held : DATA_TYPES[type].text(constant)}`);
    } else printer.load(expression.to, length, { text, type });
  },
};

/** The keys of a constant are its own. */
function keyIn<Key extends string>(keys: Readonly<Record<Key, number>>, number: number | undefined): Key | undefined {
  return (Object.keys(keys) as Key[]).find((name) => keys[name] === number);
}

/**
 * Value types of the configuration: how a field's value is written in a file and as a flag. Each error says what would
 * be right; the field's name is put before it. Texts of flags are checked for their form only: ranges and words are
 * checked once, by the schema, for flags and files alike.
 */
import * as z from "zod";
import { canonicalAddress, parseSocketAddress } from "../address.ts";
import { parseDuration } from "../duration.ts";

/** What a flag's text is turned into before the schema sees it, or what is wrong with the text. */
type FlagValue = { readonly value: unknown } | { readonly problem: string };

/** How pflag reads a flag. */
export interface FlagType {
  /** In --help, as pflag prints it. */
  readonly placeholder: string;
  /** A flag without a value has this one: `--masquerade-all`. */
  readonly bare?: string;
  /** @param texts the values in the order given, at least one */
  read(texts: readonly [string, ...string[]]): FlagValue;
}

/** How a field of a value type is written as a flag. */
const FLAG_TYPES = z.registry<{ readonly type: FlagType }>();

/** @throws Error where the value type has no form as a flag */
export function flagTypeOf(schema: z.ZodType): FlagType {
  const found = FLAG_TYPES.get(schema);
  if (found === undefined) throw new Error("a field with this value type needs a type for its flag");
  return found.type;
}

/** Types of flags, by pflag's names. Of a flag that is given twice the last one counts, except for lists and maps. */
export const flagTypes = {
  string: last("string", (text) => ({ value: text })),
  mode: last("ProxyMode", (text) => ({ value: text })),
  localMode: last("LocalMode", (text) => ({ value: text })),
  boolean: { ...last("", (text) => valueOr(booleanOf(text), "must be true or false")), bare: "true" },
  version: { ...last("version[=true]", (text) => ({ value: text })), bare: "true" },
  int32: last("int32", (text) =>
    valueOr(/^[-+]?\d{1,15}$/.test(text) ? Number(text) : undefined, "must be a whole number"),
  ),
  level: last("Level", (text) => {
    const isLevel = /^\d{1,10}$/.test(text) && Number(text) < 2 ** 31;
    return valueOr(isLevel ? Number(text) : undefined, "must be a whole number from 0 to 2147483647");
  }),
  /** Repeatable, comma separated, or both. */
  strings: { placeholder: "strings", read: (texts) => ({ value: entries(texts) }) },
  mapStringBool: { placeholder: "mapStringBool", read: (texts) => readPairs(entries(texts)) },
  vmodule: {
    placeholder: "pattern=N,...",
    read: (texts) => {
      const items = entries(texts).map((entry) => /^([^=,]+)=(\d+)$/.exec(entry));
      if (items.includes(null)) return { problem: "must be pattern=N, such as watch=5,apply=4" };
      return { value: items.map((item) => ({ filePattern: item?.[1], verbosity: Number(item?.[2]) })) };
    },
  },
} as const satisfies Readonly<Record<string, FlagType>>;

export const text = scalar(z.string({ error: "must be text" }), flagTypes.string);

export const flag = scalar(z.boolean({ error: "must be true or false" }), flagTypes.boolean);

export function wholeNumber(from = -(2 ** 31), to = 2 ** 31 - 1) {
  const error = `must be a whole number from ${from} to ${to}`;
  return scalar(z.int({ error }).min(from, { error }).max(to, { error }), flagTypes.int32);
}

export const decimal = scalar(
  z.number({ error: "must be a number, such as 5 or 0.5" }),
  last("float32", (value) => valueOr(decimalOf(value), "must be a number, such as 5 or 0.5")),
);

export function list(entriesOf: string) {
  return scalar(z.array(text, { error: `must be a list of ${entriesOf}` }).readonly(), flagTypes.strings);
}

export function oneOf<const Words extends readonly string[]>(words: Words, extra = "") {
  return scalar(z.enum(words, { error: `must be ${enumeration(words)}${extra}` }), flagTypes.string);
}

export function enumeration(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

const DURATION_FORM = "must be a duration with units, such as 30s, 1m30s or 1h0m0s";
export const durationFlag = last("duration", (value) =>
  checked(value, parseDuration(value) !== undefined, DURATION_FORM),
);

/** Text in, milliseconds out. */
export const duration = scalar(parsed(parseDuration, DURATION_FORM), durationFlag);

/** logging.flushFrequency: a duration, or (an old form) whole nanoseconds. */
export const durationOrNanoseconds = scalar(
  z.union([duration, wholeNumber(0, Number.MAX_SAFE_INTEGER).transform((ns) => ns / 1e6)], { error: DURATION_FORM }),
  durationFlag,
);

const ADDRESS_FORM = "must be an IP address, such as 10.0.0.1 or fd00::1";

export const address = scalar(
  parsed(canonicalAddress, ADDRESS_FORM),
  last("ip", (value) => checked(value, canonicalAddress(value) !== undefined, ADDRESS_FORM)),
);

export const ipPort = last("ipport", (value) =>
  checked(
    value,
    parseSocketAddress(value.replace(/:0$/, ":1"), 1) !== undefined,
    "must be an IP address and a port, such as 0.0.0.0:10256 or [::]:10256",
  ),
);

/** An address that a server listens on; without a port it has the default one. */
export function socketAddress(defaultPort: number) {
  const form = `must be an IP address and a port from 1 to 65535, such as 0.0.0.0:${defaultPort} or [::]:${defaultPort}`;
  return scalar(
    parsed((value) => parseSocketAddress(value, defaultPort), form),
    ipPort,
  );
}

const QUANTITY_FORM = "must be a number of bytes, such as 0, 512, 64K or 64Ki";

/** A resource.Quantity, kept as its text. */
export const quantity = scalar(
  z
    .union([text, z.number()], { error: QUANTITY_FORM })
    .transform(String)
    .refine((value) => /^\d+(\.\d+)?([KMGTPEk]i?|[eE]\d+)?$/.test(value), { error: QUANTITY_FORM }),
  last("quantity", (value) => checked(value, /^\d+(\.\d+)?([KMGTPEk]i?)?$/.test(value), QUANTITY_FORM)),
);

function scalar<Schema extends z.ZodType>(schema: Schema, type: FlagType): Schema {
  FLAG_TYPES.add(schema, { type });
  return schema;
}

/** Text in, what `parse` makes of it out. */
function parsed<Value>(parse: (text: string) => Value | undefined, form: string) {
  return z.string({ error: "must be text" }).transform((value, context): Value => {
    const found = parse(value);
    if (found !== undefined) return found;
    context.addIssue({ code: "custom", message: form });
    return z.NEVER;
  });
}

/** Empty text is the default, whatever the type. */
function last(placeholder: string, read: (text: string) => FlagValue): FlagType {
  return {
    placeholder,
    read: (texts) => {
      const given = texts.at(-1) ?? "";
      return given === "" ? { value: "" } : read(given);
    },
  };
}

function checked(value: string, good: boolean, problem: string): FlagValue {
  return good ? { value } : { problem };
}

function valueOr(value: unknown, problem: string): FlagValue {
  return value === undefined ? { problem } : { value };
}

/** strconv.ParseBool's words. */
function booleanOf(word: string): boolean | undefined {
  if (/^(1|t|T|true|TRUE|True)$/.test(word)) return true;
  return /^(0|f|F|false|FALSE|False)$/.test(word) ? false : undefined;
}

function decimalOf(value: string): number | undefined {
  const isDecimal = /^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?$/.test(value) && Number.isFinite(Number(value));
  return isDecimal ? Number(value) : undefined;
}

function entries(texts: readonly string[]): string[] {
  return texts
    .flatMap((one) => one.split(","))
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
}

function readPairs(pairs: readonly string[]): FlagValue {
  const read = pairs.map((pair) => {
    const [name = "", word] = pair.split("=", 2).map((part) => part.trim());
    return [name, word === undefined ? undefined : booleanOf(word)] as const;
  });
  if (read.some(([name, value]) => name === "" || value === undefined)) {
    return { problem: "must be name=true or name=false, several separated by commas" };
  }
  return { value: Object.fromEntries(read) };
}

import { canonicalAddress, parseSocketAddress } from "../address.ts";
import { parseDuration } from "../duration.ts";
import { ADDRESS_FORM, DURATION_FORM, QUANTITY_FORM } from "../schema/scalars.ts";
import type { FlagType, FlagValue } from "./definition.ts";

/**
 * Types of flag values, as pflag reads them. They check the form only; ranges and words are checked once, in the
 * schema, for flags and files alike. Of a flag that is given twice the last one counts, except for lists and maps.
 */

export const string = last("string", (text) => ({ value: text }));
export const mode = last("ProxyMode", (text) => ({ value: text }));
export const localMode = last("LocalMode", (text) => ({ value: text }));

/** strconv.ParseBool's words. */
const BOOLEANS: Readonly<Record<string, boolean>> = Object.assign(
  Object.fromEntries(["1", "t", "T", "true", "TRUE", "True"].map((word) => [word, true])),
  Object.fromEntries(["0", "f", "F", "false", "FALSE", "False"].map((word) => [word, false])),
);

function booleanOf(text: string): boolean | undefined {
  return Object.hasOwn(BOOLEANS, text) ? BOOLEANS[text] : undefined;
}

export const boolean: FlagType = {
  ...last("", (text) => valueOr(booleanOf(text), "must be true or false")),
  bare: "true",
};

export const int32 = last("int32", (text) => valueOr(integer(text), "must be a whole number"));
export const float32 = last("float32", (text) => valueOr(decimal(text), "must be a number, such as 5 or 0.5"));
export const level = last("Level", (text) => valueOr(natural(text), "must be a whole number from 0 to 2147483647"));
export const duration = last("duration", (text) => checked(text, parseDuration(text) !== undefined, DURATION_FORM));
export const ip = last("ip", (text) => checked(text, canonicalAddress(text) !== undefined, ADDRESS_FORM));
export const quantity = last("quantity", (text) =>
  checked(text, /^\d+(\.\d+)?([KMGTPEk]i?)?$/.test(text), QUANTITY_FORM),
);
export const version: FlagType = { ...last("version[=true]", (text) => ({ value: text })), bare: "true" };

export const ipPort = last("ipport", (text) =>
  checked(
    text,
    parseSocketAddress(text.replace(/:0$/, ":1"), 1) !== undefined,
    "must be an IP address and a port, such as 0.0.0.0:10256 or [::]:10256",
  ),
);

/** Repeatable, comma separated, or both. */
export const strings: FlagType = {
  placeholder: "strings",
  read: (texts) => ({ value: entries(texts) }),
};

export const mapStringBool: FlagType = {
  placeholder: "mapStringBool",
  read: (texts) => readPairs(entries(texts)),
};

export const vmodule: FlagType = {
  placeholder: "pattern=N,...",
  read: (texts) => {
    const items = entries(texts).map((entry) => /^([^=,]+)=(\d+)$/.exec(entry));
    if (items.includes(null)) return { problem: "must be pattern=N, such as watch=5,apply=4" };
    return { value: items.map((item) => ({ filePattern: item?.[1], verbosity: Number(item?.[2]) })) };
  },
};

/** Empty text is the default, whatever the type. */
function last(placeholder: string, read: (text: string) => FlagValue): FlagType {
  return {
    placeholder,
    read: (texts) => {
      const text = texts.at(-1) ?? "";
      return text === "" ? { value: "" } : read(text);
    },
  };
}

function checked(text: string, good: boolean, problem: string): FlagValue {
  return good ? { value: text } : { problem };
}

function valueOr(value: unknown, problem: string): FlagValue {
  return value === undefined ? { problem } : { value };
}

function integer(text: string): number | undefined {
  return /^[-+]?\d{1,15}$/.test(text) ? Number(text) : undefined;
}

function natural(text: string): number | undefined {
  return /^\d{1,10}$/.test(text) && Number(text) < 2 ** 31 ? Number(text) : undefined;
}

function decimal(text: string): number | undefined {
  return /^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?$/.test(text) && Number.isFinite(Number(text))
    ? Number(text)
    : undefined;
}

function entries(texts: readonly string[]): string[] {
  return texts
    .flatMap((text) => text.split(","))
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

import * as z from "zod";
import { canonicalAddress, parseSocketAddress } from "../address.ts";
import { parseDuration } from "../duration.ts";

/** Value types of the configuration files. Each says what would be right; the field's name is put before it. */

/** Fields that stay on their node: reports such as `fairlead sysdump` leave them out. */
export const PRIVATE = z.registry<{ readonly why: string }>();

export const text = z.string({ error: "must be text" });

export const flag = z.boolean({ error: "must be true or false" });

export function wholeNumber(from = -(2 ** 31), to = 2 ** 31 - 1) {
  const error = `must be a whole number from ${from} to ${to}`;
  return z.int({ error }).min(from, { error }).max(to, { error });
}

export const decimal = z.number({ error: "must be a number, such as 5 or 0.5" });

export const DURATION_FORM = "must be a duration with units, such as 30s, 1m30s or 1h0m0s";

/** Text in, milliseconds out. */
export const duration = text.transform((value, context) => {
  const ms = parseDuration(value);
  if (ms !== undefined) return ms;
  context.addIssue({ code: "custom", message: DURATION_FORM });
  return z.NEVER;
});

/** logging.flushFrequency: a duration, or (an old form) whole nanoseconds. */
export const durationOrNanoseconds = z.union(
  [duration, wholeNumber(0, Number.MAX_SAFE_INTEGER).transform((ns) => ns / 1e6)],
  {
    error: DURATION_FORM,
  },
);

export function list(entries: string) {
  return z.array(text, { error: `must be a list of ${entries}` }).readonly();
}

export function oneOf<const Words extends readonly string[]>(words: Words, extra = "") {
  return z.enum(words, { error: `must be ${enumeration(words)}${extra}` });
}

export function enumeration(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

export const ADDRESS_FORM = "must be an IP address, such as 10.0.0.1 or fd00::1";

export const address = text.transform((value, context) => {
  const canonical = canonicalAddress(value);
  if (canonical !== undefined) return canonical;
  context.addIssue({ code: "custom", message: ADDRESS_FORM });
  return z.NEVER;
});

function socketForm(port: number): string {
  return `must be an IP address and a port from 1 to 65535, such as 0.0.0.0:${port} or [::]:${port}`;
}

export function socketAddress(defaultPort: number) {
  return text.transform((value, context) => {
    const parsed = parseSocketAddress(value, defaultPort);
    if (parsed !== undefined) return parsed;
    context.addIssue({ code: "custom", message: socketForm(defaultPort) });
    return z.NEVER;
  });
}

export const QUANTITY_FORM = "must be a number of bytes, such as 0, 512, 64K or 64Ki";

/** A resource.Quantity, kept as its text. */
export const quantity = z
  .union([text, z.number()], { error: QUANTITY_FORM })
  .transform(String)
  .refine((value) => /^\d+(\.\d+)?([KMGTPEk]i?|[eE]\d+)?$/.test(value), { error: QUANTITY_FORM });

import { UsageError } from "../frame/errors.ts";

/**
 * The value of an option that is a whole number from 1 on; undefined: it is not given.
 *
 * @throws UsageError naming the option and what would be right
 */
export function numberOf(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= 1 && Number.isSafeInteger(number)) return number;
  throw new UsageError(`--${option}=${text}: must be a whole number from 1 on`);
}

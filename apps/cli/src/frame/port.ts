import { UsageError } from "./errors.ts";

/**
 * The value of an option that is a port.
 *
 * @throws UsageError naming the option and what would be right
 */
export function portOf(option: string, text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port >= 1 && port <= 65_535) return port;
  throw new UsageError(`--${option}=${text}: a port is a number from 1 to 65535`);
}

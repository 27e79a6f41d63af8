import { parseAddress } from "@fairlead/base";
import { UsageError } from "../frame/errors.ts";
import { list, type OptionSpec } from "../frame/options.ts";

/** `--node-address`: may be given more than once, or with commas between. */
export function nodeAddressOption(help: string): OptionSpec<readonly string[]> {
  const read = (texts: readonly string[]) => texts.flatMap((text) => text.split(",")).map(addressOf);
  return { ...list("ADDRESS", help), read };
}

function addressOf(text: string): string {
  const address = parseAddress(text.trim());
  if (address !== undefined) return address.text;
  throw new UsageError(`--node-address=${text}: must be an address, such as 192.0.2.10 or 2001:db8::10`);
}

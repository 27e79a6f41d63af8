import { fieldsOf, itemsOf } from "@fairlead/base";
import { compact } from "../data/compact.ts";
import type { IPFamily, SliceEndpoint } from "../objects.ts";
import type { ProblemList } from "../problem.ts";
import { readAddress } from "./addresses.ts";
import type { Intern } from "./intern.ts";
import { AMBIGUOUS, type SpecialAddress, UNUSABLE } from "./special-address.ts";

/** What no endpoint of a cluster can have as its address. */
export const REFUSED: readonly SpecialAddress[] = [...UNUSABLE, ...AMBIGUOUS];

/** How the endpoints of one slice are read. */
export interface EndpointReading {
  readonly family: IPFamily;
  readonly refused: readonly SpecialAddress[];
  readonly intern: Intern;
}

/**
 * Reads one endpoint; undefined: not usable, reported. Only its first address counts: since KEP-752 the others have no
 * meaning.
 */
export function readEndpoint(
  index: number,
  value: unknown,
  reading: EndpointReading,
  problems: ProblemList,
): SliceEndpoint | undefined {
  const { intern } = reading;
  const item = fieldsOf(value);
  const address = readEndpointAddress(index, itemsOf(item["addresses"])[0], reading, problems);
  if (address === undefined) return undefined;
  const conditions = fieldsOf(item["conditions"]);
  const ready = conditions["ready"] !== false;
  const serving = conditions["serving"] !== false;
  const terminating = conditions["terminating"] === true;
  const node = item["nodeName"];
  // Two literals, not one that grows: a hundred thousand of these are kept, and each keeps just its own fields.
  const endpoint: SliceEndpoint =
    typeof node === "string" && node !== ""
      ? { address, ready, serving, terminating, nodeName: intern(node) }
      : { address, ready, serving, terminating };
  return withHints(endpoint, item["hints"], intern);
}

function readEndpointAddress(
  index: number,
  value: unknown,
  { family, refused }: EndpointReading,
  problems: ProblemList,
): string | undefined {
  const field = `endpoints[${index}].addresses[0]`;
  if (value === undefined || value === null || value === "") {
    problems.add(field, value, "is required");
    return undefined;
  }
  const address = readAddress(field, value, refused, problems);
  if (address === undefined || address.family === family) return address?.text;
  problems.add(field, value, `must be an ${family} address, as the slice's addressType says`);
  return undefined;
}

function withHints(endpoint: SliceEndpoint, value: unknown, intern: Intern): SliceEndpoint {
  if (value === undefined || value === null) return endpoint;
  const hints = fieldsOf(value);
  const zoneHints = hintNames(hints["forZones"], intern);
  const nodeHints = hintNames(hints["forNodes"], intern);
  return {
    ...endpoint,
    ...(zoneHints.length > 0 ? { zoneHints } : undefined),
    ...(nodeHints.length > 0 ? { nodeHints } : undefined),
  };
}

function hintNames(value: unknown, intern: Intern): readonly string[] {
  const names = itemsOf(value).flatMap((item) => {
    const { name } = fieldsOf(item);
    return typeof name === "string" ? [intern(name)] : [];
  });
  return compact(names);
}

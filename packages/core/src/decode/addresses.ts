import { type Address, isAbsent, parseAddressLeniently } from "@fairlead/base";
import { compact } from "../data/compact.ts";
import type { ProblemList } from "../problem.ts";
import { type SpecialAddress, specialKind } from "./special-address.ts";

/**
 * Reads one address of a field and reports it if it can't be used.
 *
 * @param refused the kinds of special addresses that this field may not hold
 */
export function readAddress(
  field: string,
  value: unknown,
  refused: readonly SpecialAddress[],
  problems: ProblemList,
): Address | undefined {
  const address = typeof value === "string" ? parseAddressLeniently(value) : undefined;
  if (address === undefined) {
    if (!isAbsent(value) && value !== "") problems.add(field, value, "must be an IPv4 or IPv6 address");
    return undefined;
  }
  const special = specialKind(address);
  if (special === undefined || !refused.includes(special)) return address;
  problems.add(field, value, `must not be a ${special} address`);
  return undefined;
}

/** Canonical addresses of a list field, without duplicates, in order. */
export function readAddresses(
  field: string,
  values: readonly unknown[],
  refused: readonly SpecialAddress[],
  problems: ProblemList,
): readonly string[] {
  const found = new Set<string>();
  values.forEach((value, i) => {
    const address = readAddress(`${field}[${i}]`, value, refused, problems);
    if (address !== undefined) found.add(address.text);
  });
  return compact([...found]);
}

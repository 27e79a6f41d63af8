import { fieldsOf, isAbsent, itemsOf, type RawObject } from "@fairlead/base";
import { quoted } from "@fairlead/core";
import type { Reading } from "./source.ts";

/** Objects of one kind hold a handful; more than that is meant to be expensive. */
const MOST_CIDRS = 1_000;

/** Gathers what one object says. */
export class ReadingBuilder {
  readonly #cidrs: string[] = [];
  readonly #problems: string[] = [];

  /** Takes a text of one CIDR, or of several separated by commas. Absent: nothing. */
  add(field: string, value: unknown): void {
    if (isAbsent(value) || value === "") return;
    if (typeof value !== "string") this.problem(field, value, "must be a CIDR");
    else for (const part of value.split(",", MOST_CIDRS + 1)) this.#take(field, part.trim());
  }

  /** Takes a list of CIDRs. Absent: nothing. */
  addAll(field: string, values: unknown): void {
    if (isAbsent(values)) return;
    if (!Array.isArray(values)) this.problem(field, values, "must be a list of CIDRs");
    else for (const [at, value] of values.slice(0, MOST_CIDRS + 1).entries()) this.add(`${field}[${at}]`, value);
  }

  problem(field: string, value: unknown, message: string): void {
    if (this.#problems.length < 10) this.#problems.push(`${field} is ${shown(value)}; ${message}`);
  }

  done(): Reading {
    return { cidrs: this.#cidrs, problems: this.#problems };
  }

  #take(field: string, cidr: string): void {
    if (this.#cidrs.length < MOST_CIDRS) this.#cidrs.push(cidr);
    else if (this.#cidrs.length === MOST_CIDRS)
      this.problem(field, cidr, `only the first ${MOST_CIDRS} CIDRs are used`);
  }
}

export function ignored(why: string): Reading {
  return { cidrs: [], ignored: why, problems: [] };
}

export function specOf(raw: unknown): RawObject {
  return fieldsOf(fieldsOf(raw)["spec"]);
}

/** The fields of each item of a list; what is no object has no fields. */
export function recordsOf(value: unknown): readonly RawObject[] {
  return itemsOf(value).map(fieldsOf);
}

/** A value of unknown origin, on one line and short. */
export function shown(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "nothing");
  return quoted(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

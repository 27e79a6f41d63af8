/** Problems of objects, as they are reported to users. */

import { type ServiceKey, serviceKey } from "./objects.ts";

/** The Kubernetes objects that core reads. */
export type ObjectKind = "Service" | "EndpointSlice" | "Node" | "ServiceCIDR";

/**
 * What becomes of valid input that does other than it seems to ask for. `lost`: packets are. `open`: more clients are
 * let in. `note`: nothing of the kind.
 */
export type Effect = "lost" | "open" | "note";

/**
 * Something wrong in an object, or between two: what it is about was skipped; the rest is served. With an `effect` it
 * is a notice: the input is valid and used.
 */
export interface Problem {
  /** The kind of the object. */
  readonly kind: ObjectKind;
  /** "" for objects without a namespace. */
  readonly namespace: string;
  /** metadata.name. */
  readonly name: string;
  /** Path of the field, `spec.ports[2].port`. */
  readonly field: string;
  /** The value as JSON, cut to 80 characters, so that it can stand in any log line; "" where there is none. */
  readonly value: string;
  /** What is wrong with it and what would be right. */
  readonly reason: string;
  /** Present for a notice. */
  readonly effect?: Effect;
  /** metadata.name of the Service that an EndpointSlice is of; absent: unknown, or another kind. */
  readonly service?: string;
}

/** What is wrong, and what is valid and does other than it seems to ask for; absent: nothing. */
interface ProblemLists {
  readonly problems: readonly Problem[];
  readonly notices?: readonly Problem[];
}

/** Most objects. */
const CLEAN: ProblemLists = { problems: [] };

export function separated(all: readonly Problem[]): ProblemLists {
  const problems = all.filter(({ effect }) => effect === undefined);
  return problems.length === all.length
    ? { problems }
    : { problems, notices: all.filter(({ effect }) => effect !== undefined) };
}

/** The Service that a problem or notice is about; undefined: none, or it is not known. */
export function serviceOfProblem({ kind, namespace, name, service }: Problem): ServiceKey | undefined {
  const owner = kind === "Service" ? name : service;
  return owner === undefined ? undefined : serviceKey(namespace, owner);
}

/** Collects the problems of one object while it is decoded. */
export class ProblemList {
  readonly #kind: ObjectKind;
  readonly #namespace: string;
  readonly #name: string;
  readonly #service: string | undefined;
  #problems: Problem[] | undefined;

  /** @param service of an EndpointSlice */
  constructor(kind: ObjectKind, namespace: string, name: string, service?: string) {
    this.#service = service;
    this.#kind = kind;
    this.#namespace = namespace;
    this.#name = name;
  }

  /** @param effect of a notice; absent: the input is wrong */
  add(field: string, value: unknown, reason: string, effect?: Effect): void {
    this.#problems ??= [];
    this.#problems.push({
      kind: this.#kind,
      namespace: printable(this.#namespace),
      name: printable(this.#name),
      field,
      value: printableValue(value),
      reason,
      ...(effect === undefined ? undefined : { effect }),
      ...(this.#service === undefined ? undefined : { service: printable(this.#service) }),
    });
  }

  /** What is wrong, and the notices, as `Decoded` has them. */
  get lists(): ProblemLists {
    return this.#problems === undefined ? CLEAN : separated(this.#problems);
  }
}

const LONGEST_VALUE = 80;

/** A value as JSON, cut to 80 characters, without characters that could not be seen; "" for undefined. */
export function printableValue(value: unknown): string {
  if (value === undefined) return "";
  const json = withoutHidden(typeof value === "bigint" ? `${value}` : (JSON.stringify(value) ?? ""));
  return json.length > LONGEST_VALUE ? `${json.slice(0, LONGEST_VALUE - 1)}…` : json;
}

/**
 * Characters that are not seen or change how what follows is read: bidirectional controls and other format characters,
 * line and paragraph separators, control characters that JSON does not escape.
 */
const HIDDEN = /[\p{Cf}\p{Zl}\p{Zp}\u007f-\u009f]/gu;

/**
 * Text in which hidden characters stand as JSON's escapes (`\\u202e`). Of a JSON text it is the same JSON: they can
 * stand in its strings only.
 */
export function withoutHidden(text: string): string {
  return text.replace(HIDDEN, (found) =>
    Array.from({ length: found.length }, (_, i) => `\\u${found.charCodeAt(i).toString(16).padStart(4, "0")}`).join(""),
  );
}

/** A text of unknown origin in quotes, for people to read: one line, and nothing in it hidden. */
export function quoted(text: string): string {
  return withoutHidden(JSON.stringify(text));
}

/**
 * A name as it is if it is an ordinary one, else as JSON: control characters and quotes never reach anybody unescaped.
 */
function printable(name: string): string {
  return /^[\w.:-]{0,253}$/.test(name) ? name : printableValue(name);
}

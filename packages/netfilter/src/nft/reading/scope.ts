import type { NftFamily } from "../family.ts";
import type { NftSet } from "../model.ts";
import type { DataType } from "../types.ts";
import type { ListedSet } from "./phrases.ts";

/** What a rule is read with. */
export interface Scope {
  readonly family: NftFamily;
  /** @throws NotKnown when there is none of that name */
  set(name: string): Omit<NftSet, "elements">;
  /** Makes an anonymous set of these types, and gives its name. */
  anonymous(listed: ListedSet & object, key: readonly DataType[], values?: Pick<NftSet, "data" | "objects">): string;
}

import type { ApiObject, ApiUser } from "@fairlead/lab/control-plane/api-client";
import type { Bystanders } from "./bystanders.ts";

/** What a user does with an object; the user has the rights for exactly these steps. */
export type Step =
  | { readonly create: ApiObject }
  | {
      readonly patch: ApiObject;
      readonly part?: "status";
      readonly change: unknown;
      /** What takes it back; absent: it goes with its object. */
      readonly back?: unknown;
    };

/** What every agent's `/ownership` reports of a CIDR while the attack lasts. */
export interface ReportedCIDR {
  readonly cidr: string;
  /** Absent: nothing is learned of it. */
  readonly stage?: "held" | "refused" | "effective";
  /** `Subnet/typo` */
  readonly object?: string;
  /** A part of the reason. */
  readonly why?: string;
}

/** One row of the table: who makes which objects, and what comes of it. No service changes hands in any of them. */
export interface NetworkAttack {
  readonly name: string;
  /** `ignored`: it takes effect where it may, and decides nothing for the services that it aims at. */
  readonly outcome: "held" | "refused" | "ignored";
  readonly who: ApiUser;
  /** What an administrator has made before. */
  before?(at: Bystanders): readonly ApiObject[];
  steps(at: Bystanders): readonly Step[];
  reported(at: Bystanders): readonly ReportedCIDR[];
  /** A part of a line that every agent logs. */
  logged?(at: Bystanders): string;
  /** After what is reported was seen. */
  meanwhile?(at: Bystanders): Promise<void>;
}

import type { Clock } from "@fairlead/base";
import type { OnReport } from "../report.ts";
import type { Cursor } from "./cursor.ts";
import type { Reachability } from "./reachability.ts";
import type { Requester } from "./request.ts";
import type { TakeToken } from "./token-bucket.ts";

/** What a reflector asks of the server with, and what it reports to. */
export interface ReflectorPorts {
  readonly requester: Requester;
  readonly takeToken: TakeToken;
  readonly clock: Clock;
  readonly random: () => number;
  readonly reachability: Reachability;
  readonly onReport: OnReport;
  /** How lists begin before the server has refused that. */
  readonly firstMode: Cursor["firstMode"];
  /** Whether the server is asked for protobuf where the resource has it. */
  readonly protobuf: boolean;
}

import type { Clock } from "@fairlead/base";
import type { OnReport } from "../report.ts";
import type { Cursor } from "./cursor.ts";
import type { Reachability } from "./reachability.ts";
import type { Requester } from "./request.ts";
import type { RetryDelays } from "./retry-delays.ts";
import type { TakeToken } from "./token-bucket.ts";
import type { Turns } from "./turns.ts";

/** What a reflector asks of the server with, and what it reports to. */
export interface ReflectorPorts {
  readonly requester: Requester;
  readonly takeToken: TakeToken;
  readonly clock: Clock;
  readonly random: () => number;
  readonly reachability: Reachability;
  /** Which loop asks a server that gives no answer, or asks to come later. */
  readonly turns: Turns;
  /** How long that one waits. */
  readonly turnDelays: RetryDelays;
  readonly onReport: OnReport;
  /** How lists begin before the server has refused that. */
  readonly firstMode: Cursor["firstMode"];
  /** Whether the server is asked for protobuf where the resource has it. */
  readonly protobuf: boolean;
}

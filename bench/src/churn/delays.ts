import type { Change } from "../cluster/roll-out.ts";
import { type Delays, spreadOf } from "./figures.ts";

/** Address → milliseconds since the epoch. */
export type Times = ReadonlyMap<string, number>;

/** @throws Error when a change has not come through */
export function delaysOf(changes: readonly Change[], relayed: Times, programmed: Times): Delays {
  const each = changes.map(({ address, asked }) => {
    const [event, kernel] = [timeOf(relayed, address), timeOf(programmed, address)];
    return { api: event - asked, own: kernel - event, total: kernel - asked };
  });
  const of = (part: "api" | "own" | "total") => spreadOf(each.map((one) => one[part]));
  return { api: of("api"), own: of("own"), total: of("total") };
}

/** @throws Error when it is not among them */
export function timeOf(times: Times, address: string): number {
  const time = times.get(address);
  if (time === undefined) throw new Error(`no event with ${address} was seen`);
  return time;
}

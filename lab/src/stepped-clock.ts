import { readFileSync } from "node:fs";

/**
 * Loaded into an agent before it starts: its wall clock can be stepped without touching the machine's. On SIGWINCH it
 * takes over the milliseconds in the file of FAIRLEAD_E2E_CLOCK, by which it is late (negative: early) from then on.
 * What never jumps on a real machine (performance.now, timers) does not here.
 */
const file = process.env["FAIRLEAD_E2E_CLOCK"] ?? "";
const MachineDate = Date;
let offset = 0;

process.on("SIGWINCH", () => {
  offset = Number(readFileSync(file, "utf8"));
});

globalThis.Date = new Proxy(MachineDate, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [MachineDate.now() + offset] : args, newTarget),
  get: (target, property, receiver) =>
    property === "now" ? () => MachineDate.now() + offset : Reflect.get(target, property, receiver),
});

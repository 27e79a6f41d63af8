import type { Environment, Exploration, Packet, Tracer } from "@fairlead/trace";

/** The same tracer, which follows equal packets once in this environment; for the few packets to one service. */
export function exploredOnce(tracer: Tracer, environment: Environment): Tracer {
  const known = new Map<string, Exploration>();
  return {
    ...tracer,
    explore(packet, where, options) {
      if (where !== environment || options?.merged !== true) return tracer.explore(packet, where, options);
      const key = packetKey(packet);
      const exploration = known.get(key) ?? tracer.explore(packet, where, options);
      known.set(key, exploration);
      return exploration;
    },
  };
}

function packetKey(packet: Packet): string {
  return JSON.stringify(packet);
}

import type { Environment, RouteAnswer, RouteQuery } from "./environment.ts";
import type { Exploration } from "./outcome.ts";
import type { Packet } from "./packet.ts";
import type { Tracer } from "./trace.ts";

/** Answers as many queries as are asked, in their order. */
export type AskRoutes = (queries: readonly RouteQuery[]) => Promise<readonly RouteAnswer[]>;

/**
 * As `explore`, where another program has to be asked for each routing decision, the kernel for example: the packet is
 * sent on its way again with what was answered, until nothing is asked anymore.
 *
 * @throws PacketError and RangeError as `explore`
 */
export async function exploreAsking(
  tracer: Tracer,
  packet: Packet,
  environment: Environment,
  ask: AskRoutes,
): Promise<Exploration> {
  const known = new Map<string, RouteAnswer>();
  for (;;) {
    const open = new Map<string, RouteQuery>();
    const route = (query: RouteQuery): RouteAnswer => {
      const key = JSON.stringify(query);
      const answer = known.get(key);
      if (answer === undefined) open.set(key, query);
      return answer ?? NOT_ASKED;
    };
    const exploration = tracer.explore(packet, { ...environment, route });
    if (open.size === 0) return exploration;
    const answers = await ask([...open.values()]);
    for (const [at, key] of [...open.keys()].entries()) known.set(key, answers[at] ?? NOT_ASKED);
  }
}

const NOT_ASKED: RouteAnswer = { kind: "unknown", problem: "the route is not known" };

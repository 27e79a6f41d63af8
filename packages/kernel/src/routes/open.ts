import { systemClock, type Timers } from "@fairlead/base";
import type { IPFamily } from "../family.ts";
import type { OpenListening } from "../netlink/listening.ts";
import type { Argv, Runner } from "../runner/runner.ts";
import { routingChanges } from "./changes.ts";
import { parseRoutes, parseRules } from "./parse.ts";
import { renderRouting } from "./render.ts";
import { ROUTE_PROTOCOL, type Routing } from "./routes.ts";

/** How the kernel is reached. */
export interface RoutingOptions {
  /** How rtnetlink is listened to, in the network namespace that the runner runs its processes in. */
  readonly listen: OpenListening;
  /** Default the system's. */
  readonly timers?: Timers;
}

const FLAGS: Readonly<Record<IPFamily, string>> = { IPv4: "-4", IPv6: "-6" };
/** Milliseconds that `ip` may take. */
const TIMEOUT_MS = 10_000;

/** Routes and rules by `ip`: they are read when the kernel says that they changed, and seldom written. */
export function createRouting(runner: Runner, { listen, timers = systemClock }: RoutingOptions): Routing {
  const show = async (family: IPFamily, ...what: readonly string[]) => {
    const argv: Argv = ["ip", "-N", "-json", FLAGS[family], ...what];
    return (await runner.run(argv, { timeoutMs: TIMEOUT_MS })).stdout;
  };
  return {
    async read(family) {
      const [main, own, rules] = await Promise.all([
        show(family, "route", "show", "table", "main"),
        show(family, "route", "show", "table", "all", "proto", String(ROUTE_PROTOCOL)),
        show(family, "rule", "show"),
      ]);
      return { main: parseRoutes(main), own: parseRoutes(own), rules: parseRules(rules) };
    },
    async write(family, commands) {
      if (commands.length === 0) return;
      const input = commands.map((command) => `${renderRouting(command)}\n`);
      await runner.run(["ip", FLAGS[family], "-force", "-batch", "-"], { input, timeoutMs: TIMEOUT_MS });
    },
    watch: (options) => routingChanges(listen, timers, options),
  };
}

import type { IPFamily } from "../family.ts";
import type {
  MarkRule,
  RouteEntry,
  Routing,
  RoutingCommand,
  RoutingWatchOptions,
  TableRoute,
} from "../routes/routes.ts";

/** The routes and rules of one family. */
interface FamilyRouting {
  main: readonly RouteEntry[];
  own: TableRoute[];
  rules: MarkRule[];
}

/** Routes and rules in memory. */
export class FakeRouting implements Routing {
  /** What there is, by family. */
  readonly families: Readonly<Record<IPFamily, FamilyRouting>> = {
    IPv4: { main: [], own: [], rules: [] },
    IPv6: { main: [], own: [], rules: [] },
  };
  /** Commands that were carried out, in order. */
  readonly written: RoutingCommand[] = [];
  /** Families in which nothing can be written. */
  readonly refusing = new Set<IPFamily>();
  #changed = Promise.withResolvers<void>();

  /** As the client does. */
  async read(family: IPFamily) {
    const { main, own, rules } = this.families[family];
    return { main: [...main], own: [...own], rules: [...rules] };
  }

  /** As the client does. */
  async write(family: IPFamily, commands: readonly RoutingCommand[]): Promise<void> {
    if (this.refusing.has(family)) throw new Error(`ip refuses routes of ${family}`);
    for (const command of commands) apply(this.families[family], command);
    this.written.push(...commands);
  }

  /** Another program changes the routes; with an interface that goes its routes go, those of Fairlead among them. */
  change(family: IPFamily, main: readonly RouteEntry[]): void {
    const names = new Set(main.map((route) => route.interface));
    const there = this.families[family];
    there.main = main;
    there.own = there.own.filter((route) => names.has(route.interface));
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  /** A step for each `change`. */
  async *watch({ signal }: RoutingWatchOptions): AsyncGenerator<void, void, void> {
    const ended = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    while (!signal.aborted) {
      await Promise.race([this.#changed.promise, ended]);
      if (!signal.aborted) yield;
    }
  }
}

function apply(to: FamilyRouting, command: RoutingCommand): void {
  switch (command.kind) {
    case "set-route":
      to.own = [...to.own.filter((one) => !isSame(one, command.route)), command.route];
      return;
    case "delete-route":
      to.own = to.own.filter((one) => !isSame(one, command.route));
      return;
    case "add-rule":
      to.rules = [...to.rules, command.rule];
      return;
    case "delete-rule":
      to.rules = to.rules.filter((one) => JSON.stringify(one) !== JSON.stringify(command.rule));
      return;
    default:
      command satisfies never;
  }
}

function isSame(a: TableRoute, b: TableRoute): boolean {
  return a.destination === b.destination && a.table === b.table && a.metric === b.metric;
}

import { uniformInt } from "pure-rand/distribution/uniformInt";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";
import { after, DAMAGES, firstModel, type Hardship, type SoakModel, type SoakStep } from "./model.ts";

/** A step, and the cluster that it leads to. */
export interface Drawn {
  readonly step: SoakStep;
  readonly model: SoakModel;
}

/** What the cluster can be put through; each mode that it has can follow on any other. */
export interface SoakScope {
  /** Of the cluster, and those to switch to. */
  readonly modes: readonly [first: string, ...others: string[]];
  readonly hardships: readonly Hardship[];
}

/** A number from 0 up to, and without, `below`. */
type Draw = (below: number) => number;

const NODES = [0, 1] as const;
const MOST_SERVICES = 5;
const MOST_PODS = 8;

/** Steps without end, always the same ones for a seed and a scope. */
export function* drawSteps(seed: number, { modes, hardships }: SoakScope): Generator<Drawn, never> {
  const random = xoroshiro128plus(seed);
  const draw: Draw = (below) => uniformInt(random, 0, below - 1);
  let model = firstModel(modes[0]);
  for (;;) {
    const now = model;
    const step = oneOf<SoakStep>(draw, [
      ...workloadSteps(now, draw),
      ...nodeSteps(now),
      ...hardships.map((kind) => ({ kind })),
      ...modes.filter((mode) => mode !== now.mode).map((mode) => ({ kind: "mode switched", mode }) as const),
      ...NODES.map((node) => ({ kind: "damaged by hand", node, damage: oneOf(draw, DAMAGES) }) as const),
    ]);
    model = after(model, step);
    yield { step, model };
  }
}

/** Three times each: most of what happens in a cluster is of this kind. */
function workloadSteps({ services, pods, names }: SoakModel, draw: Draw): readonly SoakStep[] {
  const once = () => [
    ...(services.length < MOST_SERVICES ? [{ kind: "service added", service: `service-${names}` } as const] : []),
    ...some(draw, services).map((service) => ({ kind: "service removed", service }) as const),
    ...(pods.length < MOST_PODS ? some(draw, services) : []).map((app) => {
      const pod = { name: `pod-${names}`, app, node: oneOf(draw, NODES), ready: true };
      return { kind: "pod added", pod } as const;
    }),
    ...some(draw, pods).map(({ name }) => ({ kind: "pod removed", pod: name }) as const),
    ...some(draw, pods).map(({ name, ready }) => ({ kind: "readiness changed", pod: name, ready: !ready }) as const),
  ];
  return [...once(), ...once(), ...once()];
}

/** What comes to a node that has it not, and goes where it is. */
function nodeSteps({ furtherAddresses, neighbors }: SoakModel): readonly SoakStep[] {
  return NODES.flatMap((node): readonly SoakStep[] => [
    { kind: furtherAddresses.includes(node) ? "node address removed" : "node address added", node },
    { kind: neighbors.includes(node) ? "neighbor removes" : "neighbor writes", node },
  ]);
}

/** One of them, where there are any. */
function some<T>(draw: Draw, all: readonly T[]): readonly T[] {
  return all.length === 0 ? [] : [oneOf(draw, all)];
}

function oneOf<T>(draw: Draw, all: readonly T[]): T {
  const found = all[draw(all.length)];
  if (found === undefined) throw new Error("nothing to draw from");
  return found;
}

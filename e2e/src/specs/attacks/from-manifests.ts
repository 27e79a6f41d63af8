import type { Figures, Spec } from "../spec.ts";
import { type Mirror, openMirror } from "./mirror.ts";
import { type Attack, type Attacked, underAttack } from "./under-attack.ts";

export interface ManifestAttack extends Omit<Attack, "start" | "carry" | "act"> {
  /** Before the agent starts. */
  readonly before?: (mirror: Mirror, attacked: Attacked) => Promise<void>;
  readonly act: (attacked: Attacked, mirror: Mirror) => Promise<Figures>;
}

/** An attack on an agent that follows a folder of manifests, which has the cluster's objects all the while. */
export function underAttackFromManifests({ before = async () => {}, act, ...fields }: ManifestAttack): Spec {
  const mirrors = new WeakMap<object, Mirror>();
  const mirrorOf = async ({ scene }: Attacked) => {
    const mirror = mirrors.get(scene) ?? (await openMirror(scene));
    mirrors.set(scene, mirror);
    return mirror;
  };
  return underAttack({
    ...fields,
    start: async (attacked) => {
      const mirror = await mirrorOf(attacked);
      await before(mirror, attacked);
      return { flags: [`--manifests=${mirror.folder}`] };
    },
    carry: async (attacked, addresses) => (await mirrorOf(attacked)).update(addresses),
    act: async (attacked) => act(attacked, await mirrorOf(attacked)),
  });
}

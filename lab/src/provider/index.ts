import { kind, kindPublished } from "./kind/cluster.ts";
import { netns } from "./netns-provider.ts";
import type { Provider } from "./provider.ts";

/** All of them, by name. */
export const providers: ReadonlyMap<string, Provider> = new Map(
  [netns, kind, kindPublished].map((provider) => [provider.name, provider]),
);

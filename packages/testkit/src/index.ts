export * from "./golden/golden.ts";
export { kubernetesService } from "./objects/kubernetes.ts";
export type * from "./objects/raw.ts";

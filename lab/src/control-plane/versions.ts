/** The newest release of each minor version that the Go module proxy serves, and the etcd alongside it. */
const RELEASES: Readonly<Record<string, string>> = {
  "v1.36": "v1.36.3",
  "v1.37": "v1.37.1",
};

export const ETCD_VERSION = "v3.7.3";

export const DEFAULT_KUBERNETES = "v1.36";

/**
 * @param wanted `v1.36`, `1.36` or a full version
 * @throws Error that names the versions that are known
 */
export function kubernetesVersion(wanted: string): string {
  const version = wanted.startsWith("v") ? wanted : `v${wanted}`;
  const known = RELEASES[version];
  if (known !== undefined) return known;
  if (/^v1\.\d+\.\d+$/.test(version)) return version;
  throw new Error(
    `Kubernetes ${wanted} is not a version: give ${Object.keys(RELEASES).join(", ")} or a full one such as v1.36.3`,
  );
}

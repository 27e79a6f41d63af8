import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryDir } from "./paths.ts";

export interface Section {
  /** As the navigation has it. */
  readonly title: string;
  /** Markdown files in their order, relative to the repository. Each is one page with the file's own heading. */
  readonly files: readonly string[];
}

/** The section of the published packages: each one's README, with the reference of what it exports. */
export const PACKAGES = "Packages";

/** Where each document is found in the navigation. */
const SECTIONS: readonly Section[] = [
  {
    title: "Start",
    files: [
      "docs/install.md",
      "docs/migrate-from-kube-proxy.md",
      "docs/upgrade.md",
      "docs/compatibility.md",
      "docs/kubernetes-1.40.md",
    ],
  },
  {
    title: "A packet's way",
    files: [
      "docs/tracer.md",
      "docs/iptables.md",
      "docs/nftables.md",
      "docs/fast-path.md",
      "docs/ipvs.md",
      "docs/userspace.md",
      "docs/windows.md",
      "docs/annotations.md",
      "docs/gateway.md",
      "docs/notices.md",
      "docs/node-port-addresses.md",
    ],
  },
  {
    title: "More than one network",
    files: ["docs/multi-cni.md", "docs/secondary-networks.md", "docs/reply-via.md", "docs/migrate-networks.md"],
  },
  {
    title: "Tools",
    files: ["docs/tools.md", "docs/cli.md", "docs/console.md", "apps/cli/README.md"],
  },
  {
    title: "Operation",
    files: ["docs/metrics.md", "docs/runbooks/alerts.md", "docs/performance.md", "apps/agent/README.md"],
  },
  {
    title: "Project",
    files: [
      "docs/architecture.md",
      "CONTRIBUTING.md",
      "docs/testing.md",
      "docs/kubernetes-releases.md",
      "docs/tested.md",
      "e2e/README.md",
      "lab/README.md",
      "bench/README.md",
      "deploy/README.md",
      "docs/roadmap.md",
      "docs/releasing.md",
      "SECURITY.md",
      "docs/licenses.md",
    ],
  },
  { title: PACKAGES, files: ["docs/packages.md"] },
];

/**
 * The sections with their files, and last one with those that are in none.
 *
 * @param documents all files of docs/, relative to the repository
 */
export function sectionsOf(documents: readonly string[]): readonly Section[] {
  const listed = new Set(SECTIONS.flatMap(({ files }) => files));
  const files = documents.filter((file) => !listed.has(file));
  return files.length === 0 ? SECTIONS : [...SECTIONS, { title: "More", files }];
}

export interface PublishedPackage {
  /** `@fairlead/trace`. */
  readonly name: string;
  /** `packages/trace`. */
  readonly folder: string;
  /** What can be imported → its source: `@fairlead/netfilter/nft` → `packages/netfilter/src/nft/index.ts`. */
  readonly entries: ReadonlyMap<string, string>;
}

interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
}

/** The libraries that are published, by name: programs have no exports. */
export function publishedLibraries(): readonly PublishedPackage[] {
  return readdirSync(join(repositoryDir, "packages"))
    .sort()
    .flatMap((room) => {
      const folder = `packages/${room}`;
      const manifest: Manifest = JSON.parse(readFileSync(join(repositoryDir, folder, "package.json"), "utf8"));
      return manifest.private === true ? [] : [{ name: manifest.name, folder, entries: entriesOf(folder, manifest) }];
    });
}

function entriesOf(folder: string, { name, exports }: Manifest): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(exports).flatMap(([path, target]) => {
      const source = typeof target === "string" ? undefined : target["@fairlead/source"];
      return source === undefined ? [] : [[join(name, path), join(folder, source)]];
    }),
  );
}

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { NpmPackage } from "./bundle.ts";

export interface ImageContents {
  /** `ghcr.io/fairlead-dev/fairlead:0.1.0` */
  readonly image: string;
  /** `sha256:…` of the platform's manifest. */
  readonly digest: string;
  readonly arch: string;
  /** Seconds since the epoch. */
  readonly epoch: number;
  readonly agent: NpmPackage;
  readonly nodeVersion: string;
  readonly npm: readonly NpmPackage[];
  readonly debian: readonly DebianPackage[];
}

/** An image's contents as SPDX 2.3 (https://spdx.github.io/spdx-spec/v2.3/), JSON form. */
export function toSpdx(contents: ImageContents) {
  const image = imageElement(contents);
  const parts = [
    npmElement(contents.agent),
    element("node", contents.nodeVersion, "MIT", `pkg:generic/node@${contents.nodeVersion}`),
    ...contents.npm.map(npmElement),
    ...contents.debian.map(debianElement),
  ];
  return {
    spdxVersion: "SPDX-2.3",
    dataLicense: "CC0-1.0",
    SPDXID: "SPDXRef-DOCUMENT",
    name: contents.image,
    documentNamespace: `https://fairlead.dev/spdx/${contents.digest.replace(":", "-")}`,
    creationInfo: {
      created: new Date(contents.epoch * 1000).toISOString().replace(/\.\d+Z$/, "Z"),
      creators: ["Organization: Fairlead", `Tool: fairlead-image-${contents.agent.version}`],
    },
    packages: [image, ...parts],
    relationships: [
      relation("SPDXRef-DOCUMENT", "DESCRIBES", image.SPDXID),
      ...parts.map(({ SPDXID }) => relation(image.SPDXID, "CONTAINS", SPDXID)),
    ],
  };
}

function element(name: string, version: string, license: string, purl: string) {
  return {
    SPDXID: `SPDXRef-${`${name}-${version}`.replace(/[^A-Za-z0-9.-]/g, "-")}`,
    name,
    versionInfo: version,
    downloadLocation: "NOASSERTION",
    filesAnalyzed: false,
    licenseConcluded: "NOASSERTION",
    licenseDeclared: license,
    copyrightText: "NOASSERTION",
    externalRefs: [{ referenceCategory: "PACKAGE-MANAGER", referenceType: "purl", referenceLocator: purl }],
  };
}

function imageElement({ image, digest, arch, agent }: ImageContents) {
  const [repository = image, name = repository.slice(repository.lastIndexOf("/") + 1)] = [
    image.slice(0, image.lastIndexOf(":")),
  ];
  const purl = `pkg:oci/${name}@${encodeURIComponent(digest)}?arch=${arch}&repository_url=${encodeURIComponent(repository)}`;
  return { ...element(image, agent.version, agent.license, purl), primaryPackagePurpose: "CONTAINER" };
}

function npmElement({ name, version, license }: NpmPackage) {
  return element(name, version, license, `pkg:npm/${name.replace("@", "%40")}@${version}`);
}

/** Debian's licenses are in the image, in each package's copyright file; not all of them are SPDX expressions. */
function debianElement({ name, version, architecture, source, maintainer }: DebianPackage) {
  const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`;
  return {
    ...element(name, version, "NOASSERTION", purl),
    sourceInfo: `built from Debian source package ${source}`,
    supplier: `Organization: ${maintainer.replace(/\s*<(.*)>/, " ($1)")}`,
  };
}

function relation(from: string, relationshipType: string, to: string) {
  return { spdxElementId: from, relationshipType, relatedSpdxElement: to };
}

export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
  /** Source package and, where it differs, its version: `glibc (2.36-9)`. */
  readonly source: string;
  readonly maintainer: string;
}

/** The packages of a root folder, from what record-packages.sh left there. */
export async function debianPackages(rootDir: string): Promise<DebianPackage[]> {
  const folder = join(rootDir, "var/lib/dpkg/status.d");
  const names = (await readdir(folder)).sort();
  return Promise.all(names.map(async (name) => parseControl(await readFile(join(folder, name), "utf8"))));
}

/** Reads a control stanza (deb-control(5)); of its fields only those of one line matter here. */
export function parseControl(text: string): DebianPackage {
  const fields = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [, field, value] = /^([A-Za-z-]+): (.*)$/.exec(line) ?? [];
    if (field !== undefined && value !== undefined) fields.set(field, value);
  }
  const need = (field: string) => {
    const value = fields.get(field);
    if (value === undefined) throw new Error(`control data without ${field}`);
    return value;
  };
  const name = need("Package");
  return {
    name,
    version: need("Version"),
    architecture: need("Architecture"),
    source: fields.get("Source") ?? name,
    maintainer: need("Maintainer"),
  };
}
